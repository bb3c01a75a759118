//! What crosses the broker for one turn: the message that the server hands to a worker, what the worker reports meanwhile, and the
//! answer that comes back.

use crate::{context::AgentRuntimeContext, envelope::PendingApproval};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// How often a turn message is delivered before it is dead. A turn that is kept is dispatched anew when its message is delivered again, so
/// that only one which ends its worker before the claim comes so far.
pub const TURN_DELIVERY_LIMIT: i32 = 3;

/// What a person reads whose turn was begun, and came to no end in its time.
pub const INTERRUPTED_TEXT: &str = "Working on your message was interrupted. Some of what you asked for may have been done; \
                                    please check before you ask for it again.";

/// The most of a report, in events: what gathers while one is on its way goes into the next.
pub const MAX_REPORTED_EVENTS: usize = 64;
/// The most that a success shows for itself, in bytes of JSON: it is made of the arguments, which can be anything.
pub const MAX_SHOWN_BYTES: usize = 64 * 1024;
/// The most tokens that one number of one answer counts, read or written. No model reads as much at once; an endpoint that counts
/// wrong is not to use up what a school has, nor to break its sums.
pub const MAX_COUNTED_TOKENS: u64 = 10_000_000;
/// The longest id of a call in its turn, in characters: what is kept of it is named by one more.
pub const MAX_TOOL_CALL_ID_CHARS: usize = 199;
/// How often a report is delivered before it is dead: a server that ends with it must not do so for ever.
pub const REPORT_DELIVERY_LIMIT: i32 = 20;
/// How many dead reports are kept; the oldest go first. Enough to see what went wrong, not a second store.
pub const MAX_DEAD_REPORTS: i32 = 10_000;

/// One turn, as the server dispatches it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnMessage {
    /// The turn.
    pub turn_id: Uuid,
    /// The grant that every tool call of this turn carries.
    pub grant: String,
    /// Everything the agents need to know about the caller and the moment.
    pub context: AgentRuntimeContext,
    /// What was said before in the same thread.
    #[serde(default)]
    pub history: ThreadHistory,
    /// What the person wrote.
    pub message: String,
    /// When the turn must have ended, in milliseconds since 1970.
    pub deadline_ms: i64,
    /// Which dispatch of the turn this is, from 1: each time that it goes on after it waited, it is dispatched anew. A message of an
    /// earlier dispatch is of no use any more. Zero for a turn that is not kept: it is not reported, cannot wait, and only its end is
    /// answered.
    #[serde(default)]
    pub dispatch: u32,
    /// The hash of the contract of all tools, as the server that dispatched the turn knows them. A worker of another contract runs the
    /// turn all the same: each of its calls says which contract of its own tool it knows.
    #[serde(default)]
    pub contract: Option<String>,
}

impl TurnMessage {
    /// Whether the turn is kept by the server, which is then told what happens in it as it happens.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.dispatch > 0
    }
}

/// Asks for the right to run a turn, and for how far it has come. Sent to the queue of reports, with an address for the reply; each
/// delivery of a turn message begins with one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnClaim {
    /// The turn.
    pub turn_id: Uuid,
    /// The turn's grant, as the proof that this worker was handed it.
    pub grant: String,
    /// The dispatch in the turn message.
    pub dispatch: u32,
    /// This delivery, by a name that the worker makes up; the same in each repetition of the claim.
    pub run: Uuid,
    /// Whether the broker says that the message was delivered before. Whoever had it then has lost it, and the turn is dispatched anew.
    pub redelivered: bool,
}

/// What comes of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "claim", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum TurnClaimed {
    /// The turn is this run's.
    Granted {
        /// Which attempt this is, from 1; its reports carry it.
        attempt: u32,
        /// Everything that was kept of the turn so far.
        journal: Vec<JournalEntry>,
    },
    /// It is not to be run: it has ended, waits, is somebody else's, or was dispatched anew. The message is done with.
    Refused {},
}

/// What is kept of a turn so that it can go on where it stopped: each answer of a model and each result of a call, once. A run asks no
/// model for an answer that is here, and runs no call whose result is here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kept", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum JournalEntry {
    /// What a model answered.
    Answer {
        /// In which conversation: the id of the supervisor's call that a specialist works for; empty for the supervisor's own.
        within: String,
        /// The step in that conversation, from 1.
        step: u32,
        /// The assistant's message, as the conversation goes on with it: the calls have the ids under which they are made.
        message: Value,
        /// What it cost, read and written, in tokens; about, where the endpoint does not say.
        tokens: u64,
    },
    /// What came of a call.
    Result {
        /// The call, by its id in the turn.
        tool_call_id: String,
        /// The result, as the model reads it.
        content: String,
        /// Whether it was done.
        succeeded: bool,
    },
}

