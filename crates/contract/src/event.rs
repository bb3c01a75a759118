//! A tool's event, `verb.subject`: the routing key of its calls, and the one place that says whether it changes anything.
//!
//! A malformed event or an unclassified verb is a compile error where the event is a constant, which every tool's is.

use std::fmt;

/// Verbs of tools that change something. Each such tool writes exactly one audit row when it succeeds.
pub const KNOWN_MUTATING_VERBS: &[&str] = &[
    "create", "update", "delete", "assign", "revoke", "invite", "enrol", "transfer", "record", "write", "submit",
    "review", "publish", "archive",
];

/// Verbs of tools that only look.
pub const KNOWN_READ_VERBS: &[&str] = &["get", "list", "search", "query", "count"];

/// A well-formed event with a classified verb.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(&'static str);

impl Event {
    /// Makes an event of a text such as `create.department`.
    ///
    /// # Panics
    ///
    /// When the text is no event; in a constant, where events are made, that is a compile error. Rules: exactly one dot; lower-case
    /// letters, digits and underscores on both sides of it; a verb from [`KNOWN_MUTATING_VERBS`] or [`KNOWN_READ_VERBS`].
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        let bytes = text.as_bytes();
        let mut dots = 0;
        let mut i = 0;
        while i < bytes.len() {
            let byte = byte_at(bytes, i);
            if byte == b'.' {
                dots += 1;
            } else {
                assert!(
                    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_',
                    "an event is written in lower-case letters, digits and underscores"
                );
            }
            i += 1;
        }
        assert!(dots == 1, "an event is `verb.subject`, with exactly one dot");
        let event = Self(text);
        assert!(!event.subject().is_empty(), "an event needs a subject after its dot");
        let verb = event.verb();
        assert!(
            holds(KNOWN_MUTATING_VERBS, verb) || holds(KNOWN_READ_VERBS, verb),
            "unknown verb: classify it in KNOWN_MUTATING_VERBS or KNOWN_READ_VERBS"
        );
        event
    }

    /// The event as it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// What comes before the dot.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        self.0.split_at(dot(self.0)).0
    }

    /// What comes after the dot.
    #[must_use]
    pub const fn subject(self) -> &'static str {
        self.0.split_at(dot(self.0) + 1).1
    }

    /// Whether a tool of this event changes something, by its verb.
    #[must_use]
    pub const fn is_mutating(self) -> bool {
        holds(KNOWN_MUTATING_VERBS, self.verb())
    }

    /// Whether `name` is this event with an underscore for its dot, which is what a tool's name is.
    pub(crate) const fn is_named(self, name: &str) -> bool {
        let (event, name) = (self.0.as_bytes(), name.as_bytes());
        if event.len() != name.len() {
            return false;
        }
        let mut i = 0;
        while i < event.len() {
            let wanted = if byte_at(event, i) == b'.' {
                b'_'
            } else {
                byte_at(event, i)
            };
            if byte_at(name, i) != wanted {
                return false;
            }
            i += 1;
        }
        true
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Byte equality of two texts; `==` on `str` is not yet const.
pub(crate) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if byte_at(a, i) != byte_at(b, i) {
            return false;
        }
        i += 1;
    }
    true
}

const fn holds(words: &[&str], word: &str) -> bool {
    let mut rest = words;
    while let Some((first, others)) = rest.split_first() {
        if same(first, word) {
            return true;
        }
        rest = others;
    }
    false
}

const fn dot(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() && byte_at(bytes, i) != b'.' {
        i += 1;
    }
    i
}

#[expect(
    clippy::indexing_slicing,
    reason = "every caller has compared the index with the length; `get` is not const"
)]
const fn byte_at(bytes: &[u8], i: usize) -> u8 {
    bytes[i]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verb_and_subject_are_the_two_halves() {
        const EVENT: Event = Event::new("list.campus_staff");
        assert_eq!((EVENT.verb(), EVENT.subject()), ("list", "campus_staff"));
        assert!(EVENT.is_named("list_campus_staff"));
        assert!(!EVENT.is_named("list_campus"));
    }

    #[test]
    fn verbs_are_in_one_list_only() {
        for verb in KNOWN_MUTATING_VERBS {
            assert!(!KNOWN_READ_VERBS.contains(verb), "{verb} is both");
        }
    }

    #[test]
    fn mutation_goes_by_the_verb_alone() {
        assert!(Event::new("delete.department").is_mutating());
        assert!(!Event::new("get.create_log").is_mutating());
    }
}
