//! Dispatch: what the server mints when a turn begins, and what everything after it rests on — identity, scope, runtime context
//! and grant. Called by the operator's commands and, later, by the HTTP doors; never by anything that a model wrote.

use crate::{
    ability::{Condition, Topics, Verdict},
    clock,
    db::{
        Access, Database, DbError, Tenant, Tx,
        account::{self, Account},
        turn_context,
    },
    error::ToolError,
    grant::{Caller, Door, GrantKey, TurnGrant},
    standing::Standing,
    tenant::{Frame, in_tenant_scope},
};
use chrono_tz::Tz;
use contract::{
    AgentCallScope, AgentIdentity, AgentRunMode, AgentRuntimeContext, Resource, UserType,
    context::{
        AgentCapabilities, AgentUserDetails, CampusReference, CurrentAcademicYear, PermissionSnapshot,
        SubjectReference, TeachingAssignment, Term,
    },
    identity::identity_from_user_details,
};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

/// How long minting may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Why no turn could be minted.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// There is no such account.
    #[error("there is no account with the e-mail address {0}")]
    UnknownAccount(String),
    /// The account does not work in the school that was named.
    #[error("{0} does not work in that school, or there is none of that name")]
    NotInSchool(String),
    /// The account's row cannot be read.
    #[error("the account {0} has a type or a time zone that this server does not know")]
    Unreadable(String),
    /// There is no such campus in the school.
    #[error("there is no campus {0} in that school")]
    UnknownCampus(String),
    /// Several campuses have that name.
    #[error("several campuses are called {0}; name one by its id")]
    SeveralCampuses(String),
    /// The caller has no standing.
    #[error(transparent)]
    Refused(#[from] ToolError),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The grant could not be made.
    #[error(transparent)]
    Grant(#[from] serde_json::Error),
}

/// Who wants a turn, and where.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Whose.
    pub email: String,
    /// In which school, by slug; for whoever works in several, the one that they joined first where none is named.
    pub school: Option<String>,
    /// On which campus, by id or name; none for the whole school.
    pub campus: Option<String>,
    /// Through which door.
    pub door: Door,
    /// For how long its grant lasts.
    pub lasts: Duration,
    /// Which turn, where it is one that goes on.
    pub turn: Option<Uuid>,
}

/// A minted turn.
#[derive(Debug, Clone)]
pub struct Minted {
    /// The turn.
    pub turn_id: Uuid,
    /// Who calls.
    pub identity: AgentIdentity,
    /// Where it is pinned.
    pub scope: AgentCallScope,
    /// Everything the agents need to know.
    pub context: AgentRuntimeContext,
    /// The proof.
    pub grant: String,
    /// The caller that the grant proves.
    pub caller: Caller,
}

/// Who was found to want a turn, proven by a grant, before anything was asked of the rows of their school.
struct Prepared {
    account: Account,
    run_mode: AgentRunMode,
    details: AgentUserDetails,
    turn_id: Uuid,
    grant: String,
    caller: Caller,
}

/// Mints a turn.
///
/// # Errors
///
/// See [`DispatchError`]; whoever is not active gets none.
pub async fn mint(database: &Database, grants: &GrantKey, wanted: Wanted) -> Result<Minted, DispatchError> {
    let prepared = prepare(database, grants, wanted).await?;
    let (caller, run_mode) = (prepared.caller, prepared.run_mode);
    let mut frame = in_tenant_scope(database, &caller, Access::Read, LIMIT, Topics::ALL).await?;
    let context = context(&mut frame, &caller, prepared.details, run_mode, &prepared.account).await;
    frame.tx.rollback().await?;
    Ok(Minted {
        turn_id: prepared.turn_id,
        identity: caller.identity().clone(),
        scope: caller.scope(),
        context: context?,
        grant: prepared.grant,
        caller,
    })
}