impl JournalEntry {
    /// What the entry is about: unique in its turn, and the same whenever the turn comes to the same point.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Answer { within, step, .. } => format!("{within}#{step}"),
            Self::Result { tool_call_id, .. } => result_name(tool_call_id),
        }
    }
}

/// The name of the entry with a call's result. No id of a call has the character `=`.
#[must_use]
pub fn result_name(tool_call_id: &str) -> String {
    format!("={tool_call_id}")
}

/// What was said before in a thread, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadHistory {
    /// The turns that are told.
    pub turns: Vec<PastTurn>,
    /// How many older ones are left out; they would fill the model's view.
    pub left_out: u32,
}

/// A turn that has ended, as a model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastTurn {
    /// What the person wrote.
    pub message: String,
    /// What followed, as messages of the chat-completions protocol: the supervisor's, and the results of its calls.
    pub messages: Vec<Value>,
}

/// What happened in a turn, as the run that claimed it reports it to the server; with an address for the reply, which is
/// [`ReportTaken`]. One is sent after the other is taken, and again when no reply comes. One without events asks whether the turn is
/// to go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnReport {
    /// The turn.
    pub turn_id: Uuid,
    /// The turn's grant, as the proof that this worker was handed it.
    pub grant: String,
    /// Which attempt at the turn this is about, as the claim was answered.
    pub attempt: u32,
    /// The run that claimed it, by the name that it made up: an attempt can be guessed, and this cannot. A worker of an earlier version
    /// says none, and is known by its attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Uuid>,
    /// The place of the first of these events among all events of the attempt, from 1.
    pub first: u32,
    /// The events, in order, one place each.
    pub events: Vec<TurnEvent>,
    /// What is to be kept of the turn, with these events or not at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journal: Vec<JournalEntry>,
}

/// What a worker sends to the queue of reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ToTheBooks {
    /// What happened.
    Report(TurnReport),
    /// Somebody wants to run a turn.
    Claim(TurnClaim),
}

/// The reply to a report that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReportTaken {
    /// It is stored; go on.
    GoOn,
    /// The turn is to be stopped: somebody asked for it.
    Cancelled,
    /// The school's tokens for the day are used up.
    OverBudget,
    /// The attempt is over: the turn has ended, or is another run's. Nothing was stored; the message is done with.
    Superseded,
}

/// One thing that happened in a turn. `agent` is the persona that did it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum TurnEvent {
    /// A worker has begun.
    Started {},
    /// An agent says something; the next part of its text.
    Text {
        /// Who.
        agent: String,
        /// The part.
        delta: String,
    },
    /// A tool is being called.
    ToolStarted {
        /// By whom.
        agent: String,
        /// The call.
        tool_call_id: String,
        /// The tool's name.
        tool: String,
    },
    /// A tool's call has ended.
    ToolEnded {
        /// Whose call it was.
        agent: String,
        /// The call.
        tool_call_id: String,
        /// The tool's name.
        tool: String,
        /// How.
        #[serde(flatten)]
        outcome: ToolOutcome,
    },
    /// What a tool shows for itself once it has succeeded.
    Shown {
        /// Whose call it was.
        agent: String,
        /// The call.
        tool_call_id: String,
        /// What is shown.
        event: Value,
    },
    /// The supervisor hands work to a specialist.
    Delegated {
        /// To whom.
        agent: String,
        /// The supervisor's call.
        tool_call_id: String,
        /// What it is asked to do.
        task: String,
    },
    /// What one answer of the model cost, in tokens, as its endpoint says or as is estimated from the bytes.
    Usage {
        /// Whose.
        agent: String,
        /// Read by the model.
        input_tokens: u64,
        /// Written by it.
        output_tokens: u64,
    },
    /// An agent asks the person something; the call waits for the answer.
    Asked {
        /// Who.
        agent: String,
        /// The call; an answer names it.
        tool_call_id: String,
        /// What is asked.
        question: String,
        /// Answers to choose from; empty where any will do.
        choices: Vec<String>,
    },
    /// The person has answered.
    Answered {
        /// The call that asked.
        tool_call_id: String,
        /// What the person said.
        answer: String,
    },
    /// A call waits for a person's approval.
    ApprovalAsked {
        /// Whose call it is.
        agent: String,
        /// The call.
        tool_call_id: String,
        /// The tool's name.
        tool: String,
        /// What is asked for.
        #[serde(flatten)]
        pending: PendingApproval,
        /// A sentence on what the preview covers.
        scope_context: String,
    },
    /// It was decided whether a call may take effect, or it can no longer be.
    Decided {
        /// The call.
        tool_call_id: String,
        /// What was decided about.
        approval_id: Uuid,
        /// What became of it.
        decision: Decision,
    },
    /// Nothing more can be done before somebody answers or decides; the turn goes on then.
    Waiting {},
    /// The turn is over; nothing follows.
    Ended {
        /// How.
        outcome: TurnOutcome,
    },
    /// Something that only a newer version knows of, while it runs beside this one. It keeps its place, and nobody is told.
    #[serde(other)]
    Unknown,
}

