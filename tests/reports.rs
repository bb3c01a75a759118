//! Report comments: written by the class teacher of the student's stream, for the current term, one a student.

use contract::AgentToolResult;
use e2e::{
    Stage,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use uuid::Uuid;

fn student() -> Uuid {
    HILLTOP.row("{student}").unwrap()
}

fn stream(campus: &str, year: &str, name: &str) -> Uuid {
    id(&["hilltop", "stream", campus, year, name])
}

async fn write(stage: &Stage, who: &str, student: Uuid, comment: &str) -> AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    let args = json!({"studentId": student, "comment": comment});
    stage.call(&person, "write_report_comment", args).await
}

async fn list(stage: &Stage, who: &str, args: Value) -> AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    stage.call(&person, "list_report_comments", args).await
}

/// Makes the school's today a day of this term, by moving the terms.
async fn in_term(stage: &Stage, number: i32) {
    stage
        .arrange(&format!(
            "UPDATE terms SET starts_on = current_date + 60 * (term_number - {number}) - 10,
                              ends_on = current_date + 60 * (term_number - {number}) + 30"
        ))
        .await;
}

#[tokio::test]
async fn are_written_by_the_class_teacher_of_the_students_stream_only() {
    let stage = Stage::new().await;
    stage
        .arrange("UPDATE students SET active = false WHERE admission_number = 'HA-0041'")
        .await;
    let left = id(&["hilltop", "student", "HA-0041"]);
    let before = stage.snapshot().await;
    for (who, student, why) in [
        ("rose.nalubega", student(), "only taught by"),
        (
            "both.hats",
            student(),
            "only taught by, though class teacher of another stream",
        ),
        ("subject.teacher", student(), "only taught by"),
        ("dos", student(), "directed, which is to look at"),
        ("head", student(), "a role is no relationship"),
        ("admin", student(), "nor is this one"),
        (
            "class.teacher",
            id(&["hilltop", "student", "HA-0001"]),
            "of another's stream",
        ),
        ("class.teacher", left, "who has left"),
        (
            "class.teacher",
            RIVERSIDE.row("{student}").unwrap(),
            "of another school",
        ),
        ("class.teacher", Uuid::now_v7(), "nobody"),
    ] {
        let refused = error(write(&stage, who, student, "Well done.").await);
        assert_eq!(refused, "Student not found.", "{who}: {why}");
    }
    assert_eq!(stage.snapshot().await, before);
    data(write(&stage, "class.teacher", student(), "Well done.").await);
    stage.finish().await;
}

/// Last year's class teacher had the same students.
#[tokio::test]
async fn are_not_written_by_last_years_class_teacher() {
    let stage = Stage::new().await;
    let (now, last) = (HILLTOP.stream_id(), stream("main", "previous", "S1 North"));
    stage
        .arrange(&format!(
            "UPDATE class_teachers SET staff_id = '{}' WHERE stream_id = '{now}'",
            HILLTOP.staff("newcomer")
        ))
        .await;
    let held = format!(
        "DO $$ BEGIN ASSERT EXISTS (SELECT FROM enrolments WHERE student_id = '{}' AND stream_id = '{last}'); END $$",
        student()
    );
    stage.arrange(&held).await;
    let refused = write(&stage, "class.teacher", student(), "Well done.").await;
    assert_eq!(error(refused), "Student not found.");
    assert_eq!(stage.audit_rows().await, 0);
    data(write(&stage, "newcomer", student(), "Well done.").await);
    stage.finish().await;
}

#[tokio::test]
async fn are_not_written_in_the_name_of_who_took_the_stream_over_meanwhile() {
    let stage = Stage::new().await;
    let teacher = stage.person(&HILLTOP.email("class.teacher")).await;
    let replaced = format!(
        "UPDATE class_teachers SET staff_id = '{}' WHERE stream_id = '{}'",
        HILLTOP.staff("newcomer"),
        HILLTOP.stream_id()
    );
    let args = json!({"studentId": student(), "comment": "Not mine."});
    let call = stage.call(&teacher, "write_report_comment", args);
    let refused = Box::pin(stage.meanwhile("academic_years", call, &replaced)).await;
    assert_eq!(error(refused), "Student not found.");
    let written = "SELECT count(*) FROM report_comments WHERE comment = 'Not mine.'";
    assert_eq!((stage.count(written).await, stage.audit_rows().await), (0, 0));
    data(write(&stage, "newcomer", student(), "Mine.").await);
    stage.finish().await;
}

