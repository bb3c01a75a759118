//! Scores: who records them, all or none, and for whom.

use e2e::{
    Stage,
    fixtures::HILLTOP,
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use uuid::Uuid;

const NOT_FOUND: &str = "Assessment not found.";

async fn record(stage: &Stage, who: &str, assessment: Uuid, scores: Value) -> contract::AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    let args = json!({"assessmentId": assessment, "scores": scores});
    stage.call(&person, "record_scores", args).await
}

/// The students of a stream, in the order of their ids.
async fn students(stage: &Stage, stream: Uuid) -> Vec<Uuid> {
    sqlx::query_scalar("SELECT student_id FROM enrolments WHERE stream_id = $1 ORDER BY student_id")
        .bind(stream)
        .fetch_all(&mut stage.owner().await)
        .await
        .unwrap()
}

async fn score_of(stage: &Stage, assessment: Uuid, student: Uuid) -> Option<f64> {
    sqlx::query_scalar("SELECT score::float8 FROM scores WHERE assessment_id = $1 AND student_id = $2")
        .bind(assessment)
        .bind(student)
        .fetch_optional(&mut stage.owner().await)
        .await
        .unwrap()
}

fn row(student: Uuid, score: f64) -> Value {
    json!({"studentId": student, "score": score})
}

#[tokio::test]
async fn are_recorded_by_who_teaches_the_subject_alone() {
    let stage = Stage::new().await;
    let test = HILLTOP.assessment("1", "1");
    let student = students(&stage, HILLTOP.stream_id()).await[0];
    let before = stage.snapshot().await;
    for who in ["class.teacher", "both.hats", "rose.nalubega", "dos", "head", "admin"] {
        let refused = record(&stage, who, test, json!([row(student, 1.0)])).await;
        assert_eq!(error(refused), NOT_FOUND, "{who}");
    }
    let lakeside = id(&["hilltop", "stream", "lakeside", "current", "S1 Lake"]).to_string();
    let other = id(&["hilltop", "assessment", &lakeside, "PHY", "1", "1"]);
    for hidden in [other, Uuid::now_v7()] {
        let refused = record(&stage, "subject.teacher", hidden, json!([row(student, 1.0)])).await;
        assert_eq!(error(refused), NOT_FOUND);
    }
    assert_eq!(stage.snapshot().await, before);
    data(record(&stage, "subject.teacher", test, json!([row(student, 12.34)])).await);
    assert_eq!(score_of(&stage, test, student).await, Some(12.34));
    stage.finish().await;
}

#[tokio::test]
async fn end_with_the_year() {
    let stage = Stage::new().await;
    let test = HILLTOP.assessment("1", "1");
    let student = students(&stage, HILLTOP.stream_id()).await[0];
    data(record(&stage, "subject.teacher", test, json!([row(student, 1.0)])).await);
    stage
        .arrange("UPDATE campus_academic_years SET is_current = false")
        .await;
    let refused = record(&stage, "subject.teacher", test, json!([row(student, 2.0)])).await;
    assert_eq!(error(refused), NOT_FOUND);
    stage.finish().await;
}

#[tokio::test]
async fn say_what_is_new_and_what_was_replaced() {
    let stage = Stage::new().await;
    let test = HILLTOP.assessment("1", "1");
    let of = students(&stage, HILLTOP.stream_id()).await;
    stage
        .arrange(&format!(
            "DELETE FROM scores WHERE assessment_id = '{test}' AND student_id = '{}'",
            of[0]
        ))
        .await;
    let batch = json!([row(of[0], 0.0), row(of[1], 40.0), row(of[2], 0.5)]);
    let recorded = data(record(&stage, "subject.teacher", test, batch.clone()).await);
    let expected = |new, replaced| json!({"assessmentId": test, "assessmentName": "Mid-term test", "new": new, "replaced": replaced});
    assert_eq!(recorded, expected(1, 2));
    assert_eq!(
        data(record(&stage, "subject.teacher", test, batch).await),
        expected(0, 3)
    );
    let expected = [Some(0.0), Some(40.0), Some(0.5)];
    for (student, score) in of.iter().zip(expected) {
        assert_eq!(score_of(&stage, test, *student).await, score);
    }
    stage.finish().await;
}

