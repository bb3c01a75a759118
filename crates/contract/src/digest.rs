//! A digest of JSON that is the same in every process: it depends on neither the order in which members are kept nor on how the text was
//! written.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// SHA-256 of a value, in hexadecimal.
pub(crate) fn digest(value: &Value) -> String {
    let mut hash = Sha256::new();
    feed(&mut hash, value);
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        // a String takes whatever is written
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Each part with its kind and length before it, so that no two values read the same.
fn feed(hash: &mut Sha256, value: &Value) {
    let mut head = |kind: &[u8; 1], length: usize| {
        hash.update(kind);
        hash.update(u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes());
    };
    match value {
        Value::Array(items) => {
            head(b"[", items.len());
            for item in items {
                feed(hash, item);
            }
        }
        Value::Object(members) => {
            head(b"{", members.len());
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            for (name, member) in members {
                feed(hash, &Value::String(name.clone()));
                feed(hash, member);
            }
        }
        Value::String(text) => {
            head(b"s", text.len());
            hash.update(text.as_bytes());
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            let text = value.to_string();
            head(b"v", text.len());
            hash.update(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_members_does_not_matter_and_everything_else_does() {
        let read = |text: &str| digest(&serde_json::from_str(text).unwrap());
        let one = read(r#"{"a": [1, "x"], "b": null}"#);
        assert_eq!(one.len(), 64);
        assert_eq!(one, read(r#"{"b":null,"a":[1,"x"]}"#));
        for other in [
            json!({"a": ["x", 1], "b": null}),
            json!({"a": [1, "x"]}),
            json!({"a": ["1", "x"], "b": null}),
        ] {
            assert_ne!(one, digest(&other), "{other}");
        }
        assert_ne!(digest(&json!(["ab", "c"])), digest(&json!(["a", "bc"])));
    }
}
