//! Calls that a person must approve: what is shown, what is done, once, and what is not.

mod audited;
mod changes;
mod chat;
mod crashes;
mod deciders;
mod doors;
mod everywhere;
mod meanwhile;
mod outcomes;
mod runs;
mod together;
mod told;
mod untold;

use contract::{AgentToolResult, envelope::PendingApproval};
use e2e::{
    Person, Stage,
    fixtures::HILLTOP,
    stage::{data, error, incoming, pending},
};
use serde_json::{Value, json};
use server::{
    conversation,
    decision::{Became, DecisionError, Ruling, Settled},
    grant::Door,
};
use std::time::Duration;
use uuid::Uuid;

const TOOL: &str = "delete_department";
/// What a model reads of a call that nobody can decide about any more.
const REVOKED: &str = "This was taken back before anybody decided about it, so it was not done. Do not ask again for it unless the person does.";
/// For people at the HTTP door.
const SECRET: (&str, &str) = ("AUTH_SECRET", "a secret of the tests' tokens, thirty-two bytes");

fn email(who: &str) -> conversation::Person {
    conversation::Person {
        email: HILLTOP.email(who),
    }
}

fn args() -> Value {
    json!({"departmentId": HILLTOP.department_id()})
}

/// A stage on which the administrator has asked for a department to be deleted, under the call `1`.
struct Asked {
    stage: Stage,
    admin: Person,
    id: Uuid,
}

impl Asked {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    /// The same with settings.
    async fn with(settings: &[(&str, &str)]) -> Self {
        let stage = Stage::with(settings).await;
        let admin = stage.person(&HILLTOP.email("admin")).await;
        let waits = pending(first(&stage, &admin, args(), "1").await);
        Self {
            stage,
            admin,
            id: waits.approval_id,
        }
    }

    async fn decide(&self, who: &str, ruling: Ruling) -> Result<Settled, DecisionError> {
        decide(&self.stage, who, self.id, ruling).await
    }

    /// The call again, under its key.
    async fn again(&self) -> AgentToolResult {
        first(&self.stage, &self.admin, args(), "1").await
    }

    async fn is_there(&self) -> bool {
        let find = sqlx::query_scalar("SELECT count(*) FROM departments WHERE id = $1").bind(HILLTOP.department_id());
        let rows: i64 = find.fetch_one(&mut self.stage.owner().await).await.unwrap();
        rows == 1
    }
}

/// The first reply to a call.
async fn first(stage: &Stage, person: &Person, args: Value, call_id: &str) -> AgentToolResult {
    stage.pipeline().execute(incoming(person, TOOL, args, call_id)).await
}

/// A call that waits.
async fn pending_call(stage: &Stage, person: &Person, tool: &str, args: Value, call_id: &str) -> PendingApproval {
    pending(stage.pipeline().execute(incoming(person, tool, args, call_id)).await)
}

async fn decide(stage: &Stage, who: &str, id: Uuid, ruling: Ruling) -> Result<Settled, DecisionError> {
    stage.decisions().decide(&email(who), Door::Rest, id, ruling).await
}

async fn status(stage: &Stage, id: Uuid) -> String {
    let find = sqlx::query_scalar("SELECT status FROM approvals WHERE id = $1").bind(id);
    find.fetch_one(&mut stage.owner().await).await.unwrap()
}

async fn waiting(stage: &Stage) -> i64 {
    stage
        .count("SELECT count(*) FROM approvals WHERE status = 'pending'")
        .await
}

/// fault 21: whichever way it comes in, what would happen is shown, and nothing happens
#[tokio::test]
async fn show_what_would_happen_and_do_nothing() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let mut before = stage.snapshot().await;
    let waits = pending(first(&stage, &admin, args(), "1").await);
    assert_eq!(waits.preview["name"], HILLTOP.department);
    assert_eq!(waits.preview["id"], json!(HILLTOP.department_id()));
    let mut after = stage.snapshot().await;
    assert_ne!(before.remove("approvals"), after.remove("approvals"));
    assert_eq!(after, before);

    let again = pending(first(&stage, &admin, args(), "1").await);
    assert_eq!(again, waits, "a key asks once");
    assert_eq!(waiting(&stage).await, 1);
    stage.finish().await;
}