/// Somebody in a frame of their school, with the rights that they have now.
pub(crate) struct Entered {
    pub(crate) caller: Caller,
    pub(crate) standing: Standing,
    pub(crate) tx: Tx,
}

/// Opens a frame for somebody who comes in by a door that is no tool: to read, or to write alone with a key.
///
/// # Errors
///
/// See [`DispatchError`]; whoever is not active does not come in.
pub(crate) async fn enter(
    database: &Database,
    grants: &GrantKey,
    wanted: Wanted,
    access: Access<'_>,
) -> Result<Entered, DispatchError> {
    enter_about(database, grants, wanted, access, Topics::of(Resource::Campus)).await
}

/// The same, with the rights about other things as well.
///
/// # Errors
///
/// See [`enter`].
pub(crate) async fn enter_about(
    database: &Database,
    grants: &GrantKey,
    wanted: Wanted,
    access: Access<'_>,
    topics: Topics,
) -> Result<Entered, DispatchError> {
    let caller = prepare(database, grants, wanted).await?.caller;
    let mut frame = in_tenant_scope(database, &caller, access, LIMIT, topics).await?;
    let standing = Standing::rebuild(&mut frame, &caller)?;
    let tx = frame.tx;
    Ok(Entered { caller, standing, tx })
}

async fn prepare(database: &Database, grants: &GrantKey, wanted: Wanted) -> Result<Prepared, DispatchError> {
    let account = find(database, &wanted).await?;
    let run_mode = run_mode(database, &account, wanted.campus).await?;
    let details = details(database, &account).await?;
    let identity = identity_from_user_details(&details);
    let scope = run_mode.call_scope();
    let turn_id = wanted.turn.unwrap_or_else(Uuid::now_v7);
    let grant = grants.mint(&TurnGrant {
        identity: identity.clone(),
        scope,
        turn_id,
        door: wanted.door,
        expires_at_ms: clock::deadline_in(wanted.lasts),
    })?;
    let caller = grants.admit(identity, scope, Some(&grant)).map_err(ToolError::from)?;
    Ok(Prepared {
        account,
        run_mode,
        details,
        turn_id,
        grant,
        caller,
    })
}

async fn find(database: &Database, wanted: &Wanted) -> Result<Account, DispatchError> {
    let unknown = || DispatchError::UnknownAccount(wanted.email.clone());
    let mut accounts = account::by_email(database, &wanted.email).await?;
    if accounts.is_empty() {
        return Err(unknown());
    }
    if let Some(school) = &wanted.school {
        accounts.retain(|account| account.school_slug.as_ref() == Some(school));
    }
    // where none is named, the one that they joined first: whoever is invited by another comes in as before
    let first = accounts.into_iter().next();
    first.ok_or_else(|| DispatchError::NotInSchool(wanted.email.clone()))
}

async fn run_mode(
    database: &Database,
    account: &Account,
    campus: Option<String>,
) -> Result<AgentRunMode, DispatchError> {
    let Some(named) = campus else {
        return Ok(AgentRunMode::School {});
    };
    let mut found = account::campus(database, account.school_id, &named).await?;
    match (found.pop(), found.is_empty()) {
        (Some((id, name)), true) => Ok(AgentRunMode::Campus {
            campus: CampusReference { id, name },
        }),
        (Some(_), false) => Err(DispatchError::SeveralCampuses(named)),
        (None, _) => Err(DispatchError::UnknownCampus(named)),
    }
}

async fn details(database: &Database, account: &Account) -> Result<AgentUserDetails, DispatchError> {
    let user_type = serde_json::from_value(json!(account.user_type));
    let user_type: UserType = user_type.map_err(|_| DispatchError::Unreadable(account.email.clone()))?;
    // a platform admin belongs to no school, even with a profile in one
    let in_school = user_type != UserType::PlatformAdmin;
    let school_id = account.school_id.filter(|_| in_school);
    let campus_id = account.campus_id.filter(|_| in_school);
    let campus_name = match campus_id {
        Some(campus) => account::campus(database, school_id, &campus.to_string())
            .await?
            .pop()
            .map(|found| found.1),
        None => None,
    };
    Ok(AgentUserDetails {
        name: account.name.clone(),
        email: account.email.clone(),
        user_id: account.user_id,
        profile_id: account.staff_id.filter(|_| in_school).unwrap_or(account.user_id),
        user_type,
        school_id,
        school_name: account.school_name.clone().filter(|_| in_school),
        campus_id,
        campus_name,
    })
}

