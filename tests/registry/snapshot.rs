//! Committed texts that say what the registry is. A change of one is seen in review, and never happens by accident.

use e2e::world::root;
use std::fs;

/// Set, to anything, it makes the tests write the committed texts anew.
const WISH: &str = "UPDATE_SNAPSHOTS";

/// The text is the committed one of this file, or becomes it where that is wished.
pub(crate) fn assert_committed(file: &str, text: &str) {
    let path = root().join(file);
    if is_rewriting() {
        fs::write(&path, text).expect("the snapshot can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    if let Some(difference) = difference(&committed, text) {
        panic!(
            "{file} is not what the registry says.\n{difference}\nIf that is meant, run \
             `{WISH}=1 cargo test -p e2e committed` and commit what it changes."
        );
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the tests' own wish, which no configuration knows"
)]
fn is_rewriting() -> bool {
    std::env::var_os(WISH).is_some_and(|wish| !wish.is_empty())
}

/// The first line in which two texts differ.
fn difference(committed: &str, now: &str) -> Option<String> {
    if committed == now {
        return None;
    }
    let (mut old, mut new) = (committed.lines(), now.lines());
    for number in 1.. {
        match (old.next(), new.next()) {
            (None, None) => break,
            (old, new) if old == new => {}
            (old, new) => {
                let [old, new] = [old, new].map(|line| line.unwrap_or("(nothing)"));
                return Some(format!("line {number}\n  committed: {old}\n  now:       {new}"));
            }
        }
    }
    Some("only its line ends differ".to_owned())
}

#[test]
fn a_difference_is_found_wherever_it_is() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    for (committed, now, line) in [
        ("a\nb\n", "a\nc\n", "line 2"),
        ("", "a\n", "line 1"),
        ("a\nb\n", "a\n", "line 2"),
    ] {
        assert!(difference(committed, now).is_some_and(|text| text.starts_with(line)));
    }
    assert!(difference("a\n", "a").is_some());
}
