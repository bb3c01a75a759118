//! The loop of one agent: ask the model, run the calls that it makes, give it the results, ask again, to a bound of
//! steps.
//!
//! An answer that was kept is not asked for again, and a call whose result was kept is not run again, so that a run goes
//! through what was done before it and then on. An answer is kept before any of its calls is run.
//!
//! The supervisor and the specialists run the same loop, each with a conversation and a belt of its own. A specialist
//! runs inside one call of the supervisor, and what it says last is that call's result.

use super::{
    Turn, TurnError,
    history::{CallIds, History, size_of},
    journal::{Answer, CallResult},
    question::{self, ASK_USER, Question},
    task::{self, TASK, Task},
};
use crate::{
    agents::{Asking, Briefing, Persona, Subagent, system_prompt},
    context::{Runtime, StreamWriter},
    model::ToolCall,
    proxy::{BeltTool, envelope_text, waits_elsewhere},
};
use contract::{
    AgentToolResult,
    turn::{MAX_SHOWN_BYTES, ThreadHistory, ToolOutcome, TurnEvent},
};
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use std::sync::Arc;

/// How often the model is asked by one agent for one task. A task of a school takes two to five; the rest is a model
/// going in circles.
pub const MAX_STEPS: u32 = 8;
/// How many calls of one step are run. More at once is a model out of control.
const MAX_CALLS_PER_STEP: usize = 16;
/// The most of an unknown tool's name that is repeated.
const MAX_NAME_CHARS: usize = 64;
/// The longest text of one answer. A person reads a fraction of it; the rest is a model in a loop.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// How an agent's work comes to rest.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It said its last word.
    Said(String),
    /// It can do nothing more before the person has answered or decided.
    Waits,
}

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
    Ask(Question),
    Refuse(AgentToolResult),
    /// Nothing: what came of it was kept, and told by whoever kept it.
    Known(CallResult),
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

    /// What comes of a message.
    pub(super) async fn finish(&mut self, thread: &ThreadHistory, message: &str) -> Result<Rest, TurnError> {
        let tools = self.offers();
        let mut history = History::new(&self.prompt(thread.left_out), thread, message);
        for step in 1..=MAX_STEPS {
            let Answer { text, calls } = self.answer(step, &history, &tools).await?;
            if calls.is_empty() {
                return text.map(Rest::Said).ok_or(TurnError::NoAnswer);
            }
            if step == MAX_STEPS {
                // Calls whose results nobody would read are not made.
                break;
            }
            history.push_calls(text.as_deref(), &calls);
            // No call is run of which the books do not know why.
            self.turn.reporter.all_taken().await;
            let Some(results) = self.run_calls(&calls).await else {
                return Ok(Rest::Waits);
            };
            let room = results.iter().map(String::len).sum();
            history.push_results(&calls, results);
            self.turn.ledger().take_room(room)?;
        }
        Err(TurnError::StepBound)
    }

    fn prompt(&self, left_out: u32) -> String {
        let roles: Vec<_> = self.specialists.iter().map(|specialist| specialist.role).collect();
        let briefing = Briefing {
            specialists: &roles,
            messages_left_out: left_out,
            asking: if self.turn.message.is_kept() {
                Asking::Possible
            } else {
                Asking::Impossible
            },
        };
        system_prompt(self.persona, &self.turn.message.context, briefing)
    }

    /// The answer of a step: the one that was kept, or the model's, which is kept then.
    async fn answer(&mut self, step: u32, history: &History, tools: &[Value]) -> Result<Answer, TurnError> {
        if let Some(kept) = self.turn.journal.answer(self.ids.conversation(), step) {
            self.ids.take(&kept.calls);
            self.make_room(&kept)?;
            return Ok(kept);
        }
        let (answer, tokens) = self.ask(step, history, tools).await?;
        self.make_room(&answer)?;
        // What is nothing, or whose calls are not made, is not gone on from.
        let is_last_word = answer.calls.is_empty() && answer.text.is_some();
        let is_step = !answer.calls.is_empty() && step < MAX_STEPS;
        if is_last_word || is_step {
            let entry = answer.entry(self.ids.conversation(), step, tokens)?;
            self.turn.reporter.keep(entry);
        }
        Ok(answer)
    }

    fn make_room(&self, answer: &Answer) -> Result<(), TurnError> {
        if answer.calls.is_empty() {
            return Ok(());
        }
        let room = size_of(answer.text.as_deref(), &answer.calls);
        self.turn.ledger().take_room(room)
    }

    /// Its tools, as the protocol offers them.
    fn offers(&self) -> Vec<Value> {
        let offer = |tool: &BeltTool| {
            json!({
                "type": "function",
                "function": {"name": tool.name(), "description": tool.description(), "parameters": tool.schema()},
            })
        };
        let ask = self.turn.message.is_kept().then(question::offer);
        let task = (!self.specialists.is_empty()).then(|| task::offer(self.specialists));
        self.belt.iter().map(offer).chain(ask).chain(task).collect()
    }

    /// Asks the model, and tells what it says while it says it. With what that cost, in tokens.
    async fn ask(&mut self, step: u32, history: &History, tools: &[Value]) -> Result<(Answer, u64), TurnError> {
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
        let mut tokens = 0;
        if let Some(usage) = completion.usage {
            tokens = self.turn.ledger().spend(usage);
            self.turn.report(TurnEvent::Usage {
                agent: agent.to_owned(),
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
            });
        }
        if let Some(text) = &mut completion.text {
            text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        }
        let answer = Answer {
            text: completion.text,
            calls: self.ids.make_unique(step, completion.calls),
        };
        Ok((answer, tokens))
    }

    /// Runs the calls of one step, all at once; results in the order of the calls, or none where some wait for the person.
    async fn run_calls(&self, calls: &[ToolCall]) -> Option<Vec<String>> {
        let begun: Vec<Begun<'_>> = calls
            .iter()
            .enumerate()
            .map(|(index, call)| self.begin(index, call))
            .collect();
        let results = join_all(calls.iter().zip(&begun).map(|(call, begun)| self.run_call(call, begun))).await;
        results.into_iter().map(|result| Some(result?.content)).collect()
    }

    /// Writes a call down, and decides whether it is run.
    fn begin(&self, index: usize, call: &ToolCall) -> Begun<'_> {
        let (id, name) = (self.ids.in_turn(&call.id), shortened(&call.name));
        // Also where it was run before: it counts as often.
        let plan = self.plan(index, call).unwrap_or_else(Plan::Refuse);
        let known = self.turn.journal.result(&id);
        let mut ledger = self.turn.ledger();
        let place = ledger.begin(&id, &name);
        if matches!(plan, Plan::Run(tool) if tool.is_mutating()) {
            ledger.change(&id);
        }
        if known.is_some() && matches!(plan, Plan::Delegate(..)) {
            ledger.count_finished(&self.turn.journal, &id);
        }
        drop(ledger);
        let plan = known.cloned().map_or(plan, Plan::Known);
        if !matches!(plan, Plan::Known(_)) && !self.turn.journal.has_begun(&id) {
            self.turn.report(TurnEvent::ToolStarted {
                agent: self.persona.name().to_owned(),
                tool_call_id: id.clone(),
                tool: name.clone(),
            });
        }
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
        let is_question = call.name == ASK_USER && self.turn.message.is_kept();
        if tool.is_none() && !is_task && !is_question {
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
        if is_question {
            return question::read(&call.arguments).map(Plan::Ask);
        }
        let task = task::read(&call.arguments)?;
        let mut specialists = self.specialists.iter();
        specialists
            .find(|specialist| specialist.role.persona() == task.agent)
            .map(|specialist| Plan::Delegate(specialist, task))
            .ok_or_else(|| AgentToolResult::error("Invalid tool arguments: agent: nobody of that name can help here."))
    }

    /// What came of a call; none where it waits for the person.
    async fn run_call(&self, call: &ToolCall, begun: &Begun<'_>) -> Option<CallResult> {
        let result = match &begun.plan {
            Plan::Run(tool) => {
                let runtime = Runtime {
                    tool_call_id: begun.id.clone(),
                    writer: Some(self.writer(&begun.id)),
                    ..self.turn.runtime.clone()
                };
                tool.call(&call.arguments, &runtime).await
            }
            Plan::Delegate(specialist, task) => self.delegate(specialist, task, &begun.id).await?,
            Plan::Ask(question) => {
                self.turn.report(TurnEvent::Asked {
                    agent: self.persona.name().to_owned(),
                    tool_call_id: begun.id.clone(),
                    question: question.question.clone(),
                    choices: question.choices.clone(),
                });
                return None;
            }
            Plan::Refuse(refusal) => refusal.clone(),
            Plan::Known(result) => {
                self.turn.ledger().end(begun.place, result.succeeded);
                return Some(result.clone());
            }
        };
        self.settle(begun, result)
    }

    /// Tells how a call ended and has it kept; or that it waits for an approval.
    fn settle(&self, begun: &Begun<'_>, result: AgentToolResult) -> Option<CallResult> {
        let (agent, tool_call_id) = (self.persona.name().to_owned(), begun.id.clone());
        let succeeded = result.is_data();
        let outcome = match &result {
            AgentToolResult::Pending { pending, scope_context } if self.turn.message.is_kept() => {
                self.turn.report(TurnEvent::ApprovalAsked {
                    agent,
                    tool_call_id,
                    tool: begun.name.clone(),
                    pending: pending.clone(),
                    scope_context: scope_context.clone(),
                });
                return None;
            }
            AgentToolResult::Pending { pending, scope_context } => {
                self.turn.ledger().leave(begun.place, pending.approval_id);
                ToolOutcome::ScopeContext(scope_context.clone())
            }
            AgentToolResult::Data { scope_context, .. } => ToolOutcome::ScopeContext(scope_context.clone()),
            AgentToolResult::Error { error } => ToolOutcome::Error(error.clone()),
        };
        self.turn.ledger().end(begun.place, succeeded);
        tracing::info!(
            turn = %self.turn.message.turn_id, call = begun.id, tool = begun.name, done = succeeded, "called"
        );
        let result = CallResult {
            content: envelope_text(&waits_elsewhere(result)),
            succeeded,
        };
        // The end before the result: should only the first be stored, the call is run again under its key.
        self.turn.report(TurnEvent::ToolEnded {
            agent,
            tool_call_id,
            tool: begun.name.clone(),
            outcome,
        });
        self.turn.reporter.keep(result.entry(&begun.id));
        Some(result)
    }

    /// Has a specialist do something; none where it waits. Boxed, since it is the same loop within itself.
    fn delegate<'s>(
        &'s self,
        specialist: &'s Subagent,
        task: &'s Task,
        id: &'s str,
    ) -> BoxFuture<'s, Option<AgentToolResult>> {
        Box::pin(async move {
            let name = specialist.role.persona();
            if !self.turn.journal.has_begun(id) {
                self.turn.report(TurnEvent::Delegated {
                    agent: name.to_owned(),
                    tool_call_id: id.to_owned(),
                    task: task.task.clone(),
                });
            }
            let mut agent = Agent::specialist(self.turn, specialist, id);
            match agent.finish(&ThreadHistory::default(), &task.task).await {
                Ok(Rest::Said(answer)) => Some(task::answered(name, &answer)),
                Ok(Rest::Waits) => None,
                Err(error) => {
                    let turn_id = self.turn.message.turn_id;
                    tracing::warn!(turn = %turn_id, call = id, %error, "a specialist without an answer");
                    let changed = self.turn.ledger().has_changed(agent.ids.prefix());
                    let text = format!("{name} gave no answer: {}", error.text(changed));
                    Some(AgentToolResult::error(text))
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