#[tokio::test]
async fn are_one_a_student_and_term() {
    let stage = Stage::new().await;
    in_term(&stage, 2).await;
    stage.arrange("DELETE FROM report_comments").await;
    let first = data(write(&stage, "class.teacher", student(), "Well done.").await);
    assert_eq!(
        (&first["replaced"], &first["termId"], &first["streamId"]),
        (
            &json!(false),
            &json!(id(&["hilltop", "term", "main", "current", "2"])),
            &json!(HILLTOP.stream_id())
        )
    );
    let second = data(write(&stage, "class.teacher", student(), "Better still.").await);
    assert_eq!((&second["replaced"], &second["id"]), (&json!(true), &first["id"]));
    in_term(&stage, 3).await;
    let third = data(write(&stage, "class.teacher", student(), "Best.").await);
    assert_eq!(
        (&third["replaced"], &third["termName"]),
        (&json!(false), &json!("Term Three"))
    );
    assert_eq!(stage.count("SELECT count(*) FROM report_comments").await, 2);
    // before the first term begins it is the first, and in the holidays the one that has ended
    in_term(&stage, -5).await;
    let early = data(write(&stage, "class.teacher", student(), "Welcome.").await);
    assert_eq!(early["termName"], "Term One");
    in_term(&stage, 9).await;
    let late = data(write(&stage, "class.teacher", student(), "Goodbye.").await);
    assert_eq!(
        (&late["termName"], &late["replaced"]),
        (&json!("Term Three"), &json!(true))
    );
    stage.finish().await;
}

#[tokio::test]
async fn need_a_term_of_the_campuss_year() {
    let stage = Stage::new().await;
    stage
        .arrange("DELETE FROM report_comments; DELETE FROM scores; DELETE FROM assessments; DELETE FROM terms")
        .await;
    let refused = write(&stage, "class.teacher", student(), "Well done.").await;
    assert_eq!(error(refused), "The campus's year has no terms yet.");
    assert_eq!(stage.audit_rows().await, 0);
    stage.finish().await;
}

#[tokio::test]
async fn are_listed_with_those_who_have_none_yet() {
    let stage = Stage::new().await;
    in_term(&stage, 2).await;
    stage.arrange("DELETE FROM report_comments").await;
    data(write(&stage, "class.teacher", student(), "Well done.").await);
    for who in ["class.teacher", "dos"] {
        let seen = data(list(&stage, who, json!({"streamId": HILLTOP.stream_id()})).await);
        let rows = seen["rows"].as_array().unwrap();
        let with: Vec<_> = rows.iter().filter(|row| row.get("comment").is_some()).collect();
        assert_eq!((rows.len(), with.len()), (36, 1), "{who}");
        assert_eq!(
            (&with[0]["studentId"], &with[0]["comment"], &with[0]["writtenBy"]),
            (&json!(student()), &json!("Well done."), &json!("Joseph Mukasa"))
        );
        assert_eq!(seen["termName"], "Term Two");
        let names: Vec<_> = rows
            .iter()
            .map(|row| (row["familyName"].to_string(), row["givenName"].to_string()))
            .collect();
        assert!(names.is_sorted());
    }
    // in pages, each student once
    let (mut seen, mut args) = (Vec::new(), json!({"streamId": HILLTOP.stream_id(), "limit": 7}));
    loop {
        let page = data(list(&stage, "dos", args.clone()).await);
        seen.extend(
            page["rows"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row["studentId"].to_string()),
        );
        let Some(next) = page["nextCursor"].as_str() else { break };
        args["cursor"] = json!(next);
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((all, seen.len()), (36, 36));
    stage.finish().await;
}

#[tokio::test]
async fn are_listed_of_the_streams_own_terms_for_whoever_is_in_charge() {
    let stage = Stage::new().await;
    let s2_east = HILLTOP.stream_id();
    for (who, stream) in [
        ("subject.teacher", s2_east),
        ("both.hats", s2_east),
        ("dos", stream("lakeside", "current", "S1 Lake")),
        ("class.teacher", stream("main", "previous", "S1 North")),
        ("admin", s2_east),
    ] {
        assert_eq!(
            error(list(&stage, who, json!({"streamId": stream})).await),
            "Stream not found.",
            "{who}"
        );
    }
    let term = |campus: &str, year: &str| id(&["hilltop", "term", campus, year, "1"]);
    let of = |term: Uuid| list(&stage, "class.teacher", json!({"streamId": s2_east, "termId": term}));
    for (foreign, why) in [
        (term("lakeside", "current"), "another campus's"),
        (term("main", "previous"), "last year's"),
        (id(&["riverside", "term", "north", "current", "1"]), "another school's"),
        (Uuid::now_v7(), "none"),
    ] {
        assert_eq!(error(of(foreign).await), "Term not found.", "{why}");
    }
    assert_eq!(data(of(term("main", "current")).await)["termName"], "Term One");
    stage.finish().await;
}
