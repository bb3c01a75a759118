//! One turn: a person's message, and what the agents do about it until the answer.
//!
//! Built anew for each message: the supervisor with its belt, and the specialists that this person is offered
//! (`agent` is the loop that each of them runs). What a person reads when it goes wrong is here too, and holds
//! nothing of a provider's.

mod agent;
mod cancellation;
mod chat;
mod events;
mod history;
mod journal;
mod ledger;
mod past;
mod question;
mod task;

pub use agent::MAX_STEPS;
pub use cancellation::{Cancellation, Stop};
pub use chat::{ChatModel, OnText};
#[cfg(test)]
pub(crate) use events::Collected;
pub use events::{Reporter, Unreported};
pub use journal::Journal;
#[cfg(test)]
pub(crate) use question::ASK_USER;
#[cfg(test)]
pub(crate) use task::TASK;

use crate::{
    agents::{Subagent, select_subagents},
    caller::AgentToolCaller,
    clock,
    context::{Runtime, TurnTicket},
    model::ModelError,
    proxy::{BeltTool, build_agent_tools},
};
use agent::{Agent, Rest};
use contract::turn::{TurnAnswer, TurnEvent, TurnMessage, TurnOutcome};
use ledger::Ledger;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::timeout;

/// The longest that a turn lasts, whatever its message says.
const MAX_TURN: Duration = Duration::from_mins(10);
/// What is kept of a turn's time for its answer to arrive in.
const ANSWER_MARGIN: Duration = Duration::from_millis(500);

/// Why a turn, or a specialist in it, has no answer.
#[derive(Debug, thiserror::Error)]
enum TurnError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the model answered with neither text nor calls")]
    NoAnswer,
    #[error("the model did not come to an end in {MAX_STEPS} steps")]
    StepBound,
    #[error("the turn's calls and results are too long")]
    TooLong,
    #[error("the turn's agents asked the model too often")]
    AskedTooOften,
    #[error("the turn took too many tokens")]
    TooManyTokens,
    #[error("the turn's time is over")]
    TimeOver,
    #[error("the turn was stopped by somebody")]
    Cancelled,
    #[error("the school's tokens for the day are used up")]
    OverBudget,
}

impl From<Stop> for TurnError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cancelled => Self::Cancelled,
            Stop::OverBudget => Self::OverBudget,
        }
    }
}

impl TurnError {
    /// What the person is told. Where something was called that changes things, it says so: it may have been done.
    fn text(&self, changed: bool) -> String {
        let what = match self {
            Self::Model(error) => error.text().to_owned(),
            Self::NoAnswer => {
                "The language model gave no answer. Please try again, or say it in other words.".to_owned()
            }
            Self::StepBound => format!(
                "I stopped after {MAX_STEPS} steps without coming to an answer. Please ask for less at once, or say it in \
                 other words."
            ),
            Self::TooLong | Self::AskedTooOften | Self::TooManyTokens => {
                "This became too much for one message. Please ask for less at once, or in smaller parts.".to_owned()
            }
            Self::TimeOver => {
                "There was not enough time to finish this. Please try again, or ask for less at once.".to_owned()
            }
            Self::OverBudget => "What your school may use of the language model in a day is used up. Please go on \
                                 tomorrow, or tell whoever runs the system."
                .to_owned(),
            Self::Cancelled if changed => "This was stopped, as asked.".to_owned(),
            Self::Cancelled => return "This was stopped, as asked, before anything was changed.".to_owned(),
        };
        if changed {
            format!("{what} Some of what you asked for may have been done; please check before you repeat it.")
        } else {
            what
        }
    }
}

/// Runs turns.
pub struct TurnRunner {
    model: Box<dyn ChatModel>,
    caller: Arc<dyn AgentToolCaller>,
}

/// One turn under way.
struct Turn<'a> {
    runner: &'a TurnRunner,
    message: &'a TurnMessage,
    journal: Journal,
    reporter: Arc<dyn Reporter>,
    belt: Vec<BeltTool>,
    specialists: Vec<Subagent>,
    runtime: Runtime,
    ledger: Mutex<Ledger>,
}

impl TurnRunner {
    /// Runs turns with this model, whose calls go out through this caller.
    #[must_use]
    pub fn new(model: impl ChatModel + 'static, caller: Arc<dyn AgentToolCaller>) -> Self {
        Self {
            model: Box::new(model),
            caller,
        }
    }

    /// Runs one turn, on from what was kept of it. Ends by its deadline, or soon after it is stopped: with an answer, or
    /// with none where a turn that is kept waits for the person. The reporter is told what happens meanwhile, and the end,
    /// or that it waits, as the last thing.
    pub async fn run(
        &self,
        message: &TurnMessage,
        journal: Journal,
        reporter: Arc<dyn Reporter>,
        cancellation: Cancellation,
    ) -> Option<TurnAnswer> {
        let time = clock::left_until(message.deadline_ms)
            .saturating_sub(ANSWER_MARGIN)
            .min(MAX_TURN);
        let turn = Turn::of(self, message, journal, reporter.clone());
        let rest = tokio::select! {
            biased;
            stop = cancellation.stopped() => Err(stop.into()),
            rest = timeout(time, turn.finish()) => rest.unwrap_or(Err(TurnError::TimeOver)),
        };
        let outcome = match rest {
            Ok(Rest::Waits) => {
                reporter.event(TurnEvent::Waiting {});
                return None;
            }
            Ok(Rest::Said(text)) => TurnOutcome::Answer(text),
            Err(error) => turn.failed(&error),
        };
        let tool_calls = turn.ledger().take_records();
        reporter.event(TurnEvent::Ended {
            outcome: outcome.clone(),
        });
        Some(TurnAnswer {
            turn_id: message.turn_id,
            outcome,
            tool_calls,
        })
    }
}

impl<'a> Turn<'a> {
    fn of(runner: &'a TurnRunner, message: &'a TurnMessage, journal: Journal, reporter: Arc<dyn Reporter>) -> Self {
        let context = serde_json::to_value(&message.context).expect("a context is made of texts, numbers and ids");
        let ticket = TurnTicket {
            turn_id: message.turn_id,
            grant: message.grant.clone(),
            deadline_ms: message.deadline_ms,
        };
        let runtime = Runtime {
            context: Arc::new(context),
            turn: Arc::new(ticket),
            tool_call_id: String::new(),
            writer: None,
        };
        Self {
            runner,
            message,
            reporter,
            belt: build_agent_tools(&runner.caller, message.context.run_mode.name()),
            specialists: select_subagents(&message.context, &runner.caller),
            runtime,
            ledger: Mutex::new(Ledger::after(&journal)),
            journal,
        }
    }

    async fn finish(&self) -> Result<Rest, TurnError> {
        self.report(TurnEvent::Started {});
        let mut supervisor = Agent::supervisor(self);
        supervisor.finish(&self.message.history, &self.message.message).await
    }

    fn failed(&self, error: &TurnError) -> TurnOutcome {
        tracing::warn!(turn = %self.message.turn_id, %error, "a turn without an answer");
        let text = error.text(self.ledger().has_changed(""));
        if matches!(error, TurnError::Cancelled) {
            TurnOutcome::Cancelled(text)
        } else {
            TurnOutcome::Error(text)
        }
    }

    fn report(&self, event: TurnEvent) {
        self.reporter.event(event);
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
