//! Lesson plans, as their teachers write them: for what one teaches, one's own, and only until they are handed in.

use contract::AgentToolResult;
use e2e::{
    Stage,
    fixtures::{HILLTOP, HILLTOP_LAKESIDE, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use uuid::Uuid;

const NO_STREAM: &str = "Stream not found.";
const NO_PLAN: &str = "Lesson plan not found.";
const NO_TEMPLATE: &str = "Lesson template for that subject not found.";
const TEACHES_NO_MORE: &str =
    "Permission denied: this plan is for a subject and a stream that this person no longer teaches.";

async fn call(stage: &Stage, who: &str, tool: &str, args: Value) -> AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    stage.call(&person, tool, args).await
}

fn subject(code: &str) -> Uuid {
    id(&["hilltop", "subject", code])
}

fn template(key: &str) -> Uuid {
    id(&["hilltop", "lesson-template", key])
}

/// The plan of the seeded subject teacher's stream of last year.
fn last_years(status: &str) -> Uuid {
    id(&["hilltop", "lesson-plan", "main", "previous", "S1 North", "CHE", status])
}

fn plan_for(stream: Uuid, subject: Uuid) -> Value {
    json!({"streamId": stream, "subjectId": subject, "topic": "Salts", "objectives": "Name three", "activities": "Look at them"})
}

fn own_plan() -> Value {
    plan_for(HILLTOP.stream_id(), subject(HILLTOP.subject))
}

async fn mine(stage: &Stage, who: &str, args: Value) -> Vec<Value> {
    let page = data(call(stage, who, "list_my_lesson_plans", args).await);
    page["rows"].as_array().unwrap().clone()
}

fn ids(rows: &[Value]) -> Vec<Uuid> {
    rows.iter()
        .map(|row| row["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

#[tokio::test]
async fn are_begun_by_who_teaches_the_subject_to_the_stream() {
    let stage = Stage::new().await;
    let chemistry = subject("CHE");
    let east = HILLTOP.stream_id();
    let before = stage.snapshot().await;
    for (who, args, why) in [
        ("class.teacher", own_plan(), "its class teacher"),
        ("both.hats", own_plan(), "who teaches it another subject"),
        ("dos", own_plan(), "the director of its campus"),
        ("admin", own_plan(), "a role is no relationship"),
        ("isaac.ocen", own_plan(), "a teacher of the other campus"),
        ("subject.teacher", plan_for(east, subject("ENG")), "another's subject"),
        (
            "subject.teacher",
            plan_for(id(&["hilltop", "stream", "main", "previous", "S1 North"]), chemistry),
            "last year's",
        ),
        (
            "subject.teacher",
            plan_for(RIVERSIDE.stream_id(), chemistry),
            "another school's",
        ),
        ("subject.teacher", plan_for(Uuid::now_v7(), chemistry), "nobody's"),
    ] {
        let refused = error(call(&stage, who, "create_lesson_plan", args).await);
        assert_eq!(refused, NO_STREAM, "{who}: {why}");
    }
    assert_eq!(stage.snapshot().await, before);

    let plan = data(call(&stage, "subject.teacher", "create_lesson_plan", own_plan()).await);
    for (member, expected) in [
        ("status", json!("draft")),
        ("streamName", json!("S2 East")),
        ("subjectName", json!("Chemistry")),
        ("teacherId", json!(HILLTOP.staff("subject.teacher"))),
        ("teacherName", json!("Esther Akello")),
        ("campusId", json!(HILLTOP.campus("main"))),
        ("templateId", Value::Null),
        ("materials", Value::Null),
        ("submittedAt", Value::Null),
    ] {
        assert_eq!(plan[member], expected, "{member}");
    }
    assert!(!plan.to_string().contains(&HILLTOP.id().to_string()));
    let geography = plan_for(east, subject("GEO"));
    data(call(&stage, "both.hats", "create_lesson_plan", geography).await);
    stage.finish().await;
}

#[tokio::test]
async fn are_for_today_where_the_school_is_unless_a_day_is_named() {
    let stage = Stage::new().await;
    // the furthest zone to the west and to the east: one of them is never in the day of UTC
    for zone in ["Etc/GMT+12", "Pacific/Kiritimati"] {
        stage.arrange(&format!("UPDATE schools SET time_zone = '{zone}'")).await;
        let plan = data(call(&stage, "subject.teacher", "create_lesson_plan", own_plan()).await);
        let today: String = sqlx::query_scalar("SELECT (now() AT TIME ZONE $1)::date::text")
            .bind(zone)
            .fetch_one(&mut stage.owner().await)
            .await
            .unwrap();
        assert_eq!(plan["taughtOn"], json!(today), "{zone}");
    }
    let on = |day: &str| {
        let mut args = own_plan();
        args["taughtOn"] = json!(day);
        call(&stage, "subject.teacher", "create_lesson_plan", args)
    };
    assert_eq!(data(on("2199-12-31").await)["taughtOn"], "2199-12-31");
    let before = stage.snapshot().await;
    for day in ["1999-12-31", "2200-01-01", "2026-02-30", "today"] {
        let refused = error(on(day).await);
        assert!(
            refused.starts_with("Invalid tool arguments: taughtOn: "),
            "{day}: {refused}"
        );
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

#[tokio::test]
async fn follow_a_template_that_fits_their_subject() {
    let stage = Stage::new().await;
    let create = |template: Uuid| {
        let mut args = own_plan();
        args["templateId"] = json!(template);
        call(&stage, "subject.teacher", "create_lesson_plan", args)
    };
    let change = |template: Uuid| {
        let args = json!({"planId": HILLTOP.plan("draft"), "templateId": template});
        call(&stage, "subject.teacher", "update_lesson_plan", args)
    };
    let before = stage.snapshot().await;
    for (other, why) in [
        (template("problem"), "for Mathematics"),
        (id(&["riverside", "lesson-template", "plain"]), "of another school"),
        (Uuid::now_v7(), "of nobody"),
    ] {
        assert_eq!(error(create(other).await), NO_TEMPLATE, "{why}");
        assert_eq!(error(change(other).await), NO_TEMPLATE, "{why}");
    }
    assert_eq!(stage.snapshot().await, before);
    assert_eq!(data(create(template("plain")).await)["templateName"], "Plain lesson");
    assert_eq!(data(change(template("practical")).await)["templateName"], "Practical");
    stage.finish().await;
}

#[tokio::test]
async fn are_changed_by_their_own_teacher_until_they_are_handed_in() {
    let stage = Stage::new().await;
    let change = |who: &'static str, plan: Uuid| {
        let args = json!({"planId": plan, "topic": "Acids"});
        call(&stage, who, "update_lesson_plan", args)
    };
    let before = stage.snapshot().await;
    for status in ["submitted", "approved"] {
        let refused = error(change("subject.teacher", HILLTOP.plan(status)).await);
        let expected = format!("This lesson plan is {status}. Only a draft or a returned one can be changed.");
        assert_eq!(refused, expected);
    }
    for (who, plan, why) in [
        ("both.hats", HILLTOP.plan("draft"), "another teacher of the stream"),
        ("class.teacher", HILLTOP.plan("draft"), "its class teacher"),
        ("dos", HILLTOP.plan("draft"), "the director of its campus"),
        ("admin", HILLTOP.plan("draft"), "a role is no relationship"),
        ("subject.teacher", last_years("draft"), "last year's own"),
        ("subject.teacher", HILLTOP_LAKESIDE.plan("draft"), "another's"),
        ("subject.teacher", RIVERSIDE.plan("draft"), "another school's"),
    ] {
        assert_eq!(error(change(who, plan).await), NO_PLAN, "{who}: {why}");
    }
    assert_eq!(stage.snapshot().await, before);
    for status in ["draft", "returned"] {
        let changed = data(change("subject.teacher", HILLTOP.plan(status)).await);
        assert_eq!(
            (&changed["topic"], &changed["status"]),
            (&json!("Acids"), &json!(status))
        );
    }
    stage.finish().await;
}

/// fault 51, for a plan: it stays one's own, and is written no more
#[tokio::test]
async fn stay_as_they_are_once_somebody_else_teaches() {
    let stage = Stage::new().await;
    let plan = HILLTOP.plan("draft");
    let gone = format!(
        "DELETE FROM subject_teachers WHERE staff_id = '{}' AND stream_id = '{}'",
        HILLTOP.staff("subject.teacher"),
        HILLTOP.stream_id()
    );
    stage.arrange(&gone).await;
    let before = stage.snapshot().await;
    let args = json!({"planId": plan, "topic": "Acids"});
    let refused = call(&stage, "subject.teacher", "update_lesson_plan", args).await;
    assert_eq!(error(refused), TEACHES_NO_MORE);
    let refused = call(&stage, "subject.teacher", "submit_lesson_plan", json!({"planId": plan})).await;
    assert_eq!(error(refused), TEACHES_NO_MORE);
    assert_eq!(stage.snapshot().await, before);
    assert!(ids(&mine(&stage, "subject.teacher", json!({})).await).contains(&plan));
    stage.finish().await;
}

/// fault 35: null is absent, and clearing is explicit
#[tokio::test]
async fn keep_what_an_update_does_not_name() {
    let stage = Stage::new().await;
    let plan = HILLTOP.plan("draft");
    let update = |mut args: Value| {
        args["planId"] = json!(plan);
        call(&stage, "subject.teacher", "update_lesson_plan", args)
    };
    let whole = json!({"topic": "A", "objectives": "B", "activities": "C", "materials": "D", "templateId": template("plain"), "taughtOn": "2030-05-06"});
    let mut expected = data(update(whole).await);
    for (change, member, value) in [
        (
            json!({"topic": "Acids", "materials": null, "clear": null}),
            "topic",
            json!("Acids"),
        ),
        (json!({"objectives": "Name two"}), "objectives", json!("Name two")),
        (json!({"activities": "Test both"}), "activities", json!("Test both")),
        (json!({"taughtOn": "2030-05-07"}), "taughtOn", json!("2030-05-07")),
        (json!({"clear": ["materials"]}), "materials", Value::Null),
    ] {
        expected[member] = value;
        assert_eq!(data(update(change).await), expected, "{member}");
    }
    expected["templateId"] = Value::Null;
    expected["templateName"] = Value::Null;
    assert_eq!(data(update(json!({"clear": ["templateId"]})).await), expected);

    let before = stage.snapshot().await;
    for (change, why) in [
        (json!({}), "arguments: name what to change"),
        (json!({"clear": []}), "arguments: name what to change"),
        (
            json!({"materials": "A", "clear": ["materials"]}),
            "clear: materials is given and cleared at once",
        ),
        (
            json!({"templateId": template("plain"), "clear": ["templateId"]}),
            "clear: templateId is given and cleared at once",
        ),
        (json!({"clear": ["topic"]}), "clear/0: "),
        (json!({"topic": " "}), "topic: "),
        (json!({"activities": "x".repeat(2001)}), "activities: "),
    ] {
        let refused = error(update(change.clone()).await);
        assert!(
            refused.starts_with(&format!("Invalid tool arguments: {why}")),
            "{change}: {refused}"
        );
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

#[tokio::test]
async fn are_handed_in_once_by_their_own_teacher() {
    let stage = Stage::new().await;
    let submit = |who: &'static str, plan: Uuid| call(&stage, who, "submit_lesson_plan", json!({"planId": plan}));
    let before = stage.snapshot().await;
    for (who, plan) in [
        ("both.hats", HILLTOP.plan("draft")),
        ("dos", HILLTOP.plan("draft")),
        ("admin", HILLTOP.plan("draft")),
        ("subject.teacher", last_years("draft")),
    ] {
        assert_eq!(error(submit(who, plan).await), NO_PLAN, "{who}");
    }
    assert_eq!(stage.snapshot().await, before);
    for status in ["draft", "returned"] {
        let plan = data(submit("subject.teacher", HILLTOP.plan(status)).await);
        assert_eq!(plan["status"], "submitted", "{status}");
        assert!(plan["submittedAt"].is_string());
        // what was written about it before stays for whoever reviews it again
        assert_eq!(plan["reviewComment"].is_string(), status == "returned");
        let again = error(submit("subject.teacher", HILLTOP.plan(status)).await);
        let expected = "This lesson plan is submitted. Only a draft or a returned one can be submitted.";
        assert_eq!(again, expected);
    }
    assert_eq!(stage.audit_rows().await, 2);
    stage.finish().await;
}

#[tokio::test]
async fn are_listed_to_their_own_teacher_the_newest_lesson_first() {
    let stage = Stage::new().await;
    let right: Vec<Uuid> = sqlx::query_scalar(
        "SELECT p.id FROM lesson_plans p JOIN campus_academic_years y ON y.id = p.campus_academic_year_id AND y.is_current
          WHERE p.teacher_id = $1 ORDER BY p.taught_on DESC, p.id DESC",
    )
    .bind(HILLTOP.staff("subject.teacher"))
    .fetch_all(&mut stage.owner().await)
    .await
    .unwrap();
    assert!(right.len() >= 8 && !right.contains(&last_years("draft")));
    assert_eq!(
        ids(&mine(&stage, "subject.teacher", json!({"limit": 200})).await),
        right
    );
    let teacher = stage.person(&HILLTOP.email("subject.teacher")).await;
    let (mut walked, mut args) = (Vec::new(), json!({"limit": 3}));
    loop {
        let page = data(stage.call(&teacher, "list_my_lesson_plans", args.clone()).await);
        walked.extend(ids(page["rows"].as_array().unwrap()));
        if page["more"] == false {
            break;
        }
        args["cursor"] = page["nextCursor"].clone();
    }
    assert_eq!(walked, right);
    for status in ["draft", "submitted", "approved", "returned"] {
        let rows = mine(&stage, "subject.teacher", json!({"status": status})).await;
        assert!(rows.iter().all(|row| row["status"] == status), "{status}");
        assert!(ids(&rows).contains(&HILLTOP.plan(status)));
    }
    for who in ["class.teacher", "admin", "newcomer"] {
        assert!(mine(&stage, who, json!({})).await.is_empty(), "{who}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn are_those_of_the_pinned_campus_only() {
    let stage = Stage::new().await;
    let lakeside = HILLTOP_LAKESIDE.plan("draft");
    let teacher = HILLTOP.staff("subject.teacher");
    let (stream, physics) = (HILLTOP_LAKESIDE.stream_id(), subject("PHY"));
    stage
        .arrange(&format!(
            "UPDATE lesson_plans SET teacher_id = '{teacher}' WHERE id = '{lakeside}';
             INSERT INTO subject_teachers (school_id, stream_id, subject_id, staff_id)
             VALUES ('{}', '{stream}', '{physics}', '{teacher}')",
            HILLTOP.id()
        ))
        .await;
    let pinned = stage.person_on(&HILLTOP.email("subject.teacher"), "main").await;
    let page = data(stage.call(&pinned, "list_my_lesson_plans", json!({"limit": 200})).await);
    let listed = ids(page["rows"].as_array().unwrap());
    assert!(!listed.contains(&lakeside) && listed.contains(&HILLTOP.plan("draft")));
    let submit = |plan: Uuid| stage.call(&pinned, "submit_lesson_plan", json!({"planId": plan}));
    assert_eq!(error(submit(lakeside).await), NO_PLAN);
    data(submit(HILLTOP.plan("draft")).await);
    // unpinned, both are theirs
    data(
        call(
            &stage,
            "subject.teacher",
            "submit_lesson_plan",
            json!({"planId": lakeside}),
        )
        .await,
    );
    stage.finish().await;
}

#[tokio::test]
async fn have_templates_that_whoever_teaches_a_subject_sees() {
    let stage = Stage::new().await;
    let list = |who: &'static str, args: Value| call(&stage, who, "list_templates", args);
    let names = |page: &Value| -> Vec<String> {
        let rows = page["rows"].as_array().unwrap();
        rows.iter()
            .map(|row| row["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = [
        "One long problem",
        "Plain lesson",
        "Practical",
        "Revision",
        "Work in groups",
    ];
    for who in ["subject.teacher", "both.hats", "isaac.ocen"] {
        assert_eq!(names(&data(list(who, json!({})).await)), all, "{who}");
    }
    for who in ["class.teacher", "newcomer", "admin"] {
        let refused = error(list(who, json!({})).await);
        assert_eq!(
            refused, "Permission denied: this is for whoever teaches a subject to a stream of this year.",
            "{who}"
        );
    }
    let for_chemistry = data(list("subject.teacher", json!({"subjectId": subject("CHE")})).await);
    assert_eq!(names(&for_chemistry), all[1..]);
    assert_eq!(
        for_chemistry["rows"][1],
        json!({
            "id": template("practical"),
            "name": "Practical",
            "description": "With apparatus: safety first, and time to clear up.",
            "sections": ["Safety", "Question and guess", "Doing it", "What was seen", "Clearing up"],
            "subjectId": subject("CHE"),
            "subjectName": "Chemistry",
        })
    );
    // who taught last year only
    stage
        .arrange(
            "DELETE FROM subject_teachers t USING streams st, campus_academic_years y
                   WHERE st.id = t.stream_id AND y.id = st.campus_academic_year_id AND y.is_current",
        )
        .await;
    error(list("subject.teacher", json!({})).await);
    stage.finish().await;
}
