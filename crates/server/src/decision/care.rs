//! What is looked after in all schools: approvals that nobody decided, or that can no longer be, and approved calls that were not done.

use super::{DecisionError, Decisions, as_json};
use crate::{
    approval::REVOKED,
    conversation::{ConversationError, Conversations, Due},
    db::{
        Database,
        approval::{self as rows, Untold},
    },
    dispatch::DispatchError,
    error::MASKED_ERROR,
};
use contract::{AgentToolResult, turn::Decision};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

/// How long an approved call may take before it counts as given up: longer than any call.
pub(crate) const GIVEN_UP_AFTER: Duration = Duration::from_mins(1);
/// How often an approved call is begun before it is given up for good: one that kills its server must not do so for ever.
const MAX_TRIES: i32 = 3;
const EXPIRED: &str = "Nobody decided about this in time, so it was not done. Do not ask again for the same thing in this turn; tell the \
                       person, and what you can do instead.";

/// A turn that was told what became of a call that it waited for.
#[derive(Debug)]
pub struct Told {
    /// The turn.
    pub turn: Uuid,
    /// The turn again, where it goes on now.
    pub due: Option<Due>,
}

impl Decisions {
    /// Tells turns what became of the calls that they wait for. What cannot be told now is told later.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn tell(&self, conversations: &Conversations) -> Result<Vec<Told>, DecisionError> {
        let database = self.pipeline.database();
        let mut told = Vec::new();
        for untold in rows::untold(database).await? {
            let (school, turn) = (untold.school_id, untold.turn_id);
            let due = match &untold.result {
                Some(result) => settle(database, conversations, &untold, result).await,
                None => conversations.asked_instead(school, turn).await.map(|()| None),
            };
            match due {
                Ok(due) => told.push(Told { turn, due }),
                // the others are to be told all the same
                Err(error) => {
                    tracing::error!(%error, approval = %untold.id, "a turn could not be told what was decided");
                    rows::not_told(database, school, untold.id).await?;
                }
            }
        }
        Ok(told)
    }

    /// Ends what can no longer be decided, and carries out what was approved and not done for this long.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn look_after(&self, given_up_after: Duration) -> Result<(), DecisionError> {
        let database = self.pipeline.database();
        let ended = rows::expire(database, &as_json(&AgentToolResult::error(EXPIRED))?).await?
            + rows::revoke(database, &as_json(&AgentToolResult::error(REVOKED))?).await?;
        if ended > 0 {
            tracing::info!(ended, "approvals can no longer be decided");
        }
        for row in rows::resume(database, given_up_after).await? {
            tracing::warn!(approval = %row.id, event = row.event, tries = row.attempts, "an approved call is taken up again");
            let taken_up = if row.attempts > MAX_TRIES {
                self.fail(&row, MASKED_ERROR.to_owned()).await
            } else {
                self.carry_out(&row).await
            };
            if let Err(error) = taken_up {
                // the others are to be done all the same
                tracing::error!(%error, approval = %row.id, "an approved call could not be taken up");
            }
        }
        Ok(())
    }
}

/// Tells a turn what came of a call, and notes that it knows.
async fn settle(
    database: &Database,
    conversations: &Conversations,
    untold: &Untold,
    result: &Value,
) -> Result<Option<Due>, ConversationError> {
    let result = AgentToolResult::deserialize(result).map_err(DispatchError::from)?;
    let decision = decision_of(&untold.status);
    let (school, turn) = (untold.school_id, untold.turn_id);
    let due = conversations
        .call_settled(school, turn, &untold.tool_call_id, untold.id, decision, &result)
        .await?;
    rows::told(database, school, untold.id).await?;
    Ok(due)
}

/// What became of an approval, in the turn's words. One that was approved stays so, whatever came of the call.
fn decision_of(status: &str) -> Decision {
    match status {
        "rejected" => Decision::Rejected,
        "expired" => Decision::Expired,
        "revoked" => Decision::Revoked,
        _ => Decision::Approved,
    }
}
