//! One tool call, in the order in which it runs. Every door ends here; nothing else runs a handler.
//!
//! ```text
//!  1  parse the envelope                       (the packet around it is the door's)
//!  2  identified      no `sub` or `type` → Missing tool-call identity.
//!  3  admit           the turn's grant, for exactly this identity and scope
//!  4  arguments       the tool that the caller knows, its schema, then its type
//!  5  tenant_of       no tenant → No school context for this user.
//!  6  in_tenant_scope one transaction of that tenant, READ ONLY for a read, alone with its key for a write
//!  7  rebuild         facts and ability, from the rows as they are now
//!  8  auth.admit      the posture's gate
//!  9  answered        a write's idempotency key: done before → the same reply
//! 10  Word            a person's approval, where the tool needs one: without it, 11 is undone and asked about
//! 11  run             the handler
//! 12  seal            one audit row and the reply, where its turn is open; commit
//! 13  describe        what the result covers
//! 14  to_tool_error   what the model may read of a failure
//! ```

use crate::{
    approval::{Approved, Preview, Request, Word},
    audit::{Act, audit_tool_write},
    clock,
    db::{Access, Database, DbError, Tx, approval::check_deferred},
    error::{Kind, ToolError, to_tool_error},
    grant::{Caller, GrantKey, own_key},
    hooks,
    idempotency::Claim,
    scope_context::describe_scope_context,
    standing::Standing,
    tenant::{Frame, in_tenant_scope, tenant_of},
    tools::{Arguments, Call, Done, Handler, Handlers},
};
use chrono::{DateTime, Utc};
use contract::{AgentCallScope, AgentIdentity, AgentToolResult, envelope::MAX_REPLY_DATA_BYTES};
use futures_util::FutureExt;
use serde_json::Value;
use std::{future::Future, panic::AssertUnwindSafe, time::Duration};
use uuid::Uuid;

/// How often a call that conflicts with another transaction is run, while its time lasts.
const MAX_ATTEMPTS: u32 = 5;

/// What every door hands in: the envelope as it came, and what came with it.
#[derive(Debug)]
pub struct Incoming {
    /// The event.
    pub event: String,
    /// The [`AgentToolRequest`](contract::AgentToolRequest), unparsed.
    pub request: Value,
    /// The turn's grant, if one came.
    pub grant: Option<String>,
    /// The idempotency key.
    pub key: String,
    /// When the caller stops waiting, in milliseconds since 1970.
    pub deadline_ms: i64,
    /// The hash of the tool's contract that the caller knows, if it says.
    pub contract: Option<String>,
}

/// The pipeline and all that it needs.
pub struct Pipeline {
    database: Database,
    grants: GrantKey,
    handlers: Handlers,
}

impl Pipeline {
    /// A pipeline over the registry.
    ///
    /// # Errors
    ///
    /// When the registry or the rule engine is broken.
    pub fn new(database: Database, grants: GrantKey) -> Result<Self, ToolError> {
        crate::ability::self_test()?;
        Ok(Self {
            database,
            grants,
            handlers: Handlers::of_registry()?,
        })
    }

    /// The handlers of the registry.
    #[must_use]
    pub const fn handlers(&self) -> &Handlers {
        &self.handlers
    }

    /// The database.
    pub(crate) const fn database(&self) -> &Database {
        &self.database
    }

    /// The key that grants are signed with.
    pub(crate) const fn grants(&self) -> &GrantKey {
        &self.grants
    }

    /// Runs one call. Never fails and never panics: whatever happens is a result that a model can read.
    pub async fn execute(&self, incoming: Incoming) -> AgentToolResult {
        let label = incoming.event.clone();
        // as claimed: a denial may be because the claim is not proven
        let who = incoming
            .request
            .pointer("/identity/sub")
            .and_then(Value::as_str)
            .and_then(|sub| sub.parse::<Uuid>().ok());
        match limited(incoming.deadline_ms, Box::pin(self.ask_or_do(incoming))).await {
            Ok(result) => result,
            Err(error) => {
                if error.kind() == Kind::Denial {
                    tracing::info!(target: "denials", who = ?who, event = label, why = %error, "denied");
                }
                AgentToolResult::error(to_tool_error(&error, &label))
            }
        }
    }

