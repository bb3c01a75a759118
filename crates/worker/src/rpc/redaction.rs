//! Bodies for the dead turns: operators read them for longer than a grant lives, and with a live one they could act as its person.

use contract::envelope::MAX_PACKET_BYTES;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The member that holds the grant, in any case and at any depth: a sender may have wrapped the turn.
const MEMBER: &str = "grant";
/// How much is kept of what is no JSON object: enough to see what it is.
const KEPT_BYTES: usize = 1024;

/// The body with its grant blanked. Of what cannot be read, the beginning, or only the size where a grant may be in it.
pub(super) fn without_grant(body: &[u8]) -> Cow<'_, [u8]> {
    // A larger one is not read: its values would take many times its size.
    if body.len() <= MAX_PACKET_BYTES
        && let Ok(mut members) = serde_json::from_slice::<Map<String, Value>>(body)
    {
        blank(&mut members);
        return Cow::Owned(Value::Object(members).to_string().into_bytes());
    }
    let mut words = body.windows(MEMBER.len());
    if words.any(|word| word.eq_ignore_ascii_case(MEMBER.as_bytes())) {
        return Cow::Owned(format!("{} bytes", body.len()).into_bytes());
    }
    Cow::Borrowed(body.get(..KEPT_BYTES).unwrap_or(body))
}

/// Blanks every grant. As deep as serde reads, which is bounded.
fn blank(members: &mut Map<String, Value>) {
    for (name, value) in members {
        if name.eq_ignore_ascii_case(MEMBER) {
            *value = Value::String(String::new());
        } else {
            blank_within(value);
        }
    }
}

fn blank_within(value: &mut Value) {
    match value {
        Value::Object(members) => blank(members),
        Value::Array(items) => items.iter_mut().for_each(blank_within),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(body: &str) -> String {
        String::from_utf8(without_grant(body.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn the_grant_of_an_object_is_blanked_and_the_rest_stays() {
        for (body, expected) in [
            (r#"{"turnId": 7, "grant": "live"}"#, r#"{"grant":"","turnId":7}"#),
            (r#"{"grant": "live", "grant": "live"}"#, r#"{"grant":""}"#),
            (r#"{"gr\u0061nt": {"v": "live"}}"#, r#"{"grant":""}"#),
            (r#"{"data": [{"Grant": "live"}]}"#, r#"{"data":[{"Grant":""}]}"#),
            (r#"{"message": "hello"}"#, r#"{"message":"hello"}"#),
        ] {
            assert_eq!(kept(body), expected, "{body}");
        }
    }

    #[test]
    fn of_what_is_no_object_little_is_kept_and_nothing_beside_a_grant() {
        assert_eq!(kept("no turn"), "no turn");
        assert_eq!(kept(&"x".repeat(KEPT_BYTES + 1)), "x".repeat(KEPT_BYTES));
        for body in [r#"{"grant": "live"#, r#"[{"GRANT": "live"}]"#] {
            assert_eq!(kept(body), format!("{} bytes", body.len()));
        }
        let late = format!(r#"{}"grant":"live""#, " ".repeat(2 * KEPT_BYTES));
        assert_eq!(kept(&late), format!("{} bytes", late.len()));
        let large = format!(r#"{{"grant":"live","message":"{}"}}"#, "x".repeat(MAX_PACKET_BYTES));
        assert_eq!(kept(&large), format!("{} bytes", large.len()));
    }
}
