//! Reading the runtime context: who is calling, and which campus the call is pinned to.
//!
//! The proxies call these for every tool call, so that neither ever comes from what a model wrote. A malformed dispatch reads as
//! none, and whoever gets none runs nothing.

use crate::{caller::CallTicket, clock};
use contract::{
    AgentCallScope, AgentIdentity, AgentRuntimeContext, RpcTool, context::PermissionSnapshot,
    identity::identity_from_user_details, turn::idempotency_key,
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use uuid::Uuid;

/// What a tool answers where the context is missing. It says not to retry, since agents try errors again by themselves.
pub const CONTEXT_MISSING_ERROR: &str =
    "User context is unavailable for this tool call, so it cannot run securely. Do not retry.";

/// What surrounds one tool call.
#[derive(Clone)]
pub struct Runtime {
    /// The runtime context as it was dispatched, unparsed.
    pub context: Arc<Value>,
    /// The turn that the call belongs to.
    pub turn: Arc<TurnTicket>,
    /// The model's id of the call, unique in its turn.
    pub tool_call_id: String,
    /// Where what is shown to the person goes, if anybody is watching.
    pub writer: Option<StreamWriter>,
}

/// What a turn lends to each of its calls.
#[derive(Clone)]
pub struct TurnTicket {
    /// The turn.
    pub turn_id: Uuid,
    /// The grant that the server minted for it.
    pub grant: String,
    /// When it must have ended, in milliseconds since 1970.
    pub deadline_ms: i64,
}

/// Shows something to the person while a turn runs.
pub type StreamWriter = Arc<dyn Fn(Value) -> Result<(), StreamClosed> + Send + Sync>;

/// Nobody is watching any more.
#[derive(Debug, thiserror::Error)]
#[error("the stream to the person is closed")]
pub struct StreamClosed;

impl Runtime {
    /// What a call of this tool carries beside its request.
    pub(crate) fn ticket(&self, tool: &RpcTool) -> CallTicket {
        let wait = tool.definition.deadline();
        let turn = &self.turn;
        CallTicket {
            idempotency_key: idempotency_key(turn.turn_id, &self.tool_call_id),
            grant: Some(turn.grant.clone()),
            contract: Some(tool.contract_hash()),
            deadline_ms: clock::deadline_in(wait).min(turn.deadline_ms),
            trace_id: turn.turn_id,
        }
    }
}

/// The context, parsed; none on a malformed dispatch. Every other helper goes through this one.
#[must_use]
pub fn resolve_runtime_context(runtime: &Runtime) -> Option<AgentRuntimeContext> {
    AgentRuntimeContext::deserialize(runtime.context.as_ref()).ok()
}

/// Who is calling. Without it a call cannot run securely.
#[must_use]
pub fn resolve_identity(runtime: &Runtime) -> Option<AgentIdentity> {
    resolve_runtime_context(runtime).map(|context| identity_from_user_details(&context.user_details))
}

/// Where the call is pinned.
#[must_use]
pub fn resolve_call_scope(runtime: &Runtime) -> Option<AgentCallScope> {
    resolve_runtime_context(runtime).map(|context| context.run_mode.call_scope())
}

/// The caller's rules at dispatch, to shape what is offered and shown. Never to decide whether a tool may run.
#[must_use]
pub fn resolve_permissions(runtime: &Runtime) -> Vec<PermissionSnapshot> {
    resolve_runtime_context(runtime)
        .map(|context| context.user_permissions)
        .unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    /// A runtime of a clerk, in a campus or in the whole school.
    pub(crate) fn runtime(run_mode: &Value) -> Runtime {
        let context = json!({
            "userDetails": {
                "name": "Ada", "email": "ada@hilltop.example", "userId": Uuid::from_u128(1), "profileId": Uuid::from_u128(2),
                "userType": "STAFF", "schoolId": Uuid::from_u128(3), "schoolName": "Hilltop Academy",
            },
            "runMode": run_mode,
            "timeZone": "Africa/Kampala",
            "userPermissions": [{"action": "LIST", "resource": "STAFF"}],
        });
        Runtime {
            context: Arc::new(context),
            turn: Arc::new(TurnTicket {
                turn_id: Uuid::from_u128(9),
                grant: "grant".into(),
                deadline_ms: clock::deadline_in(Duration::from_mins(1)),
            }),
            tool_call_id: "call_1".into(),
            writer: None,
        }
    }

    #[test]
    fn identity_and_scope_come_from_the_context() {
        let campus = Uuid::from_u128(7);
        let runtime = runtime(&json!({"mode": "campus", "campus": {"id": campus, "name": "Main"}}));
        assert_eq!(resolve_identity(&runtime).unwrap().sub, Uuid::from_u128(1));
        assert_eq!(resolve_call_scope(&runtime).unwrap().pinned(), Some(campus));
        assert_eq!(resolve_permissions(&runtime).len(), 1);
    }

    #[test]
    fn a_malformed_dispatch_reads_as_none() {
        let malformed = [
            json!(null),
            json!({}),
            json!({"mode": "campus"}),
            json!({"mode": "town"}),
            json!("school"),
        ];
        for run_mode in &malformed {
            let runtime = runtime(run_mode);
            assert!(resolve_runtime_context(&runtime).is_none(), "{run_mode}");
            assert!(resolve_identity(&runtime).is_none() && resolve_call_scope(&runtime).is_none());
            assert!(resolve_permissions(&runtime).is_empty());
        }
    }

    #[test]
    fn a_call_ends_no_later_than_its_turn() {
        let mut runtime = runtime(&json!({"mode": "school"}));
        let tool = contract::tools::tool_for_name("create_department").unwrap();
        assert!(runtime.ticket(tool).deadline_ms < runtime.turn.deadline_ms);
        let soon = clock::deadline_in(Duration::from_secs(1));
        runtime.turn = Arc::new(TurnTicket {
            deadline_ms: soon,
            ..runtime.turn.as_ref().clone()
        });
        assert_eq!(runtime.ticket(tool).deadline_ms, soon);
        assert_eq!(
            runtime.ticket(tool).idempotency_key,
            format!("{}:call_1", Uuid::from_u128(9))
        );
    }
}
