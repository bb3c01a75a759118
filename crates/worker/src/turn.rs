//! One turn: a person's message, and what the supervisor does about it until the answer.
//!
//! The loop is: ask the model, run the calls that it makes, give it the results, ask again, to a bound of steps. What a person
//! reads when it goes wrong is here too, and holds nothing of a provider's.

mod history;

use crate::{
    agents::rover_prompt,
    caller::AgentToolCaller,
    clock,
    context::{Runtime, TurnTicket},
    model::{Model, ModelError, ToolCall},
    proxy::{BeltTool, build_agent_tools, envelope_text},
};
use contract::{
    AgentToolResult,
    turn::{ToolCallRecord, TurnAnswer, TurnMessage, TurnOutcome},
};
use futures_util::future::join_all;
use history::{CallIds, History};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// How often the model is asked in one turn. A task of a school takes two to five; the rest is a model going in circles.
pub const MAX_STEPS: usize = 8;
/// How many calls of one step are run. More at once is a model out of control.
const MAX_CALLS_PER_STEP: usize = 16;
/// The longest that a turn lasts, whatever its message says.
const MAX_TURN: Duration = Duration::from_mins(10);
/// What is kept of a turn's time for its answer to arrive in.
const ANSWER_MARGIN: Duration = Duration::from_millis(500);
/// The most of an unknown tool's name that is repeated.
const MAX_NAME_CHARS: usize = 64;

/// Why a turn has no answer.
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
    #[error("the turn's time is over")]
    TimeOver,
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
                "I stopped after {MAX_STEPS} steps without coming to an answer. Please ask for less at once, or say it in other words."
            ),
            Self::TooLong => {
                "This became too much for one message. Please ask for less at once, or in smaller parts.".to_owned()
            }
            Self::TimeOver => {
                "There was not enough time to finish this. Please try again, or ask for less at once.".to_owned()
            }
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
    model: Model,
    caller: Arc<dyn AgentToolCaller>,
}

/// One turn under way.
struct Turn<'a> {
    runner: &'a TurnRunner,
    belt: Vec<BeltTool>,
    runtime: Runtime,
    records: Vec<ToolCallRecord>,
    changed: bool,
}

impl TurnRunner {
    /// Runs turns with this model, whose calls go out through this caller.
    #[must_use]
    pub fn new(model: Model, caller: Arc<dyn AgentToolCaller>) -> Self {
        Self { model, caller }
    }

    /// Runs one turn. Ends by its deadline, and always with an answer.
    pub async fn run(&self, message: &TurnMessage) -> TurnAnswer {
        let time = clock::left_until(message.deadline_ms)
            .saturating_sub(ANSWER_MARGIN)
            .min(MAX_TURN);
        let mut turn = Turn::of(self, message);
        let ended = timeout(time, turn.finish(message)).await;
        let outcome = match ended.unwrap_or(Err(TurnError::TimeOver)) {
            Ok(text) => TurnOutcome::Answer(text),
            Err(error) => {
                tracing::warn!(turn = %message.turn_id, %error, "a turn without an answer");
                TurnOutcome::Error(error.text(turn.changed))
            }
        };
        TurnAnswer {
            turn_id: message.turn_id,
            outcome,
            tool_calls: turn.records,
        }
    }
}

impl<'a> Turn<'a> {
    fn of(runner: &'a TurnRunner, message: &TurnMessage) -> Self {
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
        let belt = build_agent_tools(&runner.caller, message.context.run_mode.name());
        Self {
            runner,
            belt,
            runtime,
            records: Vec::new(),
            changed: false,
        }
    }

    async fn finish(&mut self, message: &TurnMessage) -> Result<String, TurnError> {
        let tools: Vec<Value> = self.belt.iter().map(offer).collect();
        let mut history = History::new(&rover_prompt(&message.context), &message.message);
        let mut ids = CallIds::default();
        for step in 1..=MAX_STEPS {
            let completion = self
                .runner
                .model
                .complete(history.messages(), &tools, message.deadline_ms)
                .await?;
            if completion.calls.is_empty() {
                return completion.text.ok_or(TurnError::NoAnswer);
            }
            if step == MAX_STEPS {
                // Calls whose results nobody would read are not made.
                break;
            }
            let calls = ids.make_unique(step, completion.calls);
            history.push_calls(completion.text.as_deref(), &calls);
            if history.is_too_long() {
                return Err(TurnError::TooLong);
            }
            let results = self.run_calls(&calls).await;
            history.push_results(&calls, results);
            if history.is_too_long() {
                return Err(TurnError::TooLong);
            }
        }
        Err(TurnError::StepBound)
    }

    /// Runs the calls of one step, all at once; results in the order of the calls.
    async fn run_calls(&mut self, calls: &[ToolCall]) -> Vec<String> {
        let first = self.records.len();
        for call in calls {
            let name = shortened(&call.name);
            self.changed |= self.tool(&call.name).is_some_and(BeltTool::is_mutating);
            // Written down before it is run: if time runs out meanwhile, it was begun and nobody knows.
            self.records.push(ToolCallRecord {
                tool_call_id: call.id.clone(),
                name,
                succeeded: false,
            });
        }
        let results = join_all(calls.iter().enumerate().map(|(index, call)| self.run_call(index, call))).await;
        for (record, result) in self.records.iter_mut().skip(first).zip(&results) {
            record.succeeded = result.is_data();
        }
        results.iter().map(envelope_text).collect()
    }

    async fn run_call(&self, index: usize, call: &ToolCall) -> AgentToolResult {
        if index >= MAX_CALLS_PER_STEP {
            return AgentToolResult::error(format!(
                "Not run: at most {MAX_CALLS_PER_STEP} tools can be called at once. Call the others again after these."
            ));
        }
        let Some(tool) = self.tool(&call.name) else {
            // It does not say which tools there are: some may not be this caller's to know of.
            return AgentToolResult::error(format!("There is no tool called \"{}\" here.", shortened(&call.name)));
        };
        let runtime = Runtime {
            tool_call_id: call.id.clone(),
            ..self.runtime.clone()
        };
        let result = tool.call(&call.arguments, &runtime).await;
        tracing::info!(turn = %self.runtime.turn.turn_id, call = call.id, tool = tool.name(), done = result.is_data(), "called");
        result
    }

    fn tool(&self, name: &str) -> Option<&BeltTool> {
        self.belt.iter().find(|tool| tool.name() == name)
    }
}

/// A tool as the protocol offers it.
fn offer(tool: &BeltTool) -> Value {
    json!({
        "type": "function",
        "function": {"name": tool.name(), "description": tool.description(), "parameters": tool.schema()},
    })
}

fn shortened(name: &str) -> String {
    name.chars()
        .filter(|character| !character.is_control())
        .take(MAX_NAME_CHARS)
        .collect()
}

#[cfg(test)]
mod tests;
