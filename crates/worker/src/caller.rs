//! How a tool call leaves the worker: the trait that every way out implements, what a call carries, and what is said when it
//! comes to nothing.
//!
//! [`crate::rpc::AgentToolService`] is the way through the broker; [`InProcessToolCaller`] is the one for tests and for doors that
//! live beside the server's pipeline.

use crate::clock;
use contract::{AgentToolRequest, AgentToolResult, Event};
use std::{future::Future, pin::Pin};
use tokio::time::timeout;
use uuid::Uuid;

/// A call under way.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = AgentToolResult> + Send + 'a>>;

/// A way for tool calls to reach the server's pipeline.
pub trait AgentToolCaller: Send + Sync {
    /// Calls the tool with this event. Ends by the ticket's deadline, whatever happens, and always with a result.
    fn call(&self, event: Event, request: AgentToolRequest, ticket: CallTicket) -> CallFuture<'_>;
}

/// What a call carries beside its request.
#[derive(Clone)]
pub struct CallTicket {
    /// The same however often the call is sent.
    pub idempotency_key: String,
    /// The turn's grant.
    pub grant: Option<String>,
    /// The hash of the tool's contract as the caller knows it; a server that knows another refuses the call by name.
    pub contract: Option<String>,
    /// After this moment, in milliseconds since 1970, nobody waits for the result.
    pub deadline_ms: i64,
    /// What all calls of one turn share in the logs of every process.
    pub trace_id: Uuid,
}

/// Why a call came to nothing on its way. Never about its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No result by the deadline, after it was sent.
    TimedOut,
    /// No time was left to send it.
    TooLate,
    /// No queue takes its event: no server has been started yet.
    Unroutable,
    /// The broker refused it.
    Refused,
    /// The broker takes no messages for now.
    Blocked,
    /// There was no connection to the broker.
    Unreachable,
    /// The connection was lost, again and again.
    Disconnected,
    /// Too many calls are under way.
    Busy,
    /// What came back was no result.
    Unreadable,
    /// The server says that it failed.
    Failed,
}

impl Failure {
    /// What the model reads: which tool, that it is not the arguments, and not to try again.
    #[must_use]
    pub fn to_result(self, event: Event) -> AgentToolResult {
        let what = match self {
            Self::TimedOut => "timed out, the platform may be slow",
            Self::TooLate => "was not called, the time for this turn is over",
            Self::Unroutable => "is not available, no server is taking its calls",
            Self::Refused => "could not be called, the message broker refused the request",
            Self::Blocked => "could not be called, the message broker is not taking requests for now",
            Self::Unreachable => "could not be called, the message broker cannot be reached",
            Self::Disconnected => "did not answer, the connection to the platform was lost",
            Self::Busy => "could not be called, too many requests are waiting",
            Self::Unreadable => "did not answer with a result",
            Self::Failed => "failed inside the platform",
        };
        let doubt = match self {
            Self::TimedOut if event.is_mutating() => " and could still be processing the request",
            Self::Disconnected | Self::Unreadable | Self::Failed if event.is_mutating() => {
                ", and the request may have been processed"
            }
            Self::TimedOut
            | Self::TooLate
            | Self::Unroutable
            | Self::Refused
            | Self::Blocked
            | Self::Unreachable
            | Self::Disconnected
            | Self::Busy
            | Self::Unreadable
            | Self::Failed => "",
        };
        AgentToolResult::error(format!(
            "The \"{event}\" tool {what}{doubt}. This is an infrastructure issue, not a problem with the arguments. \
             Do not retry this call; tell the user what you were trying to do."
        ))
    }
}

/// Calls a function of this process.
pub struct InProcessToolCaller<H>(H);

impl<H, F> InProcessToolCaller<H>
where
    H: Fn(Event, AgentToolRequest, CallTicket) -> F + Send + Sync,
    F: Future<Output = AgentToolResult> + Send,
{
    /// Every call goes to `handler`.
    pub const fn new(handler: H) -> Self {
        Self(handler)
    }
}

impl<H, F> AgentToolCaller for InProcessToolCaller<H>
where
    H: Fn(Event, AgentToolRequest, CallTicket) -> F + Send + Sync,
    F: Future<Output = AgentToolResult> + Send,
{
    fn call(&self, event: Event, request: AgentToolRequest, ticket: CallTicket) -> CallFuture<'_> {
        Box::pin(async move {
            let left = clock::left_until(ticket.deadline_ms);
            if left.is_zero() {
                return Failure::TooLate.to_result(event);
            }
            let answer = timeout(left, (self.0)(event, request, ticket)).await;
            answer.unwrap_or_else(|_| Failure::TimedOut.to_result(event))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(failure: Failure, event: Event) -> String {
        match failure.to_result(event) {
            AgentToolResult::Error { error } => error,
            AgentToolResult::Data { .. } | AgentToolResult::Pending { .. } => unreachable!("a failure is an error"),
        }
    }

    #[test]
    fn failures_name_the_tool_and_forbid_a_retry() {
        let (read, write) = (Event::new("list.departments"), Event::new("create.department"));
        for failure in [
            Failure::TimedOut,
            Failure::Unroutable,
            Failure::Blocked,
            Failure::Busy,
            Failure::Failed,
        ] {
            let said = text(failure, read);
            assert!(
                said.contains("\"list.departments\"") && said.contains("Do not retry"),
                "{said}"
            );
            assert!(
                said.contains("not a problem with the arguments") && !said.contains("process"),
                "{said}"
            );
        }
        assert!(text(Failure::TimedOut, write).contains("could still be processing"));
        assert!(
            !text(Failure::Unroutable, write).contains("process"),
            "what was never sent was never processed"
        );
    }
}