async fn context(
    frame: &mut Frame,
    caller: &Caller,
    user_details: AgentUserDetails,
    run_mode: AgentRunMode,
    account: &Account,
) -> Result<AgentRuntimeContext, DispatchError> {
    let standing = Standing::rebuild(frame, caller)?;
    let tx = &mut frame.tx;
    let time_zone = match (&account.time_zone, user_details.school_id) {
        (Some(name), Some(_)) => Some(
            name.parse::<Tz>()
                .map_err(|_| DispatchError::Unreadable(account.email.clone()))?,
        ),
        _ => None,
    };
    let campus = caller.scope().pinned();
    let in_school = tx.tenant() != Tenant::Unscoped;
    let year = if in_school {
        turn_context::current_year(tx, campus).await?
    } else {
        None
    };
    let terms = match year.as_ref().and_then(|year| year.campus_academic_year_id) {
        Some(year) => turn_context::terms(tx, year).await?.into_iter().map(term).collect(),
        None => Vec::new(),
    };
    let (capabilities, teaching_map) = match standing.actor.staff_id {
        Some(staff) => teaching(tx, staff, campus).await?,
        None => (AgentCapabilities::default(), None),
    };
    Ok(AgentRuntimeContext {
        user_details,
        run_mode,
        current_time: clock::now(),
        time_zone,
        user_permissions: snapshot(&standing),
        capabilities,
        current_academic_year: year.map(|year| CurrentAcademicYear {
            name: year.name,
            year: year.number,
            campus_academic_year_id: year.campus_academic_year_id,
        }),
        terms,
        teaching_map,
        attachments: Vec::new(),
    })
}

async fn teaching(
    tx: &mut Tx,
    staff: Uuid,
    campus: Option<Uuid>,
) -> Result<(AgentCapabilities, Option<Vec<TeachingAssignment>>), DbError> {
    let hats = turn_context::hats(tx, staff).await?;
    let capabilities = AgentCapabilities {
        is_class_teacher: hats.class_teacher,
        is_subject_teacher: hats.subject_teacher,
        is_director_of_studies: hats.director_of_studies,
    };
    if !hats.class_teacher && !hats.subject_teacher {
        return Ok((capabilities, None));
    }
    let rows = turn_context::teaching_map(tx, staff, campus).await?;
    let map = rows.into_iter().map(|row| TeachingAssignment {
        stream_id: row.stream_id,
        stream_name: row.stream_name,
        subject: row
            .subject_id
            .zip(row.subject_name)
            .map(|(id, name)| SubjectReference { id, name }),
    });
    Ok((capabilities, Some(map.collect())))
}

fn term(row: turn_context::TermRow) -> Term {
    Term {
        id: row.id,
        name: row.name,
        term_number: row.term_number,
        starts_on: row.starts_on,
        ends_on: row.ends_on,
    }
}

/// The rules as the agents may read them; advisory only.
fn snapshot(standing: &Standing) -> Vec<PermissionSnapshot> {
    let rules = standing.ability.rules().iter();
    rules
        .map(|rule| PermissionSnapshot {
            action: rule.action,
            resource: rule.resource,
            condition: match rule.condition {
                Condition::Always => None,
                Condition::Campus(campus) => Some(json!({"campusId": campus})),
                Condition::NoCampus => Some(json!({"campusId": null})),
            },
            inverted: rule.verdict == Verdict::Deny,
        })
        .collect()
}
