//! The loop of one agent: ask the model, run the calls that it makes, give it the results, ask again, to a bound of
//! steps.
//!
//! The supervisor and the specialists run the same loop, each with a conversation and a belt of its own. A specialist
//! runs inside one call of the supervisor, and what it says last is that call's result.

use super::{
    Turn, TurnError,
    events::keeping,
    history::{CallIds, History, size_of},
    task::{self, TASK, Task},
};
use crate::{
    agents::{Persona, Subagent, system_prompt},
    context::{Runtime, StreamWriter},
    model::{Completion, ToolCall},
    proxy::{BeltTool, envelope_text},
};
use contract::{
    AgentToolResult,
    turn::{ThreadHistory, ToolOutcome, TurnEvent},
};
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use std::sync::Arc;

/// How often the model is asked by one agent for one task. A task of a school takes two to five; the rest is a model
/// going in circles.
pub const MAX_STEPS: usize = 8;
/// How many calls of one step are run. More at once is a model out of control.
const MAX_CALLS_PER_STEP: usize = 16;
/// The most of an unknown tool's name that is repeated.
const MAX_NAME_CHARS: usize = 64;
/// The longest text of one answer. A person reads a fraction of it; the rest is a model in a loop.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// The most that a success shows for itself: it is made of the arguments, which can be anything.
const MAX_SHOWN_BYTES: usize = 64 * 1024;

/// One agent at work.
pub(super) struct Agent<'t> {
    turn: &'t Turn<'t>,
    persona: Persona,
    belt: &'t [BeltTool],
    /// To whom it can hand work; nobody, for a specialist.
    specialists: &'t [Subagent],
    ids: CallIds,
}

/// A call that has been written down.
struct Begun<'a> {
    /// Its id in the turn.
    id: String,
    /// Its name as people may see it.
    name: String,
    /// Its place in the ledger.
    place: usize,
    plan: Plan<'a>,
}

