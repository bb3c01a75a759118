//! Decisions about calls that wait for a person: who may decide, what becomes of each, and what is looked after when nobody does.
//!
//! A decision claims its row first, with a row of the audit log; the call is run after that, whole, as whoever asked for it. One of all
//! decisions about a row wins, however many are sent, and a process that dies in between leaves a row that is taken up again.

pub(crate) mod care;
mod part;
mod ruling;
mod view;

pub use self::{care::Told, ruling::Ruling, view::ApprovalView};
use self::{
    part::{Part, is_open, part_in, why_late},
    ruling::What,
};
use crate::{
    ability::Topics,
    approval::{Approved, Preview},
    audit::{Ruled, audit_decision},
    clock,
    conversation::Person,
    db::{
        Access, DbError, Tenant, account,
        approval::{self as rows, Row, Verdict},
    },
    dispatch::{self, DispatchError, Entered, Wanted},
    error::{Kind, ToolError, to_tool_error},
    execute::{Admission, Incoming, Pipeline},
    grant::{Door, TurnGrant},
    hooks,
};
use contract::{AgentToolResult, envelope::WRITE_DEADLINE};
use serde::Serialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use uuid::Uuid;

/// How long a decision's own statements may take.
const LIMIT: Duration = Duration::from_secs(10);
/// How long the grant lasts under which an approved call is run: longer than any call.
const GRANT_LASTS: Duration = Duration::from_mins(5);
/// The most that are listed of one school.
const MAX_SHOWN: usize = 200;

/// What whoever changes arguments reads where they make it a call that is asked about already.
const WAITS_ALREADY: &str = "arguments: the same call waits already in this turn";

/// Why something could not be decided.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    /// There is no such thing, or it is for somebody else to decide: the same answer for both.
    #[error("There is no such approval.")]
    Unknown,
    /// It was asked for by this very person, and needs somebody else.
    #[error("Somebody else must decide this.")]
    NeedsAnother,
    /// It was asked for by somebody else, in whose name it would be done.
    #[error("Only whoever asked for this may change it; reject it, and say why.")]
    NeedsRequester,
    /// Somebody was faster, or it is too late; says which.
    #[error("This can no longer be decided: {0}.")]
    TooLate(&'static str),
    /// What was sent cannot be taken.
    #[error("{0}")]
    Invalid(String),
    /// The person has no standing, or cannot be told from others.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
    /// A step failed.
    #[error(transparent)]
    Failed(#[from] ToolError),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbError),
}

/// What became of a call that was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Became {
    /// It was done.
    Executed,
    /// It was approved, and refused when it was run.
    Failed,
    /// It was approved, and would by now do something else than was shown: that waits in its place.
    AskedAnew,
    /// It was approved, and will be done as soon as that is possible.
    Executing,
    /// It is not done.
    Rejected,
    /// It is not done; a call with other arguments waits in its place.
    Replaced,
}

/// A decision that was taken.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settled {
    /// What became of the call.
    pub became: Became,
    /// The approval as it stands now; where another waits in its place, that one.
    pub approval: ApprovalView,
}

/// Calls of all schools that wait.
pub struct Decisions {
    pipeline: Arc<Pipeline>,
}

impl Decisions {
    /// Over the pipeline that the calls are run by.
    #[must_use]
    pub const fn new(pipeline: Arc<Pipeline>) -> Self {
        Self { pipeline }
    }

    /// What waits for this person's decision, and what they asked for and others decide; newest first in each school.
    ///
    /// # Errors
    ///
    /// Where the person has no standing anywhere, or may come in nowhere.
    pub async fn waiting(&self, person: &Person, door: Door) -> Result<Vec<ApprovalView>, DecisionError> {
        let (mut found, mut refused, mut is_in) = (Vec::new(), None, false);
        for wanted in self.everywhere(person, door).await? {
            let Some(mut entered) = self.come_in(wanted, &mut refused).await? else {
                continue;
            };
            is_in = true;
            found.extend(theirs(&mut entered).await?);
            entered.tx.rollback().await?;
        }
        match refused {
            Some(refused) if !is_in => Err(refused.into()),
            _ => Ok(found),
        }
    }