/// fault 20
#[tokio::test]
async fn are_recorded_all_or_none_and_wrong_rows_are_told() {
    let stage = Stage::new().await;
    let test = HILLTOP.assessment("1", "1");
    let of = students(&stage, HILLTOP.stream_id()).await;
    let west = id(&["hilltop", "stream", "main", "current", "S2 West"]);
    let other = students(&stage, west).await[0];
    let gone = of[9];
    stage
        .arrange(&format!("UPDATE students SET active = false WHERE id = '{gone}'"))
        .await;
    let before = stage.snapshot().await;
    let batch = json!([
        row(of[0], 10.0),
        row(of[1], 40.01),
        row(of[0], 11.0),
        row(of[2], 3.333),
        row(other, 1.0),
        row(gone, 1.0),
        row(Uuid::now_v7(), 1.0),
    ]);
    let refused = error(record(&stage, "subject.teacher", test, batch).await);
    assert_eq!(
        refused,
        "Invalid tool arguments: scores: row 2: the score is not between 0 and the highest; row 3: the student is there twice; \
         row 4: the score has more than two decimals; row 5: no student of this stream; row 6: no student of this stream; \
         row 7: no student of this stream (the highest score is 40; nothing was recorded)"
    );
    let many: Vec<Value> = (0..200).map(|_| row(Uuid::now_v7(), 1.0)).collect();
    let refused = error(record(&stage, "subject.teacher", test, json!(many)).await);
    assert!(
        refused.contains("row 10: ") && refused.contains("; and 190 more rows"),
        "{refused}"
    );
    assert!(!refused.contains("row 11: "), "{refused}");
    let too_many: Vec<Value> = (0..201).map(|_| row(of[0], 1.0)).collect();
    for wrong in [json!(too_many), json!([]), json!([row(of[0], -1.0)])] {
        let refused = error(record(&stage, "subject.teacher", test, wrong).await);
        assert!(refused.starts_with("Invalid tool arguments: scores"), "{refused}");
    }
    assert_eq!(stage.snapshot().await, before);
    data(
        record(
            &stage,
            "subject.teacher",
            test,
            json!([row(of[0], 10.0), row(of[1], 40.0)]),
        )
        .await,
    );
    stage.finish().await;
}

#[tokio::test]
async fn are_not_changed_once_results_are_published() {
    let stage = Stage::new().await;
    let student = students(&stage, HILLTOP.stream_id()).await[0];
    let dos = stage.person(&HILLTOP.email("dos")).await;
    let term = id(&["hilltop", "term", "main", "current", "1"]);
    let test = HILLTOP.assessment("1", "1");
    data(record(&stage, "subject.teacher", test, json!([row(student, 1.0)])).await);
    data(stage.call(&dos, "publish_results", json!({"termId": term})).await);
    let before = stage.snapshot().await;
    let refused = record(&stage, "subject.teacher", test, json!([row(student, 2.0)])).await;
    assert_eq!(
        error(refused),
        "The results of that term are published; nothing is added to them any more."
    );
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

/// No statement of whoever writes can store a score above the highest.
#[tokio::test]
async fn are_never_above_the_highest_in_the_database() {
    let stage = Stage::new().await;
    let mut owner = stage.owner().await;
    for change in [
        "UPDATE scores SET score = out_of + 1",
        "UPDATE scores SET score = -1",
        "UPDATE scores SET out_of = 1000",
    ] {
        let refused = sqlx::query(change).execute(&mut owner).await.unwrap_err();
        let constraint = refused.as_database_error().and_then(|error| error.constraint());
        assert!(
            matches!(constraint, Some("scores_score_check" | "scores_assessment_fkey")),
            "{change}"
        );
    }
    stage.finish().await;
}

#[tokio::test]
async fn have_two_decimals_at_the_most() {
    let stage = Stage::new().await;
    let student = students(&stage, HILLTOP.stream_id()).await[0];
    let test = HILLTOP.assessment("1", "1");
    let before = stage.snapshot().await;
    for score in [0.001, 0.000_000_001, 12.340_000_001] {
        let refused = error(record(&stage, "subject.teacher", test, json!([row(student, score)])).await);
        assert!(
            refused.contains("row 1: the score has more than two decimals"),
            "{score}: {refused}"
        );
    }
    assert_eq!(stage.snapshot().await, before);
    for score in [0.29, 0.01, 33.33] {
        data(record(&stage, "subject.teacher", test, json!([row(student, score)])).await);
        assert_eq!(score_of(&stage, test, student).await, Some(score));
    }
    stage.finish().await;
}