/// What became of an approval that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It was approved, and what came of the call is known.
    Approved,
    /// A person said no.
    Rejected,
    /// Nobody decided in time.
    Expired,
    /// Whoever asked, or stopped the turn, took it back.
    Revoked,
    /// Other arguments took its place, and are decided about on their own.
    Replaced,
    /// It was approved, and would have done something else than was shown, which is decided about in its place.
    AskedAnew,
}

impl Decision {
    /// The word as it stands on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::Replaced => "replaced",
            Self::AskedAnew => "asked_anew",
        }
    }
}

/// How a tool's call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolOutcome {
    /// With data; the sentence says what it covers.
    ScopeContext(String),
    /// With an error, in the words that the model reads.
    Error(String),
}

/// What came of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnAnswer {
    /// The turn.
    pub turn_id: Uuid,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: TurnOutcome,
    /// The tool calls that were made, in order.
    #[serde(default)]
    pub tool_calls: Vec<ToolCallRecord>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TurnOutcome {
    /// The model answered; the text is for the person.
    Answer(String),
    /// It did not; the text is for the person.
    Error(String),
    /// Somebody who may stopped it; the text says what that leaves open.
    Cancelled(String),
}

/// One tool call of a turn, for the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallRecord {
    /// The model's id of the call.
    pub tool_call_id: String,
    /// The tool's name.
    pub name: String,
    /// Whether it was done.
    pub succeeded: bool,
    /// The approval that it waits for: it is neither done nor failed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Uuid>,
}

/// To every worker: a turn is to be stopped, whoever of them has it. It is a hint and no order, as nothing proves who sent it: whoever
/// has the turn asks the books ([`TurnReport`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelTurn {
    /// The turn.
    pub turn_id: Uuid,
}

/// The idempotency key of a tool call: the same however often the call is sent.
#[must_use]
pub fn idempotency_key(turn_id: Uuid, tool_call_id: &str) -> String {
    format!("{turn_id}:{tool_call_id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_flat_on_the_wire() {
        let event = |event| serde_json::to_value(&event).unwrap();
        let ended = TurnEvent::ToolEnded {
            agent: "Rover".into(),
            tool_call_id: "a".into(),
            tool: "list_staff".into(),
            outcome: ToolOutcome::Error("No.".into()),
        };
        let wire =
            json!({"type": "tool_ended", "agent": "Rover", "toolCallId": "a", "tool": "list_staff", "error": "No."});
        assert_eq!(event(ended.clone()), wire);
        assert_eq!(serde_json::from_value::<TurnEvent>(wire).unwrap(), ended);
        let answer = TurnEvent::Ended {
            outcome: TurnOutcome::Answer("Done.".into()),
        };
        assert_eq!(event(answer), json!({"type": "ended", "outcome": {"answer": "Done."}}));
        assert_eq!(event(TurnEvent::Started {}), json!({"type": "started"}));
    }

    #[test]
    fn an_event_of_a_newer_version_is_passed_over_and_one_that_is_wrong_is_not() {
        let read = serde_json::from_value::<TurnEvent>;
        assert_eq!(
            read(json!({"type": "danced", "agent": "Rover"})).unwrap(),
            TurnEvent::Unknown
        );
        assert!(read(json!({"type": "text", "agent": "Rover"})).is_err());
        assert!(read(json!({"agent": "Rover"})).is_err());
    }
}
