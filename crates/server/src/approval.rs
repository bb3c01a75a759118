//! Step 10: what a person must approve is run twice. Without a person's word the call runs to its end and is undone: what it answered
//! is the preview, and a row waits for a decision. With the word it runs again, whole, and takes effect only where it still does what
//! was previewed.
//!
//! The word is no permission. It never comes with a call: whoever decides has the call run again by the server itself, under the same
//! key, so that at most one effect is made of it with whatever arguments.

mod preview;

use self::preview::{Shown, same};
use crate::{
    audit::{Written, tool_call_id},
    db::{
        Tx,
        approval::{self as rows, Asked, NewApproval},
    },
    error::ToolError,
    grant::Caller,
    idempotency::Claim,
    tools::{Arguments, Handler},
};
use chrono::{DateTime, Utc};
use contract::{AgentToolResult, envelope::PendingApproval};
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

/// How long a decision may be waited for.
const LASTS: Duration = Duration::from_hours(24);
/// What the model reads where the same call was asked for before, in the same turn.
const ASKED_BEFORE: &str = "This was already asked for in this turn, and it was not approved as it was. It was not done, and nobody is \
                            asked again. Do not repeat it; tell the person what you can do instead.";
/// What the model reads where the same call waits already, in the same turn.
const WAITS_ALREADY: &str = "The same call waits for the person's decision already in this turn, and it is asked about once. Nothing was \
                             done for this one, and it is not asked about; what becomes of the other counts for both. Do not repeat it.";
/// What the model reads of a call of which nobody can decide any more, since its turn has ended or its requester has left.
pub(crate) const REVOKED: &str = "This was taken back before anybody decided about it, so it was not done. Do not ask again for it unless the person does.";

/// What a person has said about a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Word<'a> {
    /// Nothing yet: each call that comes in by a door.
    Unsaid,
    /// To change its arguments, which are then asked about.
    Changed,
    /// Yes.
    Approved(&'a Approved),
}

/// A yes, and what it was said about.
#[derive(Debug)]
pub(crate) struct Approved {
    pub(crate) school: Uuid,
    pub(crate) id: Uuid,
    pub(crate) contract_hash: String,
    pub(crate) preview: Value,
    pub(crate) scope_context: String,
    pub(crate) previewed_at: DateTime<Utc>,
    /// Whether these are other arguments than the model had asked for.
    pub(crate) is_changed: bool,
}

/// What a call would do, or would do by now.
#[derive(Debug)]
pub(crate) struct Preview {
    pub(crate) data: Value,
    pub(crate) scope_context: String,
    /// When its frame began.
    pub(crate) began: DateTime<Utc>,
    pub(crate) written: Written,
}

impl Preview {
    fn shown(&self) -> Shown<'_> {
        Shown {
            data: &self.data,
            scope_context: &self.scope_context,
            began: self.began,
        }
    }
}

impl Word<'_> {
    /// The approval under which a call runs.
    pub(crate) fn approval(self) -> Option<Uuid> {
        match self {
            Self::Unsaid | Self::Changed => None,
            Self::Approved(approved) => Some(approved.id),
        }
    }

    /// What is there to answer a call with before it is run: what came of the same call before, or that it still waits.
    ///
    /// # Errors
    ///
    /// [`ToolError::KeyReused`] where the key asked for another call, and a conflict where this one was asked for under another key,
    /// and not approved.
    pub(crate) async fn answered(
        self,
        tx: &mut Tx,
        caller: &Caller,
        event: &str,
        claim: &Claim<'_>,
    ) -> Result<Option<AgentToolResult>, ToolError> {
        if !matches!(self, Self::Unsaid) {
            return Ok(None);
        }
        if let Some(standing) = standing(rows::asked(tx, claim.key().text).await?, claim)? {
            return Ok(Some(standing));
        }
        match caller.turn_id() {
            Some(turn) if rows::was_refused(tx, turn, event, claim.key().digest).await? => {
                Err(ToolError::Conflict(ASKED_BEFORE.to_owned()))
            }
            _ => Ok(None),
        }
    }

    /// Whether the call may take effect as it has just run. Else it is undone, and the preview is to be decided about.
    pub(crate) fn lets_through(self, handler: &Handler, preview: &Preview) -> bool {
        match self {
            Self::Unsaid => !handler.tool.definition.approval.is_needed(),
            Self::Changed => false,
            Self::Approved(approved) => {
                let then = Shown {
                    data: &approved.preview,
                    scope_context: &approved.scope_context,
                    began: approved.previewed_at,
                };
                approved.contract_hash == handler.contract_hash && same(then, preview.shown())
            }
        }
    }

    /// The reply to a call that takes effect. Where a person changed its arguments, the model must know with which it was done.
    pub(crate) fn reply(self, data: Value, scope_context: String, arguments: &Value) -> AgentToolResult {
        let scope_context = match self {
            Self::Approved(Approved { is_changed: true, .. }) => format!(
                "{scope_context} The person changed what you asked for before it was approved; it was done with these arguments instead: \
                 {arguments}. Do not ask for the original again."
            ),
            Self::Unsaid | Self::Changed | Self::Approved(_) => scope_context,
        };
        AgentToolResult::Data { data, scope_context }
    }

    /// Ends the approval of a call that takes effect, with it.
    pub(crate) async fn fulfil(self, tx: &mut Tx, reply: &AgentToolResult) -> Result<(), ToolError> {
        if let Self::Approved(approved) = self {
            rows::executed(tx, approved.school, approved.id, &serde_json::to_value(reply)?).await?;
        }
        Ok(())
    }
}