/// What is to be done for a call.
enum Plan<'a> {
    Run(&'a BeltTool),
    Delegate(&'a Subagent, Task),
    Refuse(AgentToolResult),
}

impl<'t> Agent<'t> {
    pub(super) fn supervisor(turn: &'t Turn<'t>) -> Self {
        Self {
            turn,
            persona: Persona::Supervisor,
            belt: &turn.belt,
            specialists: &turn.specialists,
            ids: CallIds::of_supervisor(),
        }
    }

    /// The specialist that works for the call with this id. It cannot delegate.
    fn specialist(turn: &'t Turn<'t>, subagent: &'t Subagent, task_id: &str) -> Self {
        Self {
            turn,
            persona: Persona::Specialist(subagent.role),
            belt: &subagent.belt,
            specialists: &[],
            ids: CallIds::within(task_id),
        }
    }

    /// What comes of a message: the text of the last answer.
    pub(super) async fn finish(&mut self, thread: &ThreadHistory, message: &str) -> Result<String, TurnError> {
        let tools = self.offers();
        let roles: Vec<_> = self.specialists.iter().map(|specialist| specialist.role).collect();
        let prompt = system_prompt(self.persona, &self.turn.message.context, &roles, thread.left_out);
        let mut history = History::new(&prompt, thread, message);
        for step in 1..=MAX_STEPS {
            let Completion { text, calls, .. } = self.ask(&history, &tools).await?;
            if calls.is_empty() {
                let text = text.ok_or(TurnError::NoAnswer)?;
                self.keep(&[json!({"role": "assistant", "content": text})]);
                return Ok(text);
            }
            if step == MAX_STEPS {
                // Calls whose results nobody would read are not made.
                break;
            }
            let calls = self.ids.make_unique(step, calls);
            let said_before = history.messages().len();
            history.push_calls(text.as_deref(), &calls);
            self.turn.ledger().take_room(size_of(text.as_deref(), &calls))?;
            let results = self.run_calls(&calls).await;
            let room = results.iter().map(String::len).sum();
            history.push_results(&calls, results);
            self.keep(history.messages().get(said_before..).unwrap_or_default());
            self.turn.ledger().take_room(room)?;
        }
        Err(TurnError::StepBound)
    }

    /// Its tools, as the protocol offers them.
    fn offers(&self) -> Vec<Value> {
        let offer = |tool: &BeltTool| {
            json!({
                "type": "function",
                "function": {"name": tool.name(), "description": tool.description(), "parameters": tool.schema()},
            })
        };
        let task = (!self.specialists.is_empty()).then(|| task::offer(self.specialists));
        self.belt.iter().map(offer).chain(task).collect()
    }

    /// Asks the model, and tells what it says while it says it.
    async fn ask(&self, history: &History, tools: &[Value]) -> Result<Completion, TurnError> {
        self.turn.ledger().ask()?;
        let agent = self.persona.name();
        let mut said = 0;
        let mut tell = |delta: &str| {
            said += delta.len();
            if said <= MAX_TEXT_BYTES && !delta.is_empty() {
                let (agent, delta) = (agent.to_owned(), delta.to_owned());
                self.turn.report(TurnEvent::Text { agent, delta });
            }
        };
        let deadline_ms = self.turn.message.deadline_ms;
        let model = &self.turn.runner.model;
        let mut completion = model.ask(history.messages(), tools, deadline_ms, &mut tell).await?;
        if let Some(usage) = completion.usage {
            self.turn.ledger().spend(usage);
            self.turn.report(TurnEvent::Usage {
                agent: agent.to_owned(),
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
            });
        }
        if let Some(text) = &mut completion.text {
            text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        }
        Ok(completion)
    }

    /// What the supervisor and its tools said is what the thread's next turn reads; a specialist's is nobody else's.
    fn keep(&self, messages: &[Value]) {
        if self.persona == Persona::Supervisor {
            for event in keeping(messages) {
                self.turn.report(event);
            }
        }
    }

    /// Runs the calls of one step, all at once; results in the order of the calls.
    async fn run_calls(&self, calls: &[ToolCall]) -> Vec<String> {
        let begun: Vec<Begun<'_>> = calls
            .iter()
            .enumerate()
            .map(|(index, call)| self.begin(index, call))
            .collect();
        let results = join_all(calls.iter().zip(&begun).map(|(call, begun)| self.run_call(call, begun))).await;
        results.iter().map(envelope_text).collect()
    }

    /// Writes a call down, and decides whether it is run.
    fn begin(&self, index: usize, call: &ToolCall) -> Begun<'_> {
        let (id, name) = (self.ids.in_turn(&call.id), shortened(&call.name));
        let plan = self.plan(index, call).unwrap_or_else(Plan::Refuse);
        let mut ledger = self.turn.ledger();
        let place = ledger.begin(&id, &name);
        if matches!(plan, Plan::Run(tool) if tool.is_mutating()) {
            ledger.change(&id);
        }
        drop(ledger);
        self.turn.report(TurnEvent::ToolStarted {
            agent: self.persona.name().to_owned(),
            tool_call_id: id.clone(),
            tool: name.clone(),
        });
        Begun { id, name, place, plan }
    }

    fn plan(&self, index: usize, call: &ToolCall) -> Result<Plan<'_>, AgentToolResult> {
        if index >= MAX_CALLS_PER_STEP {
            return Err(AgentToolResult::error(format!(
                "Not run: at most {MAX_CALLS_PER_STEP} tools can be called at once. Call the others again after these."
            )));
        }
        let tool = self.belt.iter().find(|tool| tool.name() == call.name);
        let is_task = call.name == TASK && !self.specialists.is_empty();
        if tool.is_none() && !is_task {
            // It does not say which tools there are: some may not be this caller's to know of.
            let name = shortened(&call.name);
            return Err(AgentToolResult::error(format!(
                "There is no tool called \"{name}\" here."
            )));
        }
        // What was read is only known in the conversation that it was read in; what was changed is changed for all.
        let by = match tool {
            Some(tool) if tool.is_mutating() => "",
            Some(_) | None => self.ids.prefix(),
        };
        if !self.turn.ledger().admit(by, &call.name, &call.arguments) {
            return Err(AgentToolResult::error(
                "Not run: this tool was called with the same arguments twice before in this turn. Use those results, \
                 or say what is in the way.",
            ));
        }
        if let Some(tool) = tool {
            return Ok(Plan::Run(tool));
        }
        let task = task::read(&call.arguments)?;
        let mut specialists = self.specialists.iter();
        specialists
            .find(|specialist| specialist.role.persona() == task.agent)
            .map(|specialist| Plan::Delegate(specialist, task))
            .ok_or_else(|| AgentToolResult::error("Invalid tool arguments: agent: nobody of that name can help here."))
    }

    async fn run_call(&self, call: &ToolCall, begun: &Begun<'_>) -> AgentToolResult {
        let result = match &begun.plan {
            Plan::Run(tool) => {
                let runtime = Runtime {
                    tool_call_id: begun.id.clone(),
                    writer: Some(self.writer(&begun.id)),
                    ..self.turn.runtime.clone()
                };
                tool.call(&call.arguments, &runtime).await
            }
            Plan::Delegate(specialist, task) => self.delegate(specialist, task, &begun.id).await,
            Plan::Refuse(refusal) => refusal.clone(),
        };
        self.turn.ledger().end(begun.place, result.is_data());
        tracing::info!(
            turn = %self.turn.message.turn_id, call = begun.id, tool = begun.name, done = result.is_data(), "called"
        );
        self.turn.report(TurnEvent::ToolEnded {
            agent: self.persona.name().to_owned(),
            tool_call_id: begun.id.clone(),
            tool: begun.name.clone(),
            outcome: match &result {
                AgentToolResult::Data { scope_context, .. } => ToolOutcome::ScopeContext(scope_context.clone()),
                AgentToolResult::Error { error } => ToolOutcome::Error(error.clone()),
            },
        });
        result
    }

    /// Has a specialist do something. Boxed, since it is the same loop within itself.
    fn delegate<'s>(&'s self, specialist: &'s Subagent, task: &'s Task, id: &'s str) -> BoxFuture<'s, AgentToolResult> {
        Box::pin(async move {
            let name = specialist.role.persona();
            self.turn.report(TurnEvent::Delegated {
                agent: name.to_owned(),
                tool_call_id: id.to_owned(),
                task: task.task.clone(),
            });
            let mut agent = Agent::specialist(self.turn, specialist, id);
            match agent.finish(&ThreadHistory::default(), &task.task).await {
                Ok(answer) => task::answered(name, &answer),
                Err(error) => {
                    let turn_id = self.turn.message.turn_id;
                    tracing::warn!(turn = %turn_id, call = id, %error, "a specialist without an answer");
                    let changed = self.turn.ledger().has_changed(agent.ids.prefix());
                    AgentToolResult::error(format!("{name} gave no answer: {}", error.text(changed)))
                }
            }
        })
    }

    /// Where a call shows its success.
    pub(super) fn writer(&self, id: &str) -> StreamWriter {
        let reporter = self.turn.reporter.clone();
        let (agent, tool_call_id) = (self.persona.name().to_owned(), id.to_owned());
        Arc::new(move |event| {
            if event.to_string().len() <= MAX_SHOWN_BYTES {
                let (agent, tool_call_id) = (agent.clone(), tool_call_id.clone());
                reporter.event(TurnEvent::Shown {
                    agent,
                    tool_call_id,
                    event,
                });
            }
            Ok(())
        })
    }
}

fn shortened(name: &str) -> String {
    name.chars()
        .filter(|character| !character.is_control())
        .take(MAX_NAME_CHARS)
        .collect()
}
