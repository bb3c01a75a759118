//! What a person reads at an end that no agent words: why it came, and what was done before it.
//!
//! A write takes effect only while its turn is open and nobody has stopped it. So what the books say of it while the turn is held, and is
//! ended there, stays true.

use crate::db::{
    DbResult, Tx,
    turn::{self, Held},
};
use contract::{tools::tool_for_event, turn::TurnOutcome};

/// What a person reads whose school has used up its tokens.
pub(super) const OVER_BUDGET_TEXT: &str = "The assistants have used up what your school may use of them today. Your message was not worked \
                                           on any further. Please try again tomorrow.";

/// Why a turn ends without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Its person stopped it.
    Stopped,
    /// It could not be handed to a worker.
    NotSent,
    /// It waited for an answer that nobody gave.
    NobodyAnswered,
    /// Nobody ended it in its time.
    Interrupted,
    /// It ended its workers again and again.
    TooOften,
    /// Its school has used up its tokens.
    OverBudget,
    /// Its person may not come in any more.
    NotInAnyMore,
}

/// How a turn ends that is held, and ended before it is let go. Whoever stopped it reads that, whatever else came over it.
pub(super) async fn outcome(tx: &mut Tx, held: &Held, why: Why) -> DbResult<TurnOutcome> {
    let done = turn::done(tx, held).await?;
    let why = if held.cancelled { Why::Stopped } else { why };
    let (cause, advice) = why.words();
    let text = format!("{cause} {} {advice}", facts(&done)).trim_end().to_owned();
    Ok(match why {
        Why::Stopped => TurnOutcome::Cancelled(text),
        Why::NotSent | Why::NobodyAnswered | Why::Interrupted | Why::TooOften | Why::OverBudget | Why::NotInAnyMore => {
            TurnOutcome::Error(text)
        }
    })
}

impl Why {
    /// What came, and what to do about it.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Stopped => ("This was stopped, as asked.", ""),
            Self::NotSent => (
                "Your message could not be passed on at the moment.",
                "Please try again.",
            ),
            Self::NobodyAnswered => (
                "This waited for an answer, and nobody gave one in time.",
                "What was not yet done stays undone; say it again if you still want it.",
            ),
            Self::Interrupted => (
                "Working on your message was interrupted.",
                "Please ask again for what is missing.",
            ),
            Self::TooOften => (
                "Working on your message was interrupted too often, and was given up.",
                "Please ask again for what is missing.",
            ),
            Self::OverBudget => (OVER_BUDGET_TEXT, ""),
            Self::NotInAnyMore => (
                "Working on your message could not go on: this account may not come in any more.",
                "",
            ),
        }
    }
}

/// What was done, by the names of the tools as the timeline shows them.
fn facts(events: &[String]) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for event in events {
        let name = tool_for_event(event).map_or(event.as_str(), |tool| tool.definition.name);
        match counted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, times)) => *times += 1,
            None => counted.push((name, 1)),
        }
    }
    let said = counted.iter().map(|(name, times)| match times {
        1 => (*name).to_owned(),
        times => format!("{name} ({times} times)"),
    });
    let said: Vec<String> = said.collect();
    if said.is_empty() {
        return "Nothing was changed.".to_owned();
    }
    format!("Done before that: {}. Nothing else was changed.", said.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_named_once_in_its_order() {
        let events = ["create.department", "gone.tool", "create.department"].map(str::to_owned);
        assert_eq!(
            facts(&events),
            "Done before that: create_department (2 times), gone.tool. Nothing else was changed."
        );
        assert_eq!(facts(&[]), "Nothing was changed.");
    }
}
