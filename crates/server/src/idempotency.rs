//! Step 9: a write's key. The same call is done once, however often it is sent, and answered each time with the same reply.

use crate::{
    db::tool_call::{EarlierCall, Key},
    error::ToolError,
    grant::Caller,
};
use contract::{AgentToolResult, Event};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The longest key that is taken, in bytes.
pub(crate) const MAX_KEY_BYTES: usize = 512;

/// What a write's key stands for, as it is stored with the reply.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    key: &'a str,
    event: Event,
    actor: Uuid,
    digest: [u8; 32],
}

impl<'a> Claim<'a> {
    /// The claim of a call to its key.
    ///
    /// # Errors
    ///
    /// When the arguments cannot be written down.
    pub(crate) fn of(caller: &Caller, event: Event, key: &'a str, arguments: &Value) -> Result<Self, ToolError> {
        Ok(Self {
            key,
            event,
            actor: caller.identity().sub,
            digest: digest(caller, arguments)?,
        })
    }

    /// The row of the key.
    pub(crate) fn key(&self) -> Key<'_> {
        Key {
            text: self.key,
            digest: &self.digest,
        }
    }

    /// Whether somebody used the key for this very call.
    pub(crate) fn is_of(&self, event: &str, actor: Uuid, digest: &[u8]) -> bool {
        event == self.event.as_str() && actor == self.actor && digest == self.digest
    }

    /// The reply of the same call, where it was done before.
    ///
    /// # Errors
    ///
    /// [`ToolError::KeyReused`] where the key was used for other arguments, another tool or by somebody else.
    pub(crate) fn answered(&self, earlier: Option<EarlierCall>) -> Result<Option<AgentToolResult>, ToolError> {
        let Some(earlier) = earlier else { return Ok(None) };
        if !self.is_of(&earlier.event, earlier.actor, &earlier.digest) {
            return Err(ToolError::KeyReused);
        }
        Ok(Some(serde_json::from_value(earlier.reply)?))
    }
}

/// What the call is: its arguments, members in order, and where it is pinned.
fn digest(caller: &Caller, arguments: &Value) -> Result<[u8; 32], ToolError> {
    let canonical = serde_json::to_vec(&(caller.scope(), arguments))?;
    Ok(Sha256::digest(canonical).into())
}