    /// One approval, whatever has become of it.
    ///
    /// # Errors
    ///
    /// [`DecisionError::Unknown`] where this person has nothing to do with it.
    pub async fn one(&self, person: &Person, door: Door, id: Uuid) -> Result<ApprovalView, DecisionError> {
        let (entered, row, part) = self.find(person, door, id).await?;
        entered.tx.rollback().await?;
        Ok(ApprovalView::of(row, part))
    }

    /// Takes a decision, and carries it out.
    ///
    /// # Errors
    ///
    /// See [`DecisionError`]; nothing was decided then, but for a failure after an approval, which is taken up again.
    pub async fn decide(
        &self,
        person: &Person,
        door: Door,
        id: Uuid,
        ruling: Ruling,
    ) -> Result<Settled, DecisionError> {
        let (entered, row, part) = self.find(person, door, id).await?;
        part.allows(&ruling.0)?;
        match ruling.0 {
            What::Approve => {
                self.approve(entered, &row).await?;
                hooks::between_claim_and_run(id).await;
                self.carry_out(&row).await?;
            }
            What::Reject(reason) => self.reject(entered, &row, reason.as_deref()).await?,
            What::Edit(arguments) => {
                entered.tx.rollback().await?;
                self.edit((person, door), &row, arguments).await?;
            }
        }
        self.settled((person, door), row.school_id, id, part).await
    }

    async fn approve(&self, entered: Entered, row: &Row) -> Result<(), DecisionError> {
        let verdict = Verdict {
            status: "executing",
            by: entered.standing.actor.sub,
            reason: None,
            result: None,
        };
        claim(entered, verdict, Ruled::new("APPROVE", row)).await
    }

    async fn reject(&self, entered: Entered, row: &Row, reason: Option<&str>) -> Result<(), DecisionError> {
        let result = as_json(&AgentToolResult::error(rejected(reason)))?;
        let verdict = Verdict {
            status: "rejected",
            by: entered.standing.actor.sub,
            reason,
            result: Some(&result),
        };
        let ruled = Ruled {
            reason,
            ..Ruled::new("REJECT", row)
        };
        claim(entered, verdict, ruled).await
    }

    /// Asks about the same tool with other arguments, after it went through every gate with them.
    async fn edit(&self, (person, door): (&Person, Door), row: &Row, arguments: Value) -> Result<(), DecisionError> {
        if !is_open(row) {
            return Err(DecisionError::TooLate(why_late(row)));
        }
        let tried = self.pipeline.try_out(self.incoming(row, &arguments)?).await;
        let (call, preview) = tried.map_err(|error| match error.kind() {
            Kind::Denial | Kind::Rejection => DecisionError::Invalid(to_tool_error(&error, "edit")),
            Kind::Fault => error.into(),
        })?;
        let (mut entered, row, _) = self.find(person, door, row.id).await?;
        let verdict = Verdict {
            status: "replaced",
            by: entered.standing.actor.sub,
            reason: None,
            result: None,
        };
        if !rows::claim(&mut entered.tx, row.school_id, row.id, verdict).await? {
            return Err(too_late(&mut entered, &row).await?);
        }
        let instead = call.request().ask_instead(&mut entered.tx, &preview, row.id).await?;
        let instead = instead.ok_or_else(|| DecisionError::Invalid(WAITS_ALREADY.to_owned()))?;
        let ruled = Ruled {
            arguments: Some(&arguments),
            instead: Some(instead),
            ..Ruled::new("EDIT", &row)
        };
        audit_decision(&mut entered.tx, &entered.caller, &entered.standing, ruled).await?;
        Ok(entered.tx.commit().await?)
    }

    /// Runs an approved call, and stores what comes of it. A failure that may pass leaves it to be taken up again.
    async fn carry_out(&self, row: &Row) -> Result<(), DecisionError> {
        let approved = Approved {
            school: row.school_id,
            id: row.id,
            contract_hash: row.contract_hash.clone(),
            preview: row.preview.clone(),
            scope_context: row.scope_context.clone(),
            previewed_at: row.previewed_at,
            is_changed: row.is_changed,
        };
        let incoming = self.incoming(row, &row.arguments)?;
        match self.pipeline.carry_out(incoming, &approved).await {
            Ok(None) => Ok(()),
            Ok(Some((call, preview))) => self.ask_anew(row, &call, &preview).await,
            Err(error) if is_final(&error) => {
                let text = to_tool_error(&error, &row.event);
                self.fail(row, text).await
            }
            Err(error) => {
                tracing::warn!(%error, approval = %row.id, event = row.event, "an approved call was not carried out yet");
                Ok(())
            }
        }
    }

