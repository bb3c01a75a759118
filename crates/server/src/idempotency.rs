//! Step 9: a write's key. The same call is done once, however often it is sent, and answered each time with the same reply.

use crate::{
    db::{
        Tx,
        tool_call::{self, Claim, Key},
    },
    error::ToolError,
    grant::Caller,
};
use contract::{AgentToolResult, Event};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The longest key that is taken, in bytes.
pub(crate) const MAX_KEY_BYTES: usize = 512;

/// Claims the key of a write in its transaction. Answers the stored reply where the same call was done before.
///
/// # Errors
///
/// [`ToolError::KeyReused`] where the key was used for other arguments, another tool or by somebody else.
pub(crate) async fn claim(
    tx: &mut Tx,
    caller: &Caller,
    event: Event,
    key: &str,
    arguments: &Value,
) -> Result<Option<AgentToolResult>, ToolError> {
    let digest = digest(caller, arguments)?;
    let key = Key {
        text: key,
        event: event.as_str(),
        actor: caller.identity().sub,
        digest: &digest,
    };
    match tool_call::claim(tx, key).await? {
        Claim::Ours => Ok(None),
        Claim::Done(reply) => Ok(Some(serde_json::from_value(reply)?)),
        Claim::Reused => Err(ToolError::KeyReused),
    }
}

/// What the call is: its arguments, members in order, and where it is pinned.
fn digest(caller: &Caller, arguments: &Value) -> Result<[u8; 32], ToolError> {
    let canonical = serde_json::to_vec(&(caller.scope(), arguments))?;
    Ok(Sha256::digest(canonical).into())
}
