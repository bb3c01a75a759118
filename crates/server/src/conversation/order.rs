//! In which order events are told: that of their places, without a gap, whichever server stored which first.

use super::{Place, Told};
use crate::db::conversation::StoredEvent;
use serde_json::Value;

/// What is done about events that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gaps {
    /// They are waited for.
    WaitedFor,
    /// They were lost, and are passed over.
    PassedOver,
}

/// The events up to the first that is missing. What a dead worker's attempt still lacks is not waited for once another has begun.
pub(super) fn in_order(stored: Vec<StoredEvent>, after: Place, gaps: Gaps) -> Vec<Told> {
    let mut at = after;
    let mut told = Vec::new();
    for event in stored {
        let follows = event.at.attempt == at.attempt && event.at.place == at.place.saturating_add(1);
        let begins = event.at.attempt > at.attempt && event.at.place == 1;
        if !follows && !begins && gaps == Gaps::WaitedFor {
            // one is still on its way, unless a later attempt has begun
            continue;
        }
        at = event.at;
        let kind = event
            .event
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let is_last = kind == "ended";
        told.push(Told {
            at,
            event: (kind != "messages").then_some(event.event),
            kind,
            is_last,
        });
        if is_last {
            break;
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn places(stored: &[(i32, i32)], after: (i32, i32)) -> Vec<(i32, i32)> {
        let place = |(attempt, place): (i32, i32)| Place { attempt, place };
        let stored = stored.iter().map(|&at| StoredEvent {
            at: place(at),
            event: json!({"type": "text"}),
        });
        let told = in_order(stored.collect(), place(after), Gaps::WaitedFor);
        told.into_iter().map(|told| (told.at.attempt, told.at.place)).collect()
    }

    #[test]
    fn events_are_told_in_order_and_without_gaps() {
        assert_eq!(places(&[(1, 1), (1, 2)], (0, 0)), [(1, 1), (1, 2)]);
        assert_eq!(places(&[(1, 2), (1, 3)], (0, 0)), [], "the first is still on its way");
        assert_eq!(
            places(&[(1, 4), (1, 6)], (1, 3)),
            [(1, 4)],
            "the fifth is still on its way"
        );
        assert_eq!(
            places(&[(1, 6), (2, 1)], (1, 4)),
            [(2, 1)],
            "nor is one of an attempt that was given up"
        );
        assert_eq!(
            places(&[(2, 1), (2, 2)], (1, 4)),
            [(2, 1), (2, 2)],
            "a new attempt ends the old"
        );
        assert_eq!(places(&[(2, 2)], (1, 4)), []);
    }

    #[test]
    fn nothing_is_told_after_the_end() {
        let stored = |kind: &str, place| StoredEvent {
            at: Place { attempt: 1, place },
            event: json!({"type": kind}),
        };
        let told = in_order(
            vec![stored("messages", 1), stored("ended", 3), stored("text", 4)],
            Place::default(),
            Gaps::PassedOver,
        );
        let kinds: Vec<_> = told
            .iter()
            .map(|told| (told.kind.as_str(), told.event.is_some()))
            .collect();
        assert_eq!(kinds, [("messages", false), ("ended", true)]);
        assert!(told.last().unwrap().is_last);
    }
}