    /// Asks in the place of an approved call, which is final then, about what it would do by now.
    async fn ask_anew(&self, row: &Row, call: &Admission<'_>, preview: &Preview) -> Result<(), DecisionError> {
        let mut tx = self.begin(row).await?;
        // else somebody else who took it up has asked, or done it
        if rows::ask_anew(&mut tx, row.school_id, row.id).await? {
            call.request().ask_instead(&mut tx, preview, row.id).await?;
        }
        Ok(tx.commit().await?)
    }

    async fn fail(&self, row: &Row, text: String) -> Result<(), DecisionError> {
        let mut tx = self.begin(row).await?;
        let result = as_json(&AgentToolResult::error(text))?;
        rows::failed(&mut tx, row.school_id, row.id, &result).await?;
        Ok(tx.commit().await?)
    }

    async fn begin(&self, row: &Row) -> Result<crate::db::Tx, DbError> {
        let key = format!("approval:{}", row.id);
        let tenant = Tenant::School(row.school_id);
        self.pipeline.database().begin_writing(tenant, &key, LIMIT).await
    }

    /// The call as its requester would make it now.
    fn incoming(&self, row: &Row, arguments: &Value) -> Result<Incoming, DecisionError> {
        let read = |error| DecisionError::Failed(ToolError::Unserialisable(error));
        let grant = match row.turn_id {
            None => None,
            Some(turn_id) => {
                let grant = TurnGrant {
                    identity: serde_json::from_value(row.identity.clone()).map_err(read)?,
                    scope: serde_json::from_value(row.scope.clone()).map_err(read)?,
                    turn_id,
                    door: serde_json::from_value(json!(row.door)).map_err(read)?,
                    expires_at_ms: clock::deadline_in(GRANT_LASTS),
                };
                Some(self.pipeline.grants().mint(&grant).map_err(read)?)
            }
        };
        let handler = self.pipeline.handlers().get(&row.event);
        let patience = handler.map_or(WRITE_DEADLINE, |handler| handler.tool.definition.deadline());
        Ok(Incoming {
            event: row.event.clone(),
            request: json!({"identity": row.identity, "scope": row.scope, "args": arguments}),
            grant,
            key: row.key.clone(),
            deadline_ms: clock::deadline_in(patience),
            contract: None,
        })
    }

    /// What became of it, and what waits in its place as far as that is theirs to see.
    async fn settled(
        &self,
        (person, door): (&Person, Door),
        school: Uuid,
        id: Uuid,
        part: Part,
    ) -> Result<Settled, DecisionError> {
        let mut tx = self.pipeline.database().begin(Tenant::School(school), LIMIT).await?;
        let row = rows::find(&mut tx, id).await?.ok_or(DecisionError::Unknown)?;
        let instead = rows::instead(&mut tx, school, id).await?;
        tx.rollback().await?;
        let became = match row.status.as_str() {
            "executed" => Became::Executed,
            "failed" => Became::Failed,
            "rejected" => Became::Rejected,
            "replaced" => Became::Replaced,
            "asked_anew" => Became::AskedAnew,
            _ => Became::Executing,
        };
        let instead = match instead {
            Some(instead) => self.one(person, door, instead).await.map(Some),
            None => Ok(None),
        };
        let approval = match instead {
            Ok(Some(instead)) => instead,
            Ok(None) | Err(DecisionError::Unknown) => ApprovalView::of(row, part),
            Err(error) => return Err(error),
        };
        Ok(Settled { became, approval })
    }