    /// Runs a call again that a person approved. Where it would no longer do what was approved, nothing is done, and what it would do
    /// is handed to whoever asks about it.
    ///
    /// # Errors
    ///
    /// Whatever ends the call, as at any other.
    pub(crate) async fn carry_out(
        &self,
        incoming: Incoming,
        approved: &Approved,
    ) -> Result<Option<(Admission<'_>, Preview)>, ToolError> {
        let word = Word::Approved(approved);
        let deadline_ms = incoming.deadline_ms;
        let run = async {
            let call = self.admit(incoming)?;
            match self.run(&call, word).await? {
                End::Reply(_) => Ok(None),
                End::Asks(preview) => Ok(Some((call, preview))),
            }
        };
        limited(deadline_ms, Box::pin(run)).await
    }

    /// Runs a call whose arguments a person changed, undoes it, and hands what it would do to whoever asks about it.
    ///
    /// # Errors
    ///
    /// Whatever ends the call, as at any other.
    pub(crate) async fn try_out(&self, incoming: Incoming) -> Result<(Admission<'_>, Preview), ToolError> {
        let deadline_ms = incoming.deadline_ms;
        let tried = async {
            let call = self.admit(incoming)?;
            match self.run(&call, Word::Changed).await? {
                End::Asks(preview) => Ok((call, preview)),
                End::Reply(_) => Err(ToolError::Conflict("This call needs no approval any more.".to_owned())),
            }
        };
        limited(deadline_ms, Box::pin(tried)).await
    }

    /// A call as every door makes it.
    async fn ask_or_do(&self, incoming: Incoming) -> Result<AgentToolResult, ToolError> {
        let call = self.admit(incoming)?;
        let preview = match self.run(&call, Word::Unsaid).await? {
            End::Reply(result) => return Ok(result),
            End::Asks(preview) => preview,
        };
        let (tenant, limit) = (tenant_of(&call.caller)?, call.left()?);
        let mut tx = self.database.begin_writing(tenant, &call.key, limit).await?;
        let pending = call.request().ask(&mut tx, &preview).await?;
        tx.commit().await?;
        Ok(pending)
    }

    /// Steps 2 to 5.
    fn admit(&self, incoming: Incoming) -> Result<Admission<'_>, ToolError> {
        let unknown = || ToolError::unknown_event(&incoming.event, incoming.contract.as_deref());
        let handler = self.handlers.get(&incoming.event).ok_or_else(unknown)?;
        let (identity, scope, args) = identified(incoming.request)?;
        let caller = self.grants.admit(identity, scope, incoming.grant.as_deref())?;
        own_key(&caller, &incoming.key)?;
        handler.means(incoming.contract.as_deref())?;
        let arguments = handler.arguments(args)?;
        tenant_of(&caller)?;
        Ok(Admission {
            handler,
            caller,
            arguments,
            key: incoming.key,
            deadline_ms: incoming.deadline_ms,
        })
    }

    /// Steps 6 to 13, again after a conflict.
    async fn run(&self, call: &Admission<'_>, word: Word<'_>) -> Result<End, ToolError> {
        let access = access_of(call.handler, &call.key);
        let topics = call.arguments.topics();
        let mut attempt = 1;
        loop {
            let began = clock::now();
            let frame = in_tenant_scope(&self.database, &call.caller, access, call.left()?, topics).await?;
            match in_transaction(frame, call, word, began).await {
                Err(error) if error.is_transient() && attempt < MAX_ATTEMPTS => attempt += 1,
                result => return result,
            }
            tokio::time::sleep(Duration::from_millis(5 << attempt)).await;
        }
    }
}

/// A call that was admitted, before it is run.
pub(crate) struct Admission<'a> {
    handler: &'a Handler,
    caller: Caller,
    arguments: Arguments,
    key: String,
    deadline_ms: i64,
}

