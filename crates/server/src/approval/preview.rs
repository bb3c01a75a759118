//! Whether a call still does what was previewed. Two runs of the same call make up different ids and moments; all else must be the same.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use std::collections::HashMap;
use uuid::Uuid;

/// How far the clocks of the database and of this process may be apart.
const CLOCKS_APART: TimeDelta = TimeDelta::seconds(1);

/// No run takes longer, with clocks that are apart.
const LONGEST: TimeDelta = TimeDelta::minutes(1);

/// What a run answered, and when its frame began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) data: &'a Value,
    pub(super) scope_context: &'a str,
    pub(super) began: DateTime<Utc>,
}

/// Whether two runs of a call did the same.
pub(super) fn same(then: Shown<'_>, now: Shown<'_>) -> bool {
    let mut comparison = Comparison {
        began: (then.began - CLOCKS_APART, now.began - CLOCKS_APART),
        ids: HashMap::new(),
    };
    then.scope_context == now.scope_context && comparison.same(then.data, now.data)
}

struct Comparison<'a> {
    began: (DateTime<Utc>, DateTime<Utc>),
    /// Which id of the one run stands for which of the other.
    ids: HashMap<&'a str, &'a str>,
}

impl<'a> Comparison<'a> {
    fn same(&mut self, then: &'a Value, now: &'a Value) -> bool {
        match (then, now) {
            (Value::Array(then), Value::Array(now)) => {
                then.len() == now.len() && then.iter().zip(now).all(|(then, now)| self.same(then, now))
            }
            (Value::Object(then), Value::Object(now)) => {
                let both = |(name, then): (&String, &'a Value)| now.get(name).is_some_and(|now| self.same(then, now));
                then.len() == now.len() && then.iter().all(both)
            }
            (Value::String(then), Value::String(now)) => then == now || self.made_up(then, now),
            _ => then == now,
        }
    }

    /// Whether both texts were made up by their own run: the same kind of thing, of a moment within it.
    fn made_up(&mut self, then: &'a str, now: &'a str) -> bool {
        let (since_then, since_now) = self.began;
        if let Some((made_then, made_now)) = made_at(then).zip(made_at(now)) {
            let is_consistent = *self.ids.entry(then).or_insert(now) == now;
            return is_consistent && is_within(made_then, since_then) && is_within(made_now, since_now);
        }
        let moments = moment(then).zip(moment(now));
        moments.is_some_and(|(then, now)| is_within(then, since_then) && is_within(now, since_now))
    }
}

/// Whether a moment is one of a run that began then.
fn is_within(moment: DateTime<Utc>, began: DateTime<Utc>) -> bool {
    moment >= began && moment <= began + LONGEST
}

/// When an id was made up, if it says.
fn made_at(text: &str) -> Option<DateTime<Utc>> {
    let (seconds, nanos) = text.parse::<Uuid>().ok()?.get_timestamp()?.to_unix();
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanos)
}

fn moment(text: &str) -> Option<DateTime<Utc>> {
    Some(DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uuid::{NoContext, Timestamp};

    const THEN: i64 = 1_700_000_000;
    const NOW: i64 = THEN + 3600;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    fn id(seconds: i64) -> Uuid {
        Uuid::new_v7(Timestamp::from_unix(NoContext, u64::try_from(seconds).unwrap(), 0))
    }

    fn is_same(then: &Value, now: &Value) -> bool {
        let shown = |data, began| Shown {
            data,
            scope_context: "All.",
            began: at(began),
        };
        same(shown(then, THEN), shown(now, NOW))
    }

    #[test]
    fn what_a_run_makes_up_is_not_compared() {
        let (then, now) = (id(THEN), id(NOW));
        assert!(is_same(
            &json!({"id": then, "at": at(THEN), "name": "Drama", "again": then}),
            &json!({"id": now, "at": at(NOW + 2), "name": "Drama", "again": now}),
        ));
        assert!(
            !is_same(&json!([then, then]), &json!([now, id(NOW)])),
            "one thing is not two"
        );
    }

    #[test]
    fn what_was_there_before_is_compared() {
        let (old, older) = (id(THEN - 60), id(THEN - 90));
        assert!(is_same(&json!({"id": old}), &json!({"id": old})));
        assert!(!is_same(&json!({"id": old}), &json!({"id": older})));
        assert!(!is_same(&json!({"id": old}), &json!({"id": id(NOW)})));
        assert!(!is_same(&json!({"id": id(THEN)}), &json!({"id": old})));
        assert!(!is_same(&json!({"at": at(THEN - 60)}), &json!({"at": at(NOW)})));
        assert!(!is_same(&json!({"at": at(THEN)}), &json!({"at": id(NOW)})));
        assert!(
            !is_same(&json!({"due": at(NOW + 7000)}), &json!({"due": at(NOW + 9000)})),
            "nor is what is to come made up"
        );
    }

    #[test]
    fn everything_else_is_compared() {
        for (then, now) in [
            (json!({"members": 3}), json!({"members": 4})),
            (json!({"name": "Drama"}), json!({"name": "Dance"})),
            (json!({"a": 1}), json!({"a": 1, "b": 2})),
            (json!({"a": 1, "b": 2}), json!({"a": 1})),
            (json!([1]), json!([1, 1])),
            (json!(null), json!(false)),
        ] {
            assert!(is_same(&then, &then));
            assert!(!is_same(&then, &now), "{then} and {now}");
        }
        let shown = |scope_context| Shown {
            data: &Value::Null,
            scope_context,
            began: at(THEN),
        };
        assert!(!same(shown("The whole school."), shown("Campus Main only.")));
    }
}
