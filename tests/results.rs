//! Results: published once, by the director of the campus, and complete.

use e2e::{
    Stage,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use uuid::Uuid;

fn term(campus: &str, year: &str, number: &str) -> Uuid {
    id(&["hilltop", "term", campus, year, number])
}

async fn publish(stage: &Stage, who: &str, args: Value) -> contract::AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    stage.call(&person, "publish_results", args).await
}

fn first_term() -> Value {
    json!({"termId": term("main", "current", "1")})
}

#[tokio::test]
async fn are_published_by_the_director_of_the_campus_alone() {
    let stage = Stage::new().await;
    let no_director = "Permission denied: this is for the director of studies of a campus.";
    let before = stage.snapshot().await;
    for who in ["class.teacher", "subject.teacher", "head", "admin", "lakeside.teacher"] {
        assert_eq!(error(publish(&stage, who, first_term()).await), no_director, "{who}");
    }
    let of_riverside = id(&["riverside", "term", "north", "current", "1"]);
    for hidden in [
        term("lakeside", "current", "1"),
        term("main", "previous", "3"),
        of_riverside,
        Uuid::now_v7(),
    ] {
        let refused = publish(&stage, "dos", json!({"termId": hidden})).await;
        assert_eq!(error(refused), "Term not found.");
    }
    for campus in [HILLTOP.campus("lakeside"), RIVERSIDE.campus("north")] {
        let refused = publish(&stage, "dos", json!({"campusId": campus})).await;
        assert_eq!(error(refused), "Campus not found.");
    }
    assert_eq!(stage.snapshot().await, before);
    let published = data(publish(&stage, "dos", first_term()).await);
    assert_eq!(
        (&published["termName"], &published["campusId"]),
        (&json!("Term One"), &json!(HILLTOP.campus("main")))
    );
    assert!(
        published["assessments"].as_i64() >= published["streams"].as_i64(),
        "{published}"
    );
    stage.finish().await;
}