/// A call that is to be asked about.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) handler: &'a Handler,
    pub(crate) arguments: &'a Arguments,
    pub(crate) key: &'a str,
}

impl Request<'_> {
    /// Asks about it, once a key and once a call of a turn, and answers what waits then.
    ///
    /// # Errors
    ///
    /// A conflict where the same call waits under another key, or what it would do was not approved in the turn before, whatever its
    /// arguments were.
    pub(crate) async fn ask(self, tx: &mut Tx, preview: &Preview) -> Result<AgentToolResult, ToolError> {
        let claim = self.claim()?;
        if let Some(turn) = self.caller.turn_id() {
            let event = self.handler.tool.definition.event.as_str();
            let refused = rows::refused(tx, turn, event).await?;
            let is_it = |refused: &rows::Refused| {
                let then = Shown {
                    data: &refused.preview,
                    scope_context: &refused.scope_context,
                    began: refused.previewed_at,
                };
                same(then, preview.shown())
            };
            if refused.iter().any(is_it) {
                return Err(ToolError::Conflict(ASKED_BEFORE.to_owned()));
            }
        }
        self.store(tx, &claim, preview, None).await?;
        let pending = standing(rows::asked(tx, self.key).await?, &claim)?;
        pending.ok_or_else(|| ToolError::Conflict(WAITS_ALREADY.to_owned()))
    }

    /// Asks about it in place of another approval of the same key, which is final by then: a person changed its arguments to these, or it
    /// would do something else by now. None where the same call of the turn waits under another key.
    pub(crate) async fn ask_instead(
        self,
        tx: &mut Tx,
        preview: &Preview,
        replaced: Uuid,
    ) -> Result<Option<Uuid>, ToolError> {
        let claim = self.claim()?;
        self.store(tx, &claim, preview, Some(replaced)).await
    }

    fn claim(&self) -> Result<Claim<'_>, ToolError> {
        let event = self.handler.tool.definition.event;
        Claim::of(self.caller, event, self.key, self.arguments.value())
    }

    async fn store(
        &self,
        tx: &mut Tx,
        claim: &Claim<'_>,
        preview: &Preview,
        replaces: Option<Uuid>,
    ) -> Result<Option<Uuid>, ToolError> {
        let (caller, identity) = (self.caller, self.caller.identity());
        let new = NewApproval {
            school_id: identity.school_id.unwrap_or(preview.written.subject.school_id),
            turn_id: caller.turn_id(),
            tool_call_id: tool_call_id(caller, self.key),
            key: self.key,
            event: self.handler.tool.definition.event.as_str(),
            arguments: self.arguments.value(),
            digest: claim.key().digest,
            requester: identity.sub,
            identity: &serde_json::to_value(identity)?,
            scope: &serde_json::to_value(caller.scope())?,
            door: caller.door().as_str(),
            shown: shown(self.handler, preview),
            replaces,
            lasts: LASTS,
        };
        Ok(rows::ask(tx, new).await?)
    }
}

/// What is decided about.
fn shown<'a>(handler: &'a Handler, preview: &'a Preview) -> rows::Shown<'a> {
    let approver = handler.tool.definition.approval.approver();
    rows::Shown {
        contract_hash: &handler.contract_hash,
        campus_id: preview.written.subject.campus_id,
        preview: &preview.data,
        scope_context: &preview.scope_context,
        previewed_at: preview.began,
        approver_action: approver.map(|(action, _)| action.as_str()),
        approver_resource: approver.map(|(_, resource)| resource.as_str()),
    }
}

/// How a call stands that was asked for before: of what took its place, the last counts.
fn standing(mut asked: Vec<Asked>, claim: &Claim<'_>) -> Result<Option<AgentToolResult>, ToolError> {
    let Some(first) = asked.first() else { return Ok(None) };
    if !claim.is_of(&first.event, first.requester, &first.digest) {
        return Err(ToolError::KeyReused);
    }
    let Some(last) = asked.pop() else { return Ok(None) };
    Ok(Some(match last.result {
        Some(result) => serde_json::from_value(result)?,
        None => AgentToolResult::Pending {
            pending: PendingApproval {
                approval_id: last.id,
                preview: last.preview,
                expires_at: last.expires_at,
            },
            scope_context: last.scope_context,
        },
    }))
}
