//! Errors of the door, as `application/problem+json` (RFC 9457).

use crate::{
    conversation::ConversationError,
    decision::DecisionError,
    dispatch::DispatchError,
    error::{ToolError, to_tool_error},
    rpc::RpcError,
};
use axum::{
    Json,
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use serde_json::json;
use std::time::Duration;

/// Why a request was not answered.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(super) status: StatusCode,
    pub(super) detail: String,
    /// When it may be different.
    retry_after: Option<Duration>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            retry_after: None,
        }
    }

    /// Says when to come again.
    pub(super) fn retry_after(self, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..self
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self {
            status,
            detail,
            retry_after,
        } = self;
        let title = status.canonical_reason().unwrap_or_default();
        let body = json!({"type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail});
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = retry_after {
            headers.insert(RETRY_AFTER, wait.as_secs().into());
        }
        response
    }
}

impl From<ConversationError> for Problem {
    fn from(error: ConversationError) -> Self {
        let status = match &error {
            ConversationError::Unknown(_) => StatusCode::NOT_FOUND,
            ConversationError::Busy | ConversationError::Settled => StatusCode::CONFLICT,
            ConversationError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ConversationError::OverBudget | ConversationError::TooManyOpen(_) => StatusCode::TOO_MANY_REQUESTS,
            ConversationError::NoSchool => StatusCode::FORBIDDEN,
            ConversationError::Dispatch(error) => return of_dispatch(error),
            ConversationError::Database(error) => return of_fault(error),
        };
        Self::new(status, error.to_string())
    }
}

/// A token of an account that is not there says no more than one of an account that may not come in.
fn of_dispatch(error: &DispatchError) -> Problem {
    match error {
        DispatchError::UnknownAccount(_) => Problem::new(StatusCode::FORBIDDEN, "There is no such account here."),
        DispatchError::NotInSchool(_) => Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "school: there is none of that name in which this person works",
        ),
        DispatchError::UnknownCampus(_) | DispatchError::SeveralCampuses(_) => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("campus: {error}"))
        }
        DispatchError::Refused(fault @ ToolError::Database(_)) => of_fault(fault),
        DispatchError::Refused(refusal) => Problem::new(StatusCode::FORBIDDEN, to_tool_error(refusal, "http")),
        DispatchError::Unreadable(_) | DispatchError::Database(_) | DispatchError::Grant(_) => of_fault(error),
    }
}

impl From<DecisionError> for Problem {
    fn from(error: DecisionError) -> Self {
        let status = match &error {
            DecisionError::Unknown => StatusCode::NOT_FOUND,
            DecisionError::NeedsAnother | DecisionError::NeedsRequester => StatusCode::FORBIDDEN,
            DecisionError::TooLate(_) => StatusCode::CONFLICT,
            DecisionError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            DecisionError::Dispatch(error) => return of_dispatch(error),
            DecisionError::Failed(error) => return of_fault(error),
            DecisionError::Database(error) => return of_fault(error),
        };
        Self::new(status, error.to_string())
    }
}

fn of_fault(error: &impl std::fmt::Display) -> Problem {
    tracing::error!(%error, "a request failed");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "This is not possible at the moment.")
}

impl From<RpcError> for Problem {
    fn from(error: RpcError) -> Self {
        of_fault(&error)
    }
}
