//! Who waits for which reply.

use crate::caller::Failure;
use contract::{AgentToolResult, Event, envelope::MAX_PACKET_BYTES};
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::oneshot;

/// What ends a wait.
pub(super) enum Signal {
    /// The body of the reply.
    Reply(Vec<u8>),
    /// The request came back: no queue takes it.
    Unroutable,
}

/// The waiting calls by correlation id.
#[derive(Default)]
pub(super) struct Pending(Mutex<HashMap<Arc<str>, oneshot::Sender<Signal>>>);

/// A place among the waiting; given up when it is dropped, however the call ends.
pub(super) struct Waiting {
    pending: Arc<Pending>,
    correlation: Arc<str>,
}

impl Waiting {
    pub(super) fn correlation(&self) -> Arc<str> {
        self.correlation.clone()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.pending.lock().remove(&self.correlation);
    }
}

impl Pending {
    /// Waits for what comes under this correlation id.
    pub(super) fn wait_for(self: &Arc<Self>, correlation: String) -> (Waiting, oneshot::Receiver<Signal>) {
        let (sender, receiver) = oneshot::channel();
        let correlation: Arc<str> = correlation.into();
        self.lock().insert(correlation.clone(), sender);
        (
            Waiting {
                pending: self.clone(),
                correlation,
            },
            receiver,
        )
    }

    /// Ends the wait under this correlation id. Nobody waiting is no fault: the call's time was over.
    pub(super) fn settle(&self, correlation: &str, signal: Signal) {
        let waiting = self.lock().remove(correlation);
        let settled = waiting.is_some_and(|sender| sender.send(signal).is_ok());
        if !settled {
            tracing::debug!(correlation, "nobody waits for this reply any more");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, oneshot::Sender<Signal>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The packet around a reply: ours, or a Nest server's, which has `err` where its handler threw.
#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    response: Option<Value>,
    #[serde(default)]
    err: Option<Value>,
}

/// Reads the body of a reply.
pub(super) fn read_reply(body: &[u8], event: Event) -> Result<AgentToolResult, Failure> {
    if body.len() > MAX_PACKET_BYTES {
        return Err(Failure::Unreadable);
    }
    let Reply { response, err } = serde_json::from_slice(body).map_err(|_| Failure::Unreadable)?;
    if err.is_some() {
        // Its text is the peer's own trouble, not the model's.
        tracing::error!(%event, "the server answered with an exception");
        return Err(Failure::Failed);
    }
    response
        .and_then(|response| serde_json::from_value(response).ok())
        .ok_or(Failure::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(packet: &Value) -> Result<AgentToolResult, Failure> {
        read_reply(packet.to_string().as_bytes(), Event::new("list.departments"))
    }

    #[test]
    fn replies_of_either_peer_are_read() {
        let denied = AgentToolResult::error("Permission denied.");
        let ours = json!({"response": {"error": "Permission denied."}, "isDisposed": true, "id": "7"});
        assert_eq!(read(&ours).unwrap(), denied, "what the server says passes untouched");
        let nest = json!({"response": {"data": [], "scopeContext": "All."}, "isDisposed": true, "err": null});
        assert!(read(&nest).unwrap().is_data());
        let thrown =
            json!({"err": {"status": "error", "message": "Internal server error"}, "isDisposed": true, "id": "7"});
        assert_eq!(read(&thrown), Err(Failure::Failed));
        assert_eq!(
            read(&json!({"err": "There is no matching message handler", "status": "error"})),
            Err(Failure::Failed)
        );
    }

    #[test]
    fn what_is_no_result_is_unreadable() {
        for packet in [
            json!({}),
            json!([]),
            json!({"response": 7}),
            json!({"response": {}}),
            json!({"isDisposed": true}),
        ] {
            assert_eq!(read(&packet), Err(Failure::Unreadable), "{packet}");
        }
        assert_eq!(
            read_reply(b"{", Event::new("list.departments")),
            Err(Failure::Unreadable)
        );
    }

    #[tokio::test]
    async fn a_wait_ends_once_and_leaves_nothing_behind() {
        let pending = Arc::new(Pending::default());
        let (waiting, signal) = pending.wait_for("7".into());
        pending.settle("8", Signal::Unroutable);
        pending.settle("7", Signal::Reply(b"x".to_vec()));
        pending.settle("7", Signal::Unroutable);
        assert!(matches!(signal.await, Ok(Signal::Reply(_))));
        let (given_up, _) = pending.wait_for("9".into());
        drop((waiting, given_up));
        assert!(pending.lock().is_empty());
    }
}