#[tokio::test]
async fn are_asked_once_by_many_calls_of_one_key() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let calls = (0..10).map(|_| first(&stage, &admin, args(), "1"));
    let waits: Vec<_> = futures_util::future::join_all(calls)
        .await
        .into_iter()
        .map(pending)
        .collect();
    assert!(waits.iter().all(|one| *one == waits[0]));
    assert_eq!(waiting(&stage).await, 1);
    stage.finish().await;
}

/// fault 28: a turn asks once about the same call, whatever its key
#[tokio::test]
async fn are_asked_once_by_the_same_call_under_two_keys() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    // both have seen that nothing waits before either asks
    let mut holder = stage.owner().await;
    sqlx::raw_sql("BEGIN; LOCK TABLE approvals IN SHARE MODE")
        .execute(&mut holder)
        .await
        .unwrap();
    let let_go = async {
        let held = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'approvals'::regclass";
        stage.until(held, 2).await;
        sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();
    };
    let (one, two, ()) = tokio::join!(
        first(&stage, &admin, args(), "1"),
        first(&stage, &admin, args(), "2"),
        let_go
    );
    let (waits, refused) = match one {
        AgentToolResult::Pending { .. } => (pending(one), error(two)),
        AgentToolResult::Data { .. } | AgentToolResult::Error { .. } => (pending(two), error(one)),
    };
    let already = "The same call waits for the person's decision already in this turn";
    assert!(refused.starts_with(already), "{refused}");
    let third = error(first(&stage, &admin, args(), "3").await);
    assert!(third.starts_with(already), "{third}");
    assert_eq!(waiting(&stage).await, 1);
    // the same in another turn is another call
    let elsewhere = stage.person(&HILLTOP.email("admin")).await;
    pending(first(&stage, &elsewhere, args(), "1").await);

    let no = Ruling::reject(None).unwrap();
    decide(&stage, "admin", waits.approval_id, no).await.unwrap();
    for call in ["1", "2", "3"] {
        let told = error(first(&stage, &admin, args(), call).await);
        assert!(told.contains("not approve"), "{call}: {told}");
    }
    assert_eq!(waiting(&stage).await, 1, "the other turn's");
    stage.finish().await;
}

