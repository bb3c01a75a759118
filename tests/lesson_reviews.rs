//! Reviews of lesson plans: on the campus whose studies one directs, never of one's own, and each submission once.

use contract::AgentToolResult;
use e2e::{
    Stage,
    fixtures::{HILLTOP, HILLTOP_LAKESIDE, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use uuid::Uuid;

const NO_PLAN: &str = "Lesson plan not found.";
const NOT_A_DIRECTOR: &str = "Permission denied: this is for the director of studies of a campus.";

async fn call(stage: &Stage, who: &str, tool: &str, args: Value) -> AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    stage.call(&person, tool, args).await
}

async fn approve(stage: &Stage, who: &str, plan: Uuid) -> AgentToolResult {
    let args = json!({"planId": plan, "decision": "approve"});
    call(stage, who, "review_lesson_plan", args).await
}

/// Makes somebody a director of studies of a campus.
async fn appoint(stage: &Stage, who: &str, campus: &str) {
    let (school, campus, staff) = (HILLTOP.id(), HILLTOP.campus(campus), HILLTOP.staff(who));
    stage
        .arrange(&format!(
            "INSERT INTO directors_of_studies (school_id, campus_id, staff_id) VALUES ('{school}', '{campus}', '{staff}')
             ON CONFLICT DO NOTHING"
        ))
        .await;
}

async fn waiting(stage: &Stage, who: &str, args: Value) -> Vec<Uuid> {
    let page = data(call(stage, who, "list_lesson_plan_reviews", args).await);
    let rows = page["rows"].as_array().unwrap();
    rows.iter()
        .map(|row| row["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

#[tokio::test]
async fn wait_for_the_director_of_their_campus_the_longest_first() {
    let stage = Stage::new().await;
    appoint(&stage, "harriet.namara", "lakeside").await;
    // what was never reviewed last year waits for nobody
    stage
        .arrange(
            "UPDATE lesson_plans p SET status = 'submitted', submitted_at = now() FROM campus_academic_years y
              WHERE y.id = p.campus_academic_year_id AND NOT y.is_current AND p.status = 'draft'",
        )
        .await;
    for (who, campus) in [("dos", "main"), ("harriet.namara", "lakeside")] {
        let right: Vec<Uuid> = sqlx::query_scalar(
            "SELECT p.id FROM lesson_plans p JOIN streams st ON st.id = p.stream_id
               JOIN campus_academic_years y ON y.id = st.campus_academic_year_id AND y.is_current
              WHERE st.campus_id = $1 AND p.status = 'submitted' ORDER BY p.submitted_at, p.id",
        )
        .bind(HILLTOP.campus(campus))
        .fetch_all(&mut stage.owner().await)
        .await
        .unwrap();
        assert!(right.len() >= 2, "{campus}");
        assert_eq!(waiting(&stage, who, json!({"limit": 200})).await, right, "{who}");
        let first = data(call(&stage, who, "list_lesson_plan_reviews", json!({"limit": 1})).await);
        let next = json!({"limit": 200, "cursor": first["nextCursor"]});
        assert_eq!(waiting(&stage, who, next).await, right[1..], "{who}");
    }
    for who in ["subject.teacher", "class.teacher", "head", "admin"] {
        let refused = error(call(&stage, who, "list_lesson_plan_reviews", json!({})).await);
        assert_eq!(refused, NOT_A_DIRECTOR, "{who}");
    }
    let elsewhere = json!({"campusId": HILLTOP.campus("lakeside")});
    let refused = error(call(&stage, "dos", "list_lesson_plan_reviews", elsewhere).await);
    assert_eq!(refused, "Campus not found.");
    stage.finish().await;
}

#[tokio::test]
async fn are_the_director_of_studies_of_the_campus_to_give() {
    let stage = Stage::new().await;
    appoint(&stage, "harriet.namara", "lakeside").await;
    let plan = HILLTOP.plan("submitted");
    let before = stage.snapshot().await;
    for (who, why) in [
        ("harriet.namara", "directs the other campus"),
        ("class.teacher", "its class teacher"),
        ("both.hats", "teaches the stream another subject"),
        ("head", "a role is no relationship"),
        ("admin", "nor is this one"),
    ] {
        assert_eq!(error(approve(&stage, who, plan).await), NO_PLAN, "{who}: {why}");
    }
    for (other, why) in [
        (HILLTOP_LAKESIDE.plan("submitted"), "of the other campus"),
        (RIVERSIDE.plan("submitted"), "of another school"),
        (Uuid::now_v7(), "of nobody"),
    ] {
        assert_eq!(error(approve(&stage, "dos", other).await), NO_PLAN, "{why}");
    }
    assert_eq!(stage.snapshot().await, before);
    let approved = data(approve(&stage, "dos", plan).await);
    assert_eq!(
        (&approved["status"], &approved["reviewComment"]),
        (&json!("approved"), &Value::Null)
    );
    assert!(!waiting(&stage, "dos", json!({"limit": 200})).await.contains(&plan));
    data(approve(&stage, "harriet.namara", HILLTOP_LAKESIDE.plan("submitted")).await);
    stage.finish().await;
}

/// Whoever directs two campuses names none: a plan is on one of them.
#[tokio::test]
async fn find_their_campus_by_the_plan() {
    let stage = Stage::new().await;
    appoint(&stage, "dos", "lakeside").await;
    let refused = error(call(&stage, "dos", "list_lesson_plan_reviews", json!({})).await);
    assert!(refused.starts_with("Invalid tool arguments: campusId: "), "{refused}");
    let pinned = stage.person_on(&HILLTOP.email("dos"), "main").await;
    let args = |plan: Uuid| json!({"planId": plan, "decision": "approve"});
    let lakeside = HILLTOP_LAKESIDE.plan("submitted");
    let refused = stage.call(&pinned, "review_lesson_plan", args(lakeside)).await;
    assert_eq!(error(refused), NO_PLAN);
    data(approve(&stage, "dos", lakeside).await);
    data(
        stage
            .call(&pinned, "review_lesson_plan", args(HILLTOP.plan("submitted")))
            .await,
    );
    stage.finish().await;
}

#[tokio::test]
async fn are_never_of_ones_own_plan() {
    let stage = Stage::new().await;
    appoint(&stage, "subject.teacher", "main").await;
    let before = stage.snapshot().await;
    for status in ["submitted", "draft"] {
        assert_eq!(
            error(approve(&stage, "subject.teacher", HILLTOP.plan(status)).await),
            "Permission denied: nobody reviews a lesson plan of their own."
        );
    }
    // who is no director is told nothing of the kind
    assert_eq!(
        error(approve(&stage, "both.hats", HILLTOP.plan("submitted")).await),
        NO_PLAN
    );
    assert_eq!(stage.snapshot().await, before);
    let anothers = id(&[
        "hilltop",
        "lesson-plan",
        "main",
        "current",
        "S2 East",
        "GEO",
        "submitted",
    ]);
    data(approve(&stage, "subject.teacher", anothers).await);
    data(approve(&stage, "dos", HILLTOP.plan("submitted")).await);
    stage.finish().await;
}

#[tokio::test]
async fn return_a_plan_only_with_a_comment() {
    let stage = Stage::new().await;
    let plan = HILLTOP.plan("submitted");
    let give_back = |comment: Value| {
        let args = json!({"planId": plan, "decision": "return", "comment": comment});
        call(&stage, "dos", "review_lesson_plan", args)
    };
    let before = stage.snapshot().await;
    for comment in [Value::Null, json!(""), json!(" \n")] {
        let refused = error(give_back(comment.clone()).await);
        assert!(
            refused.starts_with("Invalid tool arguments: comment: "),
            "{comment}: {refused}"
        );
    }
    assert_eq!(stage.snapshot().await, before);
    let returned = data(give_back(json!("Say what they write down.")).await);
    assert_eq!(returned["status"], "returned");

    // the teacher reads it, mends the plan and hands it in again; the director sees what was asked for
    let mine = data(
        call(
            &stage,
            "subject.teacher",
            "list_my_lesson_plans",
            json!({"status": "returned"}),
        )
        .await,
    );
    let rows = mine["rows"].as_array().unwrap();
    let read = rows.iter().find(|row| row["id"] == json!(plan)).unwrap();
    assert_eq!(read["reviewComment"], "Say what they write down.");
    let mended = json!({"planId": plan, "activities": "Sort, explain, write three lines"});
    data(call(&stage, "subject.teacher", "update_lesson_plan", mended).await);
    let again = data(call(&stage, "subject.teacher", "submit_lesson_plan", json!({"planId": plan})).await);
    assert_eq!(again["reviewComment"], "Say what they write down.");
    assert_eq!(waiting(&stage, "dos", json!({"limit": 200})).await.last(), Some(&plan));
    assert_eq!(data(approve(&stage, "dos", plan).await)["reviewComment"], Value::Null);
    stage.finish().await;
}

#[tokio::test]
async fn are_of_submitted_plans_of_this_year_only() {
    let stage = Stage::new().await;
    let last_years = id(&["hilltop", "lesson-plan", "main", "previous", "S1 North", "CHE", "draft"]);
    stage
        .arrange(&format!(
            "UPDATE lesson_plans SET status = 'submitted', submitted_at = now() WHERE id = '{last_years}'"
        ))
        .await;
    let before = stage.snapshot().await;
    for status in ["draft", "approved", "returned"] {
        let expected = format!("This lesson plan is {status}. Only a submitted one can be reviewed.");
        assert_eq!(error(approve(&stage, "dos", HILLTOP.plan(status)).await), expected);
    }
    assert_eq!(error(approve(&stage, "dos", last_years).await), NO_PLAN);
    assert_eq!(stage.snapshot().await, before);
    data(approve(&stage, "dos", HILLTOP.plan("submitted")).await);
    stage.finish().await;
}

#[tokio::test]
async fn by_two_directors_at_once_decide_once() {
    let stage = Stage::new().await;
    appoint(&stage, "head", "main").await;
    let plan = HILLTOP.plan("submitted");
    let (dos, head) = tokio::join!(approve(&stage, "dos", plan), approve(&stage, "head", plan));
    assert!(dos.is_data() != head.is_data(), "{dos:?} and {head:?}");
    let refused = error(if dos.is_data() { head } else { dos });
    assert_eq!(
        refused,
        "This lesson plan is approved. Only a submitted one can be reviewed."
    );
    assert_eq!(stage.audit_rows().await, 1);
    stage.finish().await;
}

/// What the tools never try, the database refuses too.
#[tokio::test]
async fn hold_to_their_order_in_the_database() {
    let stage = Stage::new().await;
    for (change, constraint) in [
        ("status = 'published'", "lesson_plans_status_check"),
        ("status = 'approved'", "lesson_plans_reviewed_check"),
        ("status = 'draft'", "lesson_plans_submitted_check"),
        (
            "status = 'returned', reviewer_id = $r, reviewed_at = now()",
            "lesson_plans_returned_check",
        ),
        ("reviewer_id = $r", "lesson_plans_review_check"),
        (
            "reviewer_id = teacher_id, reviewed_at = now()",
            "lesson_plans_reviewer_check",
        ),
    ] {
        let change = change.replace("$r", &format!("'{}'", HILLTOP.staff("dos")));
        let statement = format!(
            "UPDATE lesson_plans SET {change} WHERE id = '{}'",
            HILLTOP.plan("submitted")
        );
        let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
            .execute(&mut stage.owner().await)
            .await
            .unwrap_err();
        let refused_by = refused
            .as_database_error()
            .and_then(|error| error.constraint())
            .map(str::to_owned);
        assert_eq!(refused_by.as_deref(), Some(constraint), "{change}");
    }
    stage.finish().await;
}

/// A review that began before the plan was submitted again, and waited for that, is no earlier than it.
#[tokio::test]
async fn are_never_earlier_than_the_submission_that_they_waited_for() {
    let stage = Stage::new().await;
    let plan = HILLTOP.plan("submitted");
    let mut holder = stage.owner().await;
    let hold = format!("BEGIN; SELECT 1 FROM lesson_plans WHERE id = '{plan}' FOR UPDATE");
    sqlx::raw_sql(sqlx::AssertSqlSafe(hold))
        .execute(&mut holder)
        .await
        .unwrap();
    let release = async {
        while stage
            .count("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
            .await
            == 0
        {
            tokio::task::yield_now().await;
        }
        let submit = format!("UPDATE lesson_plans SET submitted_at = clock_timestamp() WHERE id = '{plan}'; COMMIT");
        sqlx::raw_sql(sqlx::AssertSqlSafe(submit))
            .execute(&mut holder)
            .await
            .unwrap();
    };
    let (approved, ()) = tokio::join!(approve(&stage, "dos", plan), release);
    assert_eq!(data(approved)["status"], "approved");
    let at_once: bool = sqlx::query_scalar("SELECT reviewed_at = submitted_at FROM lesson_plans WHERE id = $1")
        .bind(plan)
        .fetch_one(&mut stage.owner().await)
        .await
        .unwrap();
    assert!(at_once);
    stage.finish().await;
}