#[tokio::test]
async fn are_published_once() {
    let stage = Stage::new().await;
    data(publish(&stage, "dos", first_term()).await);
    let before = stage.snapshot().await;
    let refused = error(publish(&stage, "dos", first_term()).await);
    assert_eq!(refused, "The results of Term One are published already.");
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

#[tokio::test]
async fn are_refused_while_scores_are_missing_and_it_is_said_which() {
    let stage = Stage::new().await;
    let test = HILLTOP.assessment("1", "1");
    let lakeside =
        "stream_id IN (SELECT id FROM streams WHERE campus_id = (SELECT id FROM campuses WHERE name = 'Lakeside'))";
    stage
        .arrange(&format!(
            "DELETE FROM scores x WHERE assessment_id = '{test}'
                AND student_id IN (SELECT student_id FROM scores WHERE assessment_id = '{test}' ORDER BY student_id LIMIT 2);
             DELETE FROM scores WHERE assessment_id IN (SELECT id FROM assessments WHERE {lakeside})"
        ))
        .await;
    let before = stage.snapshot().await;
    let refused = error(publish(&stage, "dos", first_term()).await);
    assert_eq!(
        refused, "Scores are missing in Term One: Mid-term test in Chemistry, S2 East: 2 students.",
        "the other campus is another's"
    );
    assert_eq!(stage.snapshot().await, before);
    stage
        .arrange(&format!(
            "UPDATE students SET active = false
              WHERE id IN (SELECT e.student_id FROM enrolments e JOIN assessments a ON a.stream_id = e.stream_id AND a.id = '{test}'
                            WHERE NOT EXISTS (SELECT 1 FROM scores x WHERE x.assessment_id = a.id AND x.student_id = e.student_id))"
        ))
        .await;
    data(publish(&stage, "dos", first_term()).await);
    stage.finish().await;
}

#[tokio::test]
async fn are_refused_with_the_first_ten_of_what_is_missing() {
    let stage = Stage::new().await;
    stage
        .arrange(&format!(
            "INSERT INTO assessments (school_id, stream_id, subject_id, campus_academic_year_id, term_id, name, out_of, weight, held_on)
             SELECT school_id, stream_id, subject_id, campus_academic_year_id, term_id, 'Quiz ' || n, 3, 1, held_on
               FROM assessments CROSS JOIN generate_series(1, 12) n WHERE id = '{}'",
            HILLTOP.assessment("1", "1")
        ))
        .await;
    let refused = error(publish(&stage, "dos", first_term()).await);
    assert_eq!(refused.matches("36 students").count(), 10, "{refused}");
    assert!(refused.ends_with("; and 2 more assessments."), "{refused}");
    stage.finish().await;
}

#[tokio::test]
async fn are_refused_of_what_nobody_was_assessed_in_or_lies_ahead() {
    let stage = Stage::new().await;
    let first = term("main", "current", "1");
    let ahead = format!(
        "UPDATE assessments SET held_on = current_date + 3 WHERE id = '{}'",
        HILLTOP.assessment("1", "1")
    );
    stage.arrange(&ahead).await;
    let before = stage.snapshot().await;
    let refused = error(publish(&stage, "dos", first_term()).await);
    assert_eq!(refused, "1 assessment of Term One will be held later than today.");
    assert_eq!(stage.snapshot().await, before);
    stage
        .arrange(&format!(
            "DELETE FROM scores WHERE assessment_id IN (SELECT id FROM assessments WHERE term_id = '{first}');
             DELETE FROM assessments WHERE term_id = '{first}'"
        ))
        .await;
    let refused = error(publish(&stage, "dos", first_term()).await);
    assert_eq!(
        refused,
        "Nobody was assessed in Term One; there are no results to publish."
    );
    stage.finish().await;
}

/// The term that began last is meant where none is named.
#[tokio::test]
async fn are_of_the_current_term_unless_said() {
    let stage = Stage::new().await;
    let dates = "UPDATE terms SET starts_on = current_date - 300 + term_number, ends_on = current_date + 100 WHERE term_number < 3;
                 UPDATE terms SET starts_on = current_date + 30, ends_on = current_date + 100 WHERE term_number = 3";
    stage.arrange(dates).await;
    let second = term("main", "current", "2");
    stage
        .arrange(&format!(
            "DELETE FROM scores WHERE assessment_id IN (SELECT id FROM assessments WHERE term_id = '{second}');
             DELETE FROM assessments WHERE term_id = '{second}'"
        ))
        .await;
    let refused = error(publish(&stage, "dos", json!({})).await);
    assert_eq!(
        refused,
        "Nobody was assessed in Term Two; there are no results to publish."
    );
    stage.finish().await;
}

/// A publication waits for the scores that are being recorded: here for a transaction that holds the term as they do.
#[tokio::test]
async fn wait_for_scores_that_are_being_recorded() {
    let stage = Stage::new().await;
    let test = HILLTOP.assessment("1", "1");
    let mut recording = stage.owner().await;
    let hold = format!(
        "BEGIN; SELECT pg_advisory_xact_lock_shared(hashtextextended('{}', 0));
         DELETE FROM scores WHERE assessment_id = '{test}'",
        term("main", "current", "1")
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(hold))
        .execute(&mut recording)
        .await
        .unwrap();
    let release = async {
        while stage
            .count("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            .await
            == 0
        {
            tokio::task::yield_now().await;
        }
        sqlx::raw_sql("COMMIT").execute(&mut recording).await.unwrap();
    };
    let (published, ()) = tokio::join!(publish(&stage, "dos", first_term()), release);
    let refused = error(published);
    assert!(
        refused.starts_with("Scores are missing in Term One: Mid-term test"),
        "{refused}"
    );
    stage.finish().await;
}

#[tokio::test]
async fn are_published_once_by_two_at_once() {
    let stage = Stage::new().await;
    let (first, second) = tokio::join!(
        publish(&stage, "dos", first_term()),
        publish(&stage, "dos", first_term())
    );
    assert_ne!(first.is_data(), second.is_data(), "{first:?}, {second:?}");
    let refused = if first.is_data() { second } else { first };
    assert_eq!(error(refused), "The results of Term One are published already.");
    assert_eq!(stage.count("SELECT count(*) FROM published_results").await, 1);
    stage.finish().await;
}

/// Who goes to another stream and comes back owes what they owed.
#[tokio::test]
async fn are_refused_while_scores_are_missing_of_who_went_and_came_back() {
    let stage = Stage::new().await;
    let (test, east) = (HILLTOP.assessment("1", "1"), HILLTOP.stream_id());
    let student: Uuid =
        sqlx::query_scalar("SELECT student_id FROM enrolments WHERE stream_id = $1 ORDER BY student_id LIMIT 1")
            .bind(east)
            .fetch_one(&mut stage.owner().await)
            .await
            .unwrap();
    stage
        .arrange(&format!(
            "DELETE FROM scores WHERE assessment_id = '{test}' AND student_id = '{student}'"
        ))
        .await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let west = id(&["hilltop", "stream", "main", "current", "S2 West"]);
    let missing = "Scores are missing in Term One: Mid-term test in Chemistry, S2 East: 1 student.";
    assert_eq!(error(publish(&stage, "dos", first_term()).await), missing);
    for to in [west, east] {
        let args = json!({"studentId": student, "streamId": to});
        data(stage.call(&head, "transfer_student", args).await);
    }
    assert_eq!(error(publish(&stage, "dos", first_term()).await), missing);
    // but a stream in which they never were owes nothing of them
    let args = json!({"studentId": student, "streamId": west});
    data(stage.call(&head, "transfer_student", args).await);
    data(publish(&stage, "dos", first_term()).await);
    stage.finish().await;
}

#[tokio::test]
async fn keep_the_bands_of_the_day_when_they_were_published() {
    let stage = Stage::new().await;
    let dos = stage.person(&HILLTOP.email("dos")).await;
    let (east, chemistry) = (HILLTOP.stream_id(), id(&["hilltop", "subject", "CHE"]));
    let bands = async |number: &str| {
        let of = json!({"streamId": east, "termId": term("main", "current", number), "limit": 5});
        let mut in_subject = of.clone();
        in_subject["subjectId"] = json!(chemistry);
        let mut found = Vec::new();
        for (tool, args) in [("get_class_gradebook", of), ("get_subject_gradebook", in_subject)] {
            let gradebook = data(stage.call(&dos, tool, args).await);
            let rows = gradebook["rows"].as_array().unwrap().clone();
            found.extend(rows.into_iter().map(|row| row["band"].clone()));
        }
        found
    };
    let before = bands("1").await;
    assert!(before.iter().all(Value::is_string), "{before:?}");
    data(publish(&stage, "dos", first_term()).await);
    assert_eq!(bands("1").await, before);
    let other = json!({"bands": [{"label": "Top", "from": 100}, {"label": "Other", "from": 0}]});
    data(stage.call(&dos, "update_grading_config", other).await);
    assert_eq!(bands("1").await, before);
    let open = bands("2").await;
    assert!(
        open.contains(&json!("Other")),
        "what is not published is banded anew: {open:?}"
    );
    stage.finish().await;
}