/// What a gate or the handler refuses is refused, and nobody is asked; fault 30: one call id is not two calls.
#[tokio::test]
async fn are_not_asked_for_what_is_refused() {
    let Asked { stage, admin, .. } = Asked::new().await;
    let clerk = stage.person(&HILLTOP.email("clerk")).await;
    let before = stage.snapshot().await;
    let refused = error(first(&stage, &clerk, args(), "1").await);
    assert!(refused.starts_with("Permission denied: "), "{refused}");
    let unknown = json!({"departmentId": Uuid::now_v7()});
    assert_eq!(
        error(first(&stage, &admin, unknown.clone(), "2").await),
        "Department not found."
    );
    let taken = error(first(&stage, &admin, unknown, "1").await);
    assert_eq!(taken, "This call's key was already used for another call.");
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

type Trail = (String, String, Option<Uuid>, Option<Uuid>, String);

#[tokio::test]
async fn are_done_once_and_told_in_the_trail() {
    let asked = Asked::new().await;
    let settled = asked.decide("admin", Ruling::approve()).await.unwrap();
    assert_eq!(settled.became, Became::Executed);
    assert!(!asked.is_there().await);
    let trail: Vec<Trail> = sqlx::query_as(
        "SELECT event, action, resource_id, approval_id, door FROM audit_log WHERE approval_id IS NOT NULL ORDER BY id",
    )
    .fetch_all(&mut asked.stage.owner().await)
    .await
    .unwrap();
    let row = |event: &str, action: &str, of, door: &str| {
        (
            event.to_owned(),
            action.to_owned(),
            Some(of),
            Some(asked.id),
            door.to_owned(),
        )
    };
    let expected = [
        row("decide.approval", "APPROVE", asked.id, "rest"),
        row("delete.department", "DELETE", HILLTOP.department_id(), "chat"),
    ];
    assert_eq!(trail, expected);

    let after = asked.stage.snapshot().await;
    let late = asked.decide("admin", Ruling::approve()).await;
    assert!(matches!(late, Err(DecisionError::TooLate(_))), "{late:?}");
    assert_eq!(data(asked.again().await)["name"], HILLTOP.department);
    assert_eq!(asked.stage.snapshot().await, after);
    asked.stage.finish().await;
}

/// fault 28, fault 39
#[tokio::test]
async fn that_were_rejected_are_final_and_not_asked_again() {
    let asked = Asked::new().await;
    let no = Ruling::reject(Some("Not before the inspection".into())).unwrap();
    let settled = asked.decide("admin", no).await.unwrap();
    assert_eq!(settled.became, Became::Rejected);
    let told = error(asked.again().await);
    assert!(
        told.starts_with("The person did not approve this. Their reason: Not before the inspection"),
        "{told}"
    );
    let late = asked.decide("admin", Ruling::approve()).await;
    assert!(matches!(late, Err(DecisionError::TooLate(_))), "{late:?}");

    let before = asked.stage.snapshot().await;
    let refused = error(first(&asked.stage, &asked.admin, args(), "2").await);
    assert!(refused.contains("nobody is asked again"), "{refused}");
    assert_eq!(asked.stage.snapshot().await, before);
    assert!(asked.is_there().await);
    // nor in other letters
    let shouted = HILLTOP.department_id().to_string().to_uppercase();
    let again = first(&asked.stage, &asked.admin, json!({"departmentId": shouted}), "3").await;
    assert_eq!(error(again), refused);
    assert_eq!(asked.stage.snapshot().await, before);
    // nor where it would by now do something else
    let rename = format!(
        "UPDATE departments SET name = 'Arts' WHERE id = '{}'",
        HILLTOP.department_id()
    );
    asked.stage.arrange(&rename).await;
    assert_eq!(error(first(&asked.stage, &asked.admin, args(), "4").await), refused);
    // in another turn the person may have changed their mind
    let later = asked.stage.person(&HILLTOP.email("admin")).await;
    pending(first(&asked.stage, &later, args(), "1").await);
    asked.stage.finish().await;
}

#[tokio::test]
async fn that_nobody_decides_in_time_expire() {
    let asked = Asked::new().await;
    asked
        .stage
        .arrange(
            "UPDATE approvals SET created_at = now() - interval '2 days', expires_at = now() - interval '1 second'",
        )
        .await;
    let late = asked.decide("admin", Ruling::approve()).await;
    assert!(matches!(late, Err(DecisionError::TooLate(_))), "{late:?}");
    assert!(asked.is_there().await);
    asked
        .stage
        .decisions()
        .look_after(Duration::from_mins(2))
        .await
        .unwrap();
    assert_eq!(status(&asked.stage, asked.id).await, "expired");
    assert!(error(asked.again().await).starts_with("Nobody decided about this in time"));
    asked.stage.finish().await;
}

/// A turn with its thread, as a conversation begins one.
async fn keep_turn(stage: &Stage, person: &Person) {
    let (school, staff, turn) = (HILLTOP.id(), person.identity.profile_id, person.turn_id);
    stage
        .arrange(&format!(
            "INSERT INTO threads (school_id, id, staff_id) VALUES ('{school}', '{turn}', '{staff}');
             INSERT INTO turns (school_id, id, thread_id, message, deadline_at)
             VALUES ('{school}', '{turn}', '{turn}', 'Delete it', now() + interval '5 minutes')"
        ))
        .await;
}

#[tokio::test]
async fn of_a_turn_that_has_ended_are_taken_back() {
    let asked = Asked::new().await;
    keep_turn(&asked.stage, &asked.admin).await;
    asked
        .stage
        .decisions()
        .look_after(Duration::from_mins(2))
        .await
        .unwrap();
    assert_eq!(status(&asked.stage, asked.id).await, "pending", "its turn goes on");
    // from the wish to stop it on, whether or not its worker has heard
    asked.stage.arrange("UPDATE turns SET cancelled = true").await;
    let stopped = asked.decide("admin", Ruling::approve()).await;
    let why = "it was taken back";
    assert!(
        matches!(stopped, Err(DecisionError::TooLate(said)) if said == why),
        "{stopped:?}"
    );
    asked
        .stage
        .arrange("UPDATE turns SET status = 'cancelled', outcome = 'Stopped.', ended_at = now()")
        .await;
    let late = asked.decide("admin", Ruling::approve()).await;
    assert!(matches!(late, Err(DecisionError::TooLate(_))), "{late:?}");
    asked
        .stage
        .decisions()
        .look_after(Duration::from_mins(2))
        .await
        .unwrap();
    assert_eq!(status(&asked.stage, asked.id).await, "revoked");
    assert_eq!(error(asked.again().await), REVOKED);
    assert!(asked.is_there().await);
    asked.stage.finish().await;
}

#[tokio::test]
async fn of_whoever_has_left_are_taken_back() {
    let asked = Asked::new().await;
    let staff = HILLTOP.staff("admin");
    asked
        .stage
        .arrange(&format!("UPDATE staff SET active = false WHERE id = '{staff}'"))
        .await;
    asked
        .stage
        .decisions()
        .look_after(Duration::from_mins(2))
        .await
        .unwrap();
    assert_eq!(status(&asked.stage, asked.id).await, "revoked");
    let told: Value = sqlx::query_scalar("SELECT result FROM approvals")
        .fetch_one(&mut asked.stage.owner().await)
        .await
        .unwrap();
    assert_eq!(told, json!({"error": REVOKED}));
    assert!(asked.is_there().await);
    asked.stage.finish().await;
}

/// fault 22: a yes comes from a decision, and from nothing that is sent with a call
#[tokio::test]
async fn are_not_granted_by_what_a_call_says_of_itself() {
    let asked = Asked::new().await;
    let before = asked.stage.snapshot().await;
    let mut claimed = args();
    claimed["approvalId"] = json!(asked.id);
    let refused = error(first(&asked.stage, &asked.admin, claimed, "2").await);
    assert!(refused.starts_with("Invalid tool arguments: "), "{refused}");
    let mut call = incoming(&asked.admin, TOOL, args(), "1");
    call.request["approval"] = json!({"id": asked.id, "status": "approved"});
    call.request["approved"] = json!(true);
    assert_eq!(
        pending(asked.stage.pipeline().execute(call).await).approval_id,
        asked.id
    );
    assert_eq!(asked.stage.snapshot().await, before);
    asked.stage.finish().await;
}

/// fault 48: what is shown is what runs, on the campus that the turn is pinned to
#[tokio::test]
async fn keep_to_the_pinned_campus() {
    let stage = Stage::new().await;
    let admin = stage.person_on(&HILLTOP.email("admin"), HILLTOP.first_campus).await;
    let elsewhere = HILLTOP.campus(HILLTOP.second_campus);
    let args = json!({"targetStaffId": HILLTOP.staff("newcomer"), "role": "clerk", "campusId": elsewhere});
    let waits = pending(stage.ask(&admin, "assign_staff_role", args).await);
    let pinned = json!(HILLTOP.campus(HILLTOP.first_campus));
    assert!(
        waits.preview.to_string().contains(pinned.as_str().unwrap()),
        "{}",
        waits.preview
    );
    assert!(
        !waits.preview.to_string().contains(&elsewhere.to_string()),
        "{}",
        waits.preview
    );
    let settled = decide(&stage, "admin", waits.approval_id, Ruling::approve())
        .await
        .unwrap();
    assert_eq!(settled.became, Became::Executed);
    let held: Vec<Option<Uuid>> = sqlx::query_scalar("SELECT campus_id FROM user_roles WHERE staff_id = $1")
        .bind(HILLTOP.staff("newcomer"))
        .fetch_all(&mut stage.owner().await)
        .await
        .unwrap();
    assert_eq!(held, [Some(HILLTOP.campus(HILLTOP.first_campus))]);
    stage.finish().await;
}
