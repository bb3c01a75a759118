//! One tool call, in the order in which it runs. Every door ends here; nothing else runs a handler.
//!
//! ```text
//!  1  parse the envelope                       (the packet around it is the door's)
//!  2  identified      no `sub` or `type` → Missing tool-call identity.
//!  3  admit           the turn's grant, for exactly this identity and scope
//!  4  arguments       the tool's schema, then its type
//!  5  tenant_of       no tenant → No school context for this user.
//!  6  in_tenant_scope one transaction of that tenant, READ ONLY for a read, alone with its key for a write
//!  7  rebuild         facts and ability, from the rows as they are now
//!  8  auth.admit      the posture's gate
//!  9  answered        a write's idempotency key: done before → the same reply
//! 10                  approval, where a tool needs one (not yet: such tools run at once)
//! 11  run             the handler
//! 12  seal            one audit row and the reply, in the same transaction; commit
//! 13  describe        what the result covers
//! 14  to_tool_error   what the model may read of a failure
//! ```

use crate::{
    audit::{Act, audit_tool_write},
    clock,
    db::{Access, Database, DbError, Tx},
    error::{Kind, ToolError, to_tool_error},
    grant::{Caller, GrantKey, own_key},
    hooks,
    idempotency::Claim,
    scope_context::describe_scope_context,
    standing::Standing,
    tenant::{Frame, in_tenant_scope, tenant_of},
    tools::{Arguments, Call, Done, Handler, Handlers},
};
use contract::{AgentCallScope, AgentIdentity, AgentToolResult, envelope::MAX_REPLY_DATA_BYTES};
use futures_util::FutureExt;
use serde_json::Value;
use std::{panic::AssertUnwindSafe, time::Duration};
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

    /// Runs one call. Never fails and never panics: whatever happens is a result that a model can read.
    pub async fn execute(&self, incoming: Incoming) -> AgentToolResult {
        let label = incoming.event.clone();
        // as claimed: a denial may be because the claim is not proven
        let who = incoming
            .request
            .pointer("/identity/sub")
            .and_then(Value::as_str)
            .and_then(|sub| sub.parse::<Uuid>().ok());
        let limited = async {
            let left = clock::left_until(incoming.deadline_ms).ok_or(ToolError::Expired)?;
            tokio::time::timeout(left, self.steps(incoming))
                .await
                .map_err(|_| ToolError::TimedOut)?
        };
        let result = AssertUnwindSafe(limited).catch_unwind().await;
        match result.unwrap_or_else(|panic| Err(ToolError::Panicked(panic_text(&*panic)))) {
            Ok(result) => result,
            Err(error) => {
                if error.kind() == Kind::Denial {
                    tracing::info!(target: "denials", who = ?who, event = label, why = %error, "denied");
                }
                AgentToolResult::error(to_tool_error(&error, &label))
            }
        }
    }

    async fn steps(&self, incoming: Incoming) -> Result<AgentToolResult, ToolError> {
        let handler = self.handlers.get(&incoming.event).ok_or_else(unknown_event)?;
        let (identity, scope, args) = identified(incoming.request)?;
        let caller = self.grants.admit(identity, scope, incoming.grant.as_deref())?;
        own_key(&caller, &incoming.key)?;
        let arguments = handler.arguments(args)?;
        tenant_of(&caller)?;
        let access = access_of(handler, &incoming.key);
        let mut attempt = 1;
        loop {
            let limit = clock::left_until(incoming.deadline_ms).ok_or(ToolError::Expired)?;
            let frame = in_tenant_scope(&self.database, &caller, access, limit, arguments.topics()).await?;
            match self.attempt(frame, handler, &caller, &arguments, &incoming.key).await {
                Err(error) if error.is_transient() && attempt < MAX_ATTEMPTS => attempt += 1,
                result => return result,
            }
            tokio::time::sleep(Duration::from_millis(5 << attempt)).await;
        }
    }

    /// Steps 7 to 13, in one transaction that is either committed whole or undone.
    async fn attempt(
        &self,
        mut frame: Frame,
        handler: &Handler,
        caller: &Caller,
        arguments: &Arguments,
        key: &str,
    ) -> Result<AgentToolResult, ToolError> {
        match in_frame(&mut frame, handler, caller, arguments, key).await {
            Ok(result) if handler.tool.definition.event.is_mutating() => {
                frame.tx.commit().await.map_err(commit_failed)?;
                hooks::between_effect_and_reply().await;
                Ok(result)
            }
            result => {
                end_unchanged(frame.tx);
                result
            }
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
    handler: &Handler,
    caller: &Caller,
    arguments: &Arguments,
    key: &str,
) -> Result<AgentToolResult, ToolError> {
    let event = handler.tool.definition.event;
    let standing = Standing::rebuild(frame, caller)?;
    let admitted = handler.auth.admit(&standing)?;
    let claim = Claim::of(caller, event, key, arguments.value())?;
    if let Some(reply) = claim.answered(frame.earlier.take())? {
        return Ok(reply);
    }
    let tx = &mut frame.tx;
    let mut call = Call::new(&standing, caller.scope(), admitted, tx);
    hooks::in_handler(key);
    let Done { mut data, written } = handler.run(arguments, &mut call).await?;
    let coverage = call.into_coverage();
    let cut = cut_to_size(&mut data)?;
    let scope_context = describe_scope_context(handler.auth, &standing, &coverage, cut);
    let reply = AgentToolResult::Data { data, scope_context };
    if let Some(written) = written {
        let act = Act {
            caller,
            standing: &standing,
            event,
            claim: &claim,
            arguments: arguments.value(),
        };
        audit_tool_write(tx, act, written, &reply).await?;
    }
    Ok(reply)
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

fn unknown_event() -> ToolError {
    ToolError::Malformed("there is no such tool".to_owned())
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
