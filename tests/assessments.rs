//! Assessments: who lists and makes them, of what, and when.

use e2e::{
    Stage,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use uuid::Uuid;

const NOT_FOUND: &str = "Stream not found.";

fn stream(campus: &str, year: &str, name: &str) -> Uuid {
    id(&["hilltop", "stream", campus, year, name])
}

fn subject(code: &str) -> Uuid {
    id(&["hilltop", "subject", code])
}

fn term(campus: &str, year: &str, number: &str) -> Uuid {
    id(&["hilltop", "term", campus, year, number])
}

/// About a subject in a stream of the main campus.
fn of(name: &str, code: &str) -> Value {
    json!({"streamId": stream("main", "current", name), "subjectId": subject(code)})
}

fn new(name: &str) -> Value {
    let mut args = of("S2 East", "CHE");
    args["name"] = json!(name);
    args["outOf"] = json!(20);
    args["weight"] = json!(10);
    args
}

async fn call(stage: &Stage, who: &str, tool: &str, args: Value) -> contract::AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    stage.call(&person, tool, args).await
}

async fn create(stage: &Stage, who: &str, args: Value) -> contract::AgentToolResult {
    call(stage, who, "create_assessment", args).await
}

#[tokio::test]
async fn are_listed_for_who_teaches_the_subject_and_the_director() {
    let stage = Stage::new().await;
    for (who, args) in [
        ("subject.teacher", of("S2 East", "CHE")),
        ("both.hats", of("S2 East", "GEO")),
        ("dos", of("S2 East", "CHE")),
    ] {
        data(call(&stage, who, "list_assessments", args).await);
    }
    let last_year = json!({"streamId": stream("main", "previous", "S1 North"), "subjectId": subject("CHE")});
    let lakeside = json!({"streamId": stream("lakeside", "current", "S1 Lake"), "subjectId": subject("PHY")});
    for (who, args, why) in [
        ("class.teacher", of("S2 East", "CHE"), "only its class teacher"),
        ("subject.teacher", of("S2 East", "GEO"), "another's subject"),
        ("subject.teacher", of("S2 West", "GEO"), "another's stream"),
        ("subject.teacher", last_year, "last year's own"),
        ("dos", lakeside, "another campus"),
        ("admin", of("S2 East", "CHE"), "a role is no relationship"),
    ] {
        let refused = call(&stage, who, "list_assessments", args).await;
        assert_eq!(error(refused), NOT_FOUND, "{who}: {why}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn are_listed_by_term_with_what_is_in_and_what_is_missing() {
    let stage = Stage::new().await;
    let mut args = of("S2 East", "CHE");
    args["termId"] = json!(term("main", "current", "1"));
    let list = || call(&stage, "subject.teacher", "list_assessments", args.clone());
    let page = data(list().await);
    assert_eq!(
        (&page["termName"], &page["resultsPublished"]),
        (&json!("Term One"), &json!(false))
    );
    let rows = page["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Mid-term test", "End of term examination"]);
    assert_eq!((&rows[0]["scored"], &rows[0]["missing"]), (&json!(36), &json!(0)));
    let test = HILLTOP.assessment("1", "1");
    stage
        .arrange(&format!(
            "CREATE TEMPORARY TABLE three AS SELECT * FROM scores WHERE assessment_id = '{test}' ORDER BY student_id LIMIT 3;
             DELETE FROM scores WHERE id IN (SELECT id FROM three);
             UPDATE students SET active = false WHERE id = (SELECT min(student_id::text)::uuid FROM three);
             UPDATE enrolments e SET enrolled_on = a.held_on + 1 FROM assessments a
              WHERE a.id = '{test}' AND e.stream_id = a.stream_id AND student_id = (SELECT max(student_id::text)::uuid FROM three)"
        ))
        .await;
    let row = data(list().await)["rows"][0].clone();
    assert_eq!(row["id"], json!(test));
    assert_eq!(
        (&row["scored"], &row["missing"]),
        (&json!(33), &json!(1)),
        "neither who left nor who came later owes one"
    );
    for foreign in [
        term("main", "previous", "1"),
        term("lakeside", "current", "1"),
        Uuid::now_v7(),
    ] {
        let mut args = args.clone();
        args["termId"] = json!(foreign);
        let refused = call(&stage, "subject.teacher", "list_assessments", args).await;
        assert_eq!(error(refused), "Term not found.");
    }
    stage.finish().await;
}

#[tokio::test]
async fn are_listed_in_pages() {
    let stage = Stage::new().await;
    for name in ["One", "Two", "Three"] {
        data(create(&stage, "subject.teacher", new(name)).await);
    }
    let (mut args, mut seen) = (of("S2 East", "CHE"), Vec::new());
    let whole = data(call(&stage, "subject.teacher", "list_assessments", args.clone()).await);
    args["limit"] = json!(1);
    loop {
        let page = data(call(&stage, "subject.teacher", "list_assessments", args.clone()).await);
        seen.extend(page["rows"].as_array().unwrap().iter().cloned());
        let Some(next) = page.get("nextCursor") else { break };
        args["cursor"] = next.clone();
    }
    assert_eq!(json!(seen), whole["rows"]);
    stage.finish().await;
}

#[tokio::test]
async fn are_made_by_who_teaches_the_subject_alone() {
    let stage = Stage::new().await;
    let before = stage.snapshot().await;
    for who in ["class.teacher", "dos", "both.hats", "head", "admin"] {
        assert_eq!(error(create(&stage, who, new("Practical")).await), NOT_FOUND, "{who}");
    }
    let foreign =
        json!({"streamId": RIVERSIDE.stream_id(), "subjectId": subject("CHE"), "name": "A", "outOf": 1, "weight": 1});
    assert_eq!(error(create(&stage, "subject.teacher", foreign).await), NOT_FOUND);
    assert_eq!(stage.snapshot().await, before);
    let made = data(create(&stage, "subject.teacher", new("Practical")).await);
    let today = stage.count(
        "SELECT count(*) FROM assessments a JOIN schools s ON s.id = a.school_id
        WHERE a.name = 'Practical' AND a.held_on = (now() at time zone s.time_zone)::date",
    );
    assert_eq!((&made["name"], today.await), (&json!("Practical"), 1));
    assert!(made["id"].is_string() && made["termName"].is_string(), "{made}");
    stage.finish().await;
}

#[tokio::test]
async fn have_names_of_their_own_in_stream_subject_and_term() {
    let stage = Stage::new().await;
    data(create(&stage, "subject.teacher", new("Practical")).await);
    let before = stage.snapshot().await;
    let refused = error(create(&stage, "subject.teacher", new("PRACTICAL")).await);
    assert_eq!(
        refused,
        "An assessment of that name exists for this stream, subject and term."
    );
    assert_eq!(stage.snapshot().await, before);
    let mut elsewhere = new("Practical");
    elsewhere["streamId"] = json!(stream("main", "current", "S1 East"));
    data(create(&stage, "subject.teacher", elsewhere).await);
    stage.finish().await;
}

#[tokio::test]
async fn are_held_within_the_year_in_a_term_of_it() {
    let stage = Stage::new().await;
    let with = |member: &str, value: Value| {
        let mut args = new("Practical");
        args[member] = value;
        args
    };
    let before = stage.snapshot().await;
    for day in ["1999-05-05", "2999-05-05"] {
        let refused = error(create(&stage, "subject.teacher", with("heldOn", json!(day))).await);
        assert!(
            refused.starts_with("Invalid tool arguments: heldOn: not in the school year"),
            "{refused}"
        );
    }
    for foreign in [
        term("main", "previous", "1"),
        term("lakeside", "current", "1"),
        Uuid::now_v7(),
    ] {
        let refused = error(create(&stage, "subject.teacher", with("termId", json!(foreign))).await);
        assert_eq!(refused, "Term not found.");
    }
    for (member, value) in [
        ("outOf", json!(0)),
        ("outOf", json!(1001)),
        ("weight", json!(0)),
        ("weight", json!(1.5)),
    ] {
        let refused = error(create(&stage, "subject.teacher", with(member, value)).await);
        assert!(
            refused.starts_with(&format!("Invalid tool arguments: {member}: ")),
            "{refused}"
        );
    }
    assert_eq!(stage.snapshot().await, before);
    let last_day: chrono::NaiveDate = sqlx::query_scalar("SELECT ends_on FROM terms WHERE id = $1")
        .bind(term("main", "current", "3"))
        .fetch_one(&mut stage.owner().await)
        .await
        .unwrap();
    let made = data(create(&stage, "subject.teacher", with("heldOn", json!(last_day))).await);
    assert_eq!(made["heldOn"], json!(last_day));
    stage.finish().await;
}

#[tokio::test]
async fn are_not_added_to_results_that_are_published() {
    let stage = Stage::new().await;
    let mut args = new("Practical");
    args["termId"] = json!(term("main", "current", "1"));
    let publish = json!({"termId": args["termId"]});
    data(call(&stage, "dos", "publish_results", publish).await);
    let before = stage.snapshot().await;
    let refused = error(create(&stage, "subject.teacher", args.clone()).await);
    assert_eq!(
        refused,
        "The results of that term are published; nothing is added to them any more."
    );
    assert_eq!(stage.snapshot().await, before);
    args["termId"] = json!(term("main", "current", "2"));
    data(create(&stage, "subject.teacher", args).await);
    stage.finish().await;
}

#[tokio::test]
async fn are_sixty_at_the_most() {
    let stage = Stage::new().await;
    let with_term = |name: &str| {
        let mut args = new(name);
        args["termId"] = json!(term("main", "current", "1"));
        args
    };
    stage
        .arrange(&format!(
            "INSERT INTO assessments (school_id, stream_id, subject_id, campus_academic_year_id, term_id, name, out_of, weight, held_on)
             SELECT school_id, stream_id, subject_id, campus_academic_year_id, term_id, 'Quiz ' || n, 3, 1, held_on
               FROM assessments
              CROSS JOIN generate_series(1, 59 - (SELECT count(*)::int FROM assessments o, assessments a
                                                   WHERE a.id = '{0}' AND o.stream_id = a.stream_id
                                                     AND o.subject_id = a.subject_id AND o.term_id = a.term_id)) n
              WHERE id = '{0}'",
            HILLTOP.assessment("1", "1")
        ))
        .await;
    // only one of two at once is the sixtieth
    let (first, second) = tokio::join!(
        create(&stage, "subject.teacher", with_term("Sixtieth")),
        create(&stage, "subject.teacher", with_term("Also sixtieth"))
    );
    assert_ne!(first.is_data(), second.is_data(), "{first:?}, {second:?}");
    let refusal = "This stream has 60 assessments in the subject and term already; there can be no more.";
    assert_eq!(error(if first.is_data() { second } else { first }), refusal);
    let before = stage.snapshot().await;
    let refused = create(&stage, "subject.teacher", with_term("One more")).await;
    assert_eq!(error(refused), refusal);
    assert_eq!(stage.snapshot().await, before);
    let mut next = with_term("One more");
    next["termId"] = json!(term("main", "current", "2"));
    data(create(&stage, "subject.teacher", next).await);
    stage.finish().await;
}