    /// The schools in which somebody may have something to decide; for a platform administrator, the platform.
    async fn everywhere(&self, person: &Person, door: Door) -> Result<Vec<Wanted>, DecisionError> {
        let accounts = account::by_email(self.pipeline.database(), &person.email).await?;
        if accounts.is_empty() {
            return Err(DispatchError::UnknownAccount(person.email.clone()).into());
        }
        let wanted = accounts.into_iter().map(|account| Wanted {
            email: person.email.clone(),
            school: account.school_slug,
            campus: None,
            door,
            lasts: LIMIT,
            turn: None,
        });
        Ok(wanted.collect())
    }

    /// A frame for somebody, with all their rights as they are now. Whoever may not come in to one school may still work in another.
    async fn come_in(
        &self,
        wanted: Wanted,
        refused: &mut Option<DispatchError>,
    ) -> Result<Option<Entered>, DecisionError> {
        let key = format!("decision:{}", Uuid::new_v4());
        let (database, grants) = (self.pipeline.database(), self.pipeline.grants());
        let access = Access::Write { key: &key };
        match dispatch::enter_about(database, grants, wanted, access, Topics::ALL).await {
            Ok(entered) => Ok(Some(entered)),
            Err(DispatchError::Refused(refusal)) if refusal.kind() == Kind::Denial => {
                *refused = Some(DispatchError::Refused(refusal));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// An approval with which somebody has something to do, in a frame of theirs.
    async fn find(&self, person: &Person, door: Door, id: Uuid) -> Result<(Entered, Row, Part), DecisionError> {
        for wanted in self.everywhere(person, door).await? {
            let Some(mut entered) = self.come_in(wanted, &mut None).await? else {
                continue;
            };
            if let Some(row) = rows::find(&mut entered.tx, id).await?
                && let Some(part) = part_in(&entered.standing, &row)?
            {
                return Ok((entered, row, part));
            }
            entered.tx.rollback().await?;
        }
        Err(DecisionError::Unknown)
    }
}

/// Claims an approval for one decision, with its audit row.
async fn claim(mut entered: Entered, verdict: Verdict<'_>, ruled: Ruled<'_>) -> Result<(), DecisionError> {
    let row = ruled.approval;
    if !rows::claim(&mut entered.tx, row.school_id, row.id, verdict).await? {
        return Err(too_late(&mut entered, row).await?);
    }
    audit_decision(&mut entered.tx, &entered.caller, &entered.standing, ruled).await?;
    Ok(entered.tx.commit().await?)
}

/// What waits in one school and is somebody's to see, the newest first. What is not theirs takes no place from what is.
async fn theirs(entered: &mut Entered) -> Result<Vec<ApprovalView>, DecisionError> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let waiting = rows::waiting(&mut entered.tx, entered.standing.actor.sub, before, MAX_SHOWN).await?;
        let Some(last) = waiting.last() else { return Ok(found) };
        before = Some(last.id);
        for row in waiting {
            if let Some(part) = part_in(&entered.standing, &row)? {
                found.push(ApprovalView::of(row, part));
            }
            if found.len() == MAX_SHOWN {
                return Ok(found);
            }
        }
    }
}

/// Why a row was not claimed, by what it says now.
async fn too_late(entered: &mut Entered, row: &Row) -> Result<DecisionError, DecisionError> {
    let now = rows::find(&mut entered.tx, row.id).await?;
    Ok(DecisionError::TooLate(why_late(now.as_ref().unwrap_or(row))))
}

/// Whether a call that ended so would end so again.
const fn is_final(error: &ToolError) -> bool {
    match error.kind() {
        Kind::Denial => true,
        Kind::Rejection => !matches!(
            error,
            ToolError::Expired | ToolError::TimedOut | ToolError::InDoubt | ToolError::TooManyTries
        ),
        Kind::Fault => false,
    }
}

/// What the model reads of a no: final, and no malfunction.
fn rejected(reason: Option<&str>) -> String {
    let reason = reason
        .map(|reason| format!(" Their reason: {}.", reason.trim_end_matches('.')))
        .unwrap_or_default();
    format!(
        "The person did not approve this.{reason} It was not done. Do not ask again for the same thing in this turn; tell them what you \
         can do instead."
    )
}

fn as_json(result: &AgentToolResult) -> Result<Value, ToolError> {
    Ok(serde_json::to_value(result)?)
}