impl Admission<'_> {
    /// The call as it is asked about.
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            caller: &self.caller,
            handler: self.handler,
            arguments: &self.arguments,
            key: &self.key,
        }
    }

    fn left(&self) -> Result<Duration, ToolError> {
        clock::left_until(self.deadline_ms).ok_or(ToolError::Expired)
    }
}

/// How a call ends that was not refused.
enum End {
    /// With its reply; a write's effect was made, now or before.
    Reply(AgentToolResult),
    /// Undone, as a person must say yes to this first.
    Asks(Preview),
}

/// Runs something of a call in its time, whatever happens in it. It comes boxed, as it would else be held several times over.
async fn limited<T>(deadline_ms: i64, run: impl Future<Output = Result<T, ToolError>>) -> Result<T, ToolError> {
    let in_time = async {
        let left = clock::left_until(deadline_ms).ok_or(ToolError::Expired)?;
        tokio::time::timeout(left, run).await.map_err(|_| ToolError::TimedOut)?
    };
    let result = AssertUnwindSafe(in_time).catch_unwind().await;
    result.unwrap_or_else(|panic| Err(ToolError::Panicked(panic_text(&*panic))))
}

/// Steps 7 to 13, in one transaction that is either committed whole or undone.
async fn in_transaction(
    mut frame: Frame,
    call: &Admission<'_>,
    word: Word<'_>,
    began: DateTime<Utc>,
) -> Result<End, ToolError> {
    match in_frame(&mut frame, call, word, began).await {
        Ok(End::Reply(result)) if call.handler.tool.definition.event.is_mutating() => {
            frame.tx.commit().await.map_err(commit_failed)?;
            hooks::between_effect_and_reply().await;
            Ok(End::Reply(result))
        }
        Ok(End::Asks(preview)) => {
            check_deferred(&mut frame.tx).await?;
            // it is asked about on another connection, and the key is free for that
            frame.tx.rollback().await?;
            Ok(End::Asks(preview))
        }
        result => {
            end_unchanged(frame.tx);
            result
        }
    }
}

/// A commit that was refused was not made; of one that got no answer nobody knows.
fn commit_failed(error: DbError) -> ToolError {
    if let DbError::Unavailable(_) = error {
        tracing::error!(%error, "a commit got no answer");
        return ToolError::InDoubt;
    }
    error.into()
}

/// Nobody waits for the end of a frame that changed nothing; a process that ends first ends it as well.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing is lost with this task, and its panics would be sqlx's"
)]
fn end_unchanged(tx: Tx) {
    tokio::spawn(async move {
        if let Err(error) = tx.rollback().await {
            tracing::debug!(%error, "a frame could not be rolled back; its connection is closed");
        }
    });
}

async fn in_frame(
    frame: &mut Frame,
    admission: &Admission<'_>,
    word: Word<'_>,
    began: DateTime<Utc>,
) -> Result<End, ToolError> {
    let Admission {
        handler,
        caller,
        arguments,
        key,
        ..
    } = admission;
    let event = handler.tool.definition.event;
    let standing = Standing::rebuild(frame, caller)?;
    let admitted = handler.auth.admit(&standing)?;
    let claim = Claim::of(caller, event, key, arguments.value())?;
    if handler.tool.definition.approval.is_needed()
        && let Some(reply) = word.answered(&mut frame.tx, caller, event.as_str(), &claim).await?
    {
        return Ok(End::Reply(reply));
    }
    if let Some(reply) = claim.answered(frame.earlier.take())? {
        return Ok(End::Reply(reply));
    }
    let tx = &mut frame.tx;
    let mut call = Call::new(&standing, caller.scope(), admitted, tx);
    hooks::in_handler(key);
    let Done { mut data, written } = handler.run(arguments, &mut call).await?;
    let coverage = call.into_coverage();
    let cut = cut_to_size(&mut data)?;
    let scope_context = describe_scope_context(handler.auth, &standing, &coverage, cut);
    let Some(written) = written else {
        return Ok(End::Reply(AgentToolResult::Data { data, scope_context }));
    };
    let preview = Preview {
        data,
        scope_context,
        began,
        written,
    };
    if !word.lets_through(handler, &preview) {
        return Ok(End::Asks(preview));
    }
    let reply = word.reply(preview.data, preview.scope_context, arguments.value());
    let act = Act {
        caller,
        standing: &standing,
        event,
        claim: &claim,
        approval: word.approval(),
        arguments: arguments.value(),
    };
    audit_tool_write(tx, act, written, &reply).await?;
    word.fulfil(tx, &reply).await?;
    Ok(End::Reply(reply))
}

