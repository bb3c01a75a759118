//! Marks: texts that name the school and the place that they belong to, and that no reply elsewhere may hold.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;
use std::{collections::BTreeSet, fmt};

/// What every mark begins with. Letters only, so that a mark passes as a slug, a word, an address or an event; long enough that
/// no encoded text holds it by chance.
const OPEN: &str = "qcanaryx";
/// What stands between the parts of a mark, and in none of them.
const BETWEEN: char = 'x';

/// Whose a row is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Owner {
    /// The school's slug, or [`PLATFORM`].
    pub(super) school: String,
    /// The campus's key, [`COMMON`] or [`UNPLACED`].
    pub(super) place: String,
}

/// The operator's own rows, which belong to no school.
pub(super) const PLATFORM: &str = "platform";
/// What the whole school shares.
pub(super) const COMMON: &str = "common";
/// What may belong to a campus and belongs to none, such as a person who works for the whole school.
pub(super) const UNPLACED: &str = "unplaced";

impl Owner {
    pub(super) fn new(school: &str, place: &str) -> Self {
        let letters = |text: &str| text.chars().filter(char::is_ascii_alphabetic).collect::<String>();
        let owner = Self {
            school: letters(school),
            place: letters(place),
        };
        assert!(
            !owner.school.contains(BETWEEN) && !owner.place.contains(BETWEEN),
            "{owner} cannot be written in a mark"
        );
        owner
    }

    /// Its school, for what all campuses share.
    pub(super) fn shared(&self) -> Self {
        Self::new(&self.school, COMMON)
    }

    /// A mark of this owner.
    pub(super) fn mark(&self, serial: &str) -> String {
        format!(
            "{OPEN}{}{BETWEEN}{}{BETWEEN}{serial}{BETWEEN}q",
            self.school, self.place
        )
    }
}

/// Whether what is marked so belongs to no campus.
pub(super) fn is_shared(owner: &Owner) -> bool {
    owner.place == COMMON || owner.place == UNPLACED
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.school, self.place)
    }
}

/// A mark that was found.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Mark {
    pub(super) owner: Owner,
    /// Which of its marks.
    pub(super) serial: String,
}

/// A number in the letters that a mark may have.
pub(super) fn serial(number: u64) -> String {
    let mut letters = String::new();
    let mut rest = number;
    loop {
        let digit = u8::try_from(rest % 16).expect("a digit is small");
        letters.insert(0, char::from(b'a' + digit));
        rest /= 16;
        if rest == 0 {
            return letters;
        }
    }
}

/// The marks in a text, whatever its case. One that is cut off is found as well, with what is left of it.
pub(super) fn marks_in(text: &str) -> BTreeSet<Mark> {
    let lower = text.to_ascii_lowercase();
    let found = lower.split(OPEN).skip(1).map(|rest| {
        let mut parts = rest.split(|c: char| c == BETWEEN || !c.is_ascii_alphabetic());
        let mut part = || parts.next().unwrap_or_default().to_owned();
        Mark {
            owner: Owner {
                school: part(),
                place: part(),
            },
            serial: part(),
        }
    });
    found.collect()
}

/// The marks in a JSON value: in its texts and names, and in what its texts encode, as cursors do.
pub(super) fn marks_of(value: &Value) -> BTreeSet<Mark> {
    let mut found = marks_in(&value.to_string());
    walk(value, &mut |_, text| {
        if let Ok(bytes) = BASE64_URL_SAFE_NO_PAD.decode(text) {
            found.extend(marks_in(&String::from_utf8_lossy(&bytes)));
        }
    });
    found
}

/// Visits every text of a JSON value, with the name of the member that it is in.
pub(super) fn walk(value: &Value, visit: &mut impl FnMut(&str, &str)) {
    fn inner(name: &str, value: &Value, visit: &mut impl FnMut(&str, &str)) {
        match value {
            Value::String(text) => visit(name, text),
            Value::Array(items) => items.iter().for_each(|item| inner(name, item, visit)),
            Value::Object(members) => members.iter().for_each(|(name, member)| inner(name, member, visit)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    inner("", value, visit);
}

#[test]
fn are_found_in_whatever_they_are_wrapped_in() {
    let owner = Owner::new("hilltop", "main");
    let mark = owner.mark(&serial(300));
    let wanted = BTreeSet::from([Mark {
        owner: owner.clone(),
        serial: "bcm".into(),
    }]);
    assert_eq!(
        marks_in(&format!("Key (name)=({}) exists", mark.to_uppercase())),
        wanted
    );
    let cursor = BASE64_URL_SAFE_NO_PAD.encode(serde_json::json!([mark, 7]).to_string());
    assert_eq!(marks_of(&serde_json::json!({"rows": [], "nextCursor": cursor})), wanted);
    let cut = &mark[..mark.len() - 10];
    assert_eq!(
        marks_in(cut).len(),
        1,
        "a mark that is cut off is still somebody's: {cut}"
    );
    assert!(marks_in("a canary in a mine").is_empty());
}
