//! Calls that wait for a person: what waits, and what somebody says about it.

use super::{
    Door, Problem,
    auth::SignedIn,
    input::{Body, Id, Nothing, Params},
};
use crate::{
    conversation::{Person, hub::Hub},
    decision::{ApprovalView, DecisionError, Decisions, Ruling, Settled},
    grant,
    rpc::reports::Books,
};
use axum::{Json, extract::State, http::StatusCode};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use uuid::Uuid;

/// What somebody says about a call that waits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct NewDecision {
    decision: Said,
    /// Why not; the model reads it.
    #[serde(default)]
    reason: Option<String>,
    /// What the tool is to be called with instead.
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Approve,
    Reject,
    Edit,
}

impl NewDecision {
    fn ruling(self) -> Result<Ruling, DecisionError> {
        match (self.decision, self.reason, self.arguments) {
            (Said::Approve, None, None) => Ok(Ruling::approve()),
            (Said::Reject, reason, None) => Ruling::reject(reason),
            (Said::Edit, None, Some(arguments)) => Ok(Ruling::edit(arguments)),
            (Said::Approve, _, _) => Err(invalid("approve takes neither a reason nor arguments")),
            (Said::Reject, _, Some(_)) => Err(invalid("reject takes no arguments")),
            (Said::Edit, _, _) => Err(invalid("edit takes arguments, and no reason")),
        }
    }
}

fn invalid(what: &str) -> DecisionError {
    DecisionError::Invalid(format!("decision: {what}"))
}

/// What waits for this person.
pub(super) async fn waiting(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Json<Vec<ApprovalView>>, Problem> {
    Ok(Json(door.decisions.waiting(&person, grant::Door::Rest).await?))
}

pub(super) async fn one(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    Id(id): Id,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Json<ApprovalView>, Problem> {
    Ok(Json(door.decisions.one(&person, grant::Door::Rest, id).await?))
}

/// Takes a decision, and answers what became of the call.
pub(super) async fn decide(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    Id(id): Id,
    Params(Nothing {}): Params<Nothing>,
    Body(decision): Body<NewDecision>,
) -> Result<Json<Settled>, Problem> {
    carry_on(door, person, id, decision.ruling()?).await.map(Json)
}

/// What is decided is carried out at once, whether or not its person is still there: else it would wait to be found.
#[expect(
    clippy::disallowed_methods,
    reason = "it is awaited here, by whoever has not hung up; its panics are reported as failures"
)]
async fn carry_on(door: Arc<Door>, person: Person, id: Uuid, ruling: Ruling) -> Result<Settled, Problem> {
    let deciding = tokio::spawn(async move {
        let settled = door.decisions.decide(&person, grant::Door::Rest, id, ruling).await;
        tell_turns(&door.decisions, &door.books, &door.hub).await;
        settled
    });
    match deciding.await {
        Ok(settled) => Ok(settled?),
        Err(error) => {
            tracing::error!(%error, "a decision could not be carried out");
            Err(Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "This is not possible at the moment.",
            ))
        }
    }
}

/// Tells turns what became of the calls that they wait for, and sends those that go on.
pub(crate) async fn tell_turns(decisions: &Decisions, books: &Books, hub: &Hub) {
    match decisions.tell(&books.conversations).await {
        Ok(told) => {
            for told in told {
                if let Some(due) = told.due {
                    books.send(due).await;
                }
                hub.stored(told.turn);
            }
        }
        Err(error) => tracing::warn!(%error, "turns could not be told yet what was decided"),
    }
}