/// Step 2: whoever has no `sub` or no `type` is nobody, and then the envelope must read as one.
fn identified(request: Value) -> Result<(AgentIdentity, AgentCallScope, Value), ToolError> {
    let Value::Object(mut request) = request else {
        return Err(ToolError::Malformed("the request is no object".to_owned()));
    };
    let identity = request.remove("identity").unwrap_or_default();
    let has = |member: &str| {
        identity
            .get(member)
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    if !has("sub") || !has("type") {
        return Err(ToolError::MissingIdentity);
    }
    let unreadable = |what: &'static str| move |_| ToolError::Malformed(format!("the {what} cannot be read"));
    let identity = serde_json::from_value(identity).map_err(unreadable("identity"))?;
    // serde would read a list as well
    let scope = request.remove("scope").filter(Value::is_object).unwrap_or_default();
    let scope = serde_json::from_value(scope).map_err(unreadable("scope"))?;
    Ok((identity, scope, request.remove("args").unwrap_or_default()))
}

fn access_of<'a>(handler: &Handler, key: &'a str) -> Access<'a> {
    if handler.tool.definition.event.is_mutating() {
        Access::Write { key }
    } else if handler.one_plan {
        Access::ReadAsPlanned
    } else {
        Access::Read
    }
}

/// Cuts the longest list of a result that is too large for a reply, at a row. Answers how many rows that left out.
fn cut_to_size(data: &mut Value) -> Result<usize, ToolError> {
    let mut size = serde_json::to_vec(data)?.len();
    if size <= MAX_REPLY_DATA_BYTES {
        return Ok(0);
    }
    let rows = match data {
        Value::Array(rows) => rows,
        Value::Object(members) => members
            .values_mut()
            .filter_map(Value::as_array_mut)
            .max_by_key(|rows| rows.len())
            .ok_or(ToolError::TooLarge)?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(ToolError::TooLarge),
    };
    let mut cut = 0;
    while size > MAX_REPLY_DATA_BYTES {
        let row = rows.pop().ok_or(ToolError::TooLarge)?;
        size = size.saturating_sub(serde_json::to_vec(&row)?.len() + 1);
        cut += 1;
    }
    Ok(cut)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "of an unknown kind".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nobody_is_told_before_anything_else() {
        for identity in [
            json!(null),
            json!({}),
            json!({"sub": ""}),
            json!({"sub": "x"}),
            json!({"type": "STAFF"}),
            json!(7),
        ] {
            let error = identified(json!({"identity": identity, "args": 7})).unwrap_err();
            assert_eq!(error.to_string(), "Missing tool-call identity.");
        }
        let unreadable = identified(json!({"identity": {"sub": "x", "type": "STAFF"}})).unwrap_err();
        assert!(matches!(unreadable, ToolError::Malformed(_)));
    }

    #[test]
    fn results_are_cut_at_rows() {
        let mut data = json!({"name": "x", "rows": (0..100).map(|_| "y".repeat(1000)).collect::<Vec<_>>()});
        let cut = cut_to_size(&mut data).unwrap();
        assert_eq!(cut + data["rows"].as_array().unwrap().len(), 100);
        assert!(cut > 0 && serde_json::to_vec(&data).unwrap().len() <= MAX_REPLY_DATA_BYTES);
        assert!(matches!(
            cut_to_size(&mut json!("x".repeat(MAX_REPLY_DATA_BYTES))),
            Err(ToolError::TooLarge)
        ));
        assert_eq!(cut_to_size(&mut json!({"small": true})).unwrap(), 0);
    }
}
