//! Gradebooks: who sees which, and how averages, bands and positions come about.

use e2e::{
    Stage,
    fixtures::HILLTOP,
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

fn first_term() -> Uuid {
    id(&["hilltop", "term", "main", "current", "1"])
}

async fn call(stage: &Stage, who: &str, tool: &str, args: Value) -> contract::AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    stage.call(&person, tool, args).await
}

async fn class(stage: &Stage, who: &str, stream: Uuid) -> contract::AgentToolResult {
    let args = json!({"streamId": stream, "termId": first_term()});
    call(stage, who, "get_class_gradebook", args).await
}

async fn in_subject(stage: &Stage, who: &str, stream: Uuid, code: &str) -> contract::AgentToolResult {
    let args = json!({"streamId": stream, "subjectId": subject(code), "termId": first_term()});
    call(stage, who, "get_subject_gradebook", args).await
}

/// The row of a student.
fn row_of(gradebook: &Value, student: Uuid) -> Value {
    let rows = gradebook["rows"].as_array().unwrap();
    let found = rows.iter().find(|row| row["studentId"] == json!(student));
    found.unwrap_or_else(|| panic!("{student} is in the gradebook")).clone()
}

/// Leaves only these scores of the first term in the class teacher's stream: place of the student, subject, place of the assessment,
/// and score. Answers the students in the order of their ids.
async fn only_scores(stage: &Stage, scores: &[(usize, &str, &str, f64)]) -> Vec<Uuid> {
    let mut owner = stage.owner().await;
    let east = HILLTOP.stream_id();
    let students: Vec<Uuid> =
        sqlx::query_scalar("SELECT student_id FROM enrolments WHERE stream_id = $1 ORDER BY student_id")
            .bind(east)
            .fetch_all(&mut owner)
            .await
            .unwrap();
    sqlx::query("DELETE FROM scores").execute(&mut owner).await.unwrap();
    for (place, code, assessment, score) in scores {
        let assessment = id(&["hilltop", "assessment", &east.to_string(), code, "1", assessment]);
        sqlx::query(
            "INSERT INTO scores (school_id, assessment_id, out_of, student_id, score)
             SELECT school_id, id, out_of, $2, $3::float8::numeric FROM assessments WHERE id = $1",
        )
        .bind(assessment)
        .bind(students[*place])
        .bind(score)
        .execute(&mut owner)
        .await
        .unwrap();
    }
    students
}

#[tokio::test]
async fn of_the_whole_class_are_never_shown_to_who_only_teaches_a_subject() {
    let stage = Stage::new().await;
    let east = HILLTOP.stream_id();
    let (west, lake) = (
        stream("main", "current", "S2 West"),
        stream("lakeside", "current", "S1 Lake"),
    );
    for (who, seen) in [
        ("class.teacher", east),
        ("dos", east),
        ("dos", west),
        ("both.hats", west),
    ] {
        data(class(&stage, who, seen).await);
    }
    for (who, hidden, why) in [
        ("subject.teacher", east, "teaches a subject in it"),
        ("both.hats", east, "the same, and class teacher of another"),
        ("class.teacher", west, "class teacher of another"),
        (
            "class.teacher",
            stream("main", "previous", "S1 North"),
            "last year's own",
        ),
        ("dos", lake, "another campus"),
        ("lakeside.teacher", east, "another campus"),
        ("head", east, "a role is no relationship"),
        ("admin", east, "nor is this one"),
    ] {
        assert_eq!(error(class(&stage, who, hidden).await), NOT_FOUND, "{who}: {why}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn of_a_subject_are_shown_to_who_teaches_it_and_the_director() {
    let stage = Stage::new().await;
    let east = HILLTOP.stream_id();
    for (who, code) in [("subject.teacher", "CHE"), ("both.hats", "GEO"), ("dos", "CHE")] {
        data(in_subject(&stage, who, east, code).await);
    }
    for (who, code, why) in [
        ("subject.teacher", "GEO", "another's subject"),
        ("class.teacher", "CHE", "their class, another's subject"),
        ("lakeside.teacher", "CHE", "another campus"),
        ("head", "CHE", "a role is no relationship"),
        ("admin", "CHE", "nor is this one"),
    ] {
        assert_eq!(
            error(in_subject(&stage, who, east, code).await),
            NOT_FOUND,
            "{who}: {why}"
        );
    }
    let north = stream("main", "previous", "S1 North");
    assert_eq!(
        error(in_subject(&stage, "subject.teacher", north, "CHE").await),
        NOT_FOUND,
        "last year's"
    );
    stage.finish().await;
}

#[tokio::test]
async fn weigh_what_is_scored_and_band_the_unrounded_average() {
    let stage = Stage::new().await;
    // the test is out of 40 and weighs 40, the examination is out of 100 and weighs 60; A from 80, B from 70
    let students = only_scores(
        &stage,
        &[
            (0, "CHE", "1", 20.0),
            (0, "CHE", "2", 80.0),
            (1, "CHE", "1", 32.0),
            (2, "CHE", "2", 69.96),
            (3, "CHE", "2", 0.0),
        ],
    )
    .await;
    let gradebook = data(in_subject(&stage, "subject.teacher", HILLTOP.stream_id(), "CHE").await);
    assert_eq!(gradebook["rows"].as_array().unwrap().len(), 36);
    let of = |place: usize| {
        let row = row_of(&gradebook, students[place]);
        (row["average"].clone(), row["band"].clone())
    };
    assert_eq!(of(0), (json!(68.0), json!("C")), "(20/40 * 40 + 80/100 * 60) / 100");
    assert_eq!(of(1), (json!(80.0), json!("A")), "over what is scored");
    assert_eq!(of(2), (json!(70.0), json!("C")), "shown rounded, banded unrounded");
    assert_eq!(of(3), (json!(0.0), json!("E")));
    assert_eq!(of(4), (Value::Null, Value::Null), "nothing is scored");
    let test = HILLTOP.assessment("1", "1");
    assert_eq!(
        row_of(&gradebook, students[1])["scores"],
        json!([{"assessmentId": test, "score": 32.0}])
    );
    let head = &gradebook["assessments"][0];
    assert_eq!(
        (&head["assessmentId"], &head["outOf"], &head["weight"]),
        (&json!(test), &json!(40), &json!(40))
    );
    stage.finish().await;
}

#[tokio::test]
async fn add_thirds_up_to_whole_numbers() {
    let stage = Stage::new().await;
    let students = only_scores(&stage, &[]).await;
    stage
        .arrange(&format!(
            "INSERT INTO assessments (school_id, stream_id, subject_id, campus_academic_year_id, term_id, name, out_of, weight, held_on)
             SELECT school_id, stream_id, subject_id, campus_academic_year_id, term_id, 'Quiz ' || n, 3, 1, held_on
               FROM assessments CROSS JOIN generate_series(1, 5) n WHERE id = '{}';
             INSERT INTO scores (school_id, assessment_id, out_of, student_id, score)
             SELECT school_id, id, out_of, '{}', CASE WHEN name IN ('Quiz 1', 'Quiz 2', 'Quiz 3') THEN 2 ELSE 3 END
               FROM assessments WHERE name LIKE 'Quiz %'",
            HILLTOP.assessment("1", "1"),
            students[0]
        ))
        .await;
    let gradebook = data(in_subject(&stage, "subject.teacher", HILLTOP.stream_id(), "CHE").await);
    let row = row_of(&gradebook, students[0]);
    assert_eq!(
        (&row["average"], &row["band"]),
        (&json!(80.0), &json!("A")),
        "(3 * 2/3 + 2) / 5"
    );
    stage.finish().await;
}

#[tokio::test]
async fn rank_a_class_by_the_mean_of_subjects_and_share_places() {
    let stage = Stage::new().await;
    let students = only_scores(
        &stage,
        &[
            (0, "CHE", "2", 90.0),
            (0, "GEO", "2", 70.0),
            (1, "CHE", "2", 80.0),
            (2, "CHE", "2", 60.0),
            (2, "GEO", "2", 61.0),
            (3, "ENG", "2", 100.0),
        ],
    )
    .await;
    let gradebook = data(class(&stage, "class.teacher", HILLTOP.stream_id()).await);
    let of = |place: usize| {
        let row = row_of(&gradebook, students[place]);
        (row["average"].clone(), row["position"].clone(), row["band"].clone())
    };
    assert_eq!(of(3), (json!(100.0), json!(1), json!("A")));
    assert_eq!(of(0), (json!(80.0), json!(2), json!("A")));
    assert_eq!(of(1), (json!(80.0), json!(2), json!("A")), "a tie shares its place");
    assert_eq!(
        of(2),
        (json!(60.5), json!(4), json!("C")),
        "and the next one is behind both"
    );
    assert_eq!(of(4), (Value::Null, Value::Null, Value::Null));
    let averages = &row_of(&gradebook, students[0])["averages"];
    assert_eq!(averages, &json!({"Chemistry": 90.0, "Geography": 70.0}));
    let subjects = gradebook["subjects"].as_array().unwrap();
    let class_average = |code: &str| {
        let found = subjects.iter().find(|row| row["subjectId"] == json!(subject(code)));
        found.unwrap()["classAverage"].clone()
    };
    assert_eq!(class_average("CHE"), json!(76.7), "(90 + 80 + 60) / 3");
    assert_eq!(class_average("GEO"), json!(65.5));
    stage.finish().await;
}

#[tokio::test]
async fn take_the_marks_along_with_the_student() {
    let stage = Stage::new().await;
    let students = only_scores(&stage, &[(0, "GEO", "2", 90.0), (1, "GEO", "2", 50.0)]).await;
    let west = stream("main", "current", "S2 West");
    stage
        .arrange(&format!(
            "UPDATE enrolments SET stream_id = '{west}' WHERE student_id = '{}' AND stream_id = '{}'",
            students[0],
            HILLTOP.stream_id()
        ))
        .await;
    let there = data(class(&stage, "both.hats", west).await);
    assert_eq!(row_of(&there, students[0])["averages"], json!({"Geography": 90.0}));
    let row = row_of(&data(in_subject(&stage, "both.hats", west, "GEO").await), students[0]);
    assert_eq!(
        (&row["average"], &row["scoresFromOtherStreams"], &row["scores"]),
        (&json!(90.0), &json!(1), &json!([]))
    );
    let here = data(class(&stage, "class.teacher", HILLTOP.stream_id()).await);
    assert_eq!(here["rows"].as_array().unwrap().len(), 35, "and no longer here");
    assert_eq!(row_of(&here, students[1])["position"], 1);
    stage.finish().await;
}

#[tokio::test]
async fn are_of_the_students_who_are_there_and_come_in_pages() {
    let stage = Stage::new().await;
    let students = only_scores(&stage, &[(0, "CHE", "2", 90.0), (1, "CHE", "2", 50.0)]).await;
    stage
        .arrange(&format!(
            "UPDATE students SET active = false WHERE id = '{}'",
            students[0]
        ))
        .await;
    for (who, tool, mut args) in [
        (
            "class.teacher",
            "get_class_gradebook",
            json!({"streamId": HILLTOP.stream_id()}),
        ),
        (
            "subject.teacher",
            "get_subject_gradebook",
            json!({"streamId": HILLTOP.stream_id(), "subjectId": subject("CHE")}),
        ),
    ] {
        args["termId"] = json!(first_term());
        let whole = data(call(&stage, who, tool, args.clone()).await)["rows"].clone();
        assert_eq!(whole.as_array().unwrap().len(), 35, "{tool}");
        args["limit"] = json!(10);
        let mut seen = Vec::new();
        loop {
            let page = data(call(&stage, who, tool, args.clone()).await);
            seen.extend(page["rows"].as_array().unwrap().iter().cloned());
            let Some(next) = page.get("nextCursor") else { break };
            args["cursor"] = next.clone();
        }
        assert_eq!(
            json!(seen),
            whole,
            "{tool}: positions too are those of the whole stream"
        );
    }
    stage.finish().await;
}

#[tokio::test]
async fn have_no_bands_where_nobody_said_how_to_grade() {
    let stage = Stage::new().await;
    let students = only_scores(&stage, &[(0, "CHE", "2", 90.0)]).await;
    stage
        .arrange("BEGIN; DELETE FROM grading_bands; DELETE FROM grading_configs; COMMIT")
        .await;
    let row = row_of(
        &data(class(&stage, "class.teacher", HILLTOP.stream_id()).await),
        students[0],
    );
    assert_eq!((&row["average"], row.get("band")), (&json!(90.0), None));
    stage.finish().await;
}

/// Terms are of a campus; the one of the same number there goes on with the marks of the one here.
#[tokio::test]
async fn keep_the_marks_of_who_comes_from_another_campus() {
    let stage = Stage::new().await;
    let lake = stream("lakeside", "current", "S1 Lake");
    let students = only_scores(&stage, &[(0, "CHE", "1", 20.0), (0, "CHE", "2", 80.0)]).await;
    let args = json!({"studentId": students[0], "streamId": lake});
    data(call(&stage, "admin", "transfer_student", args).await);
    let of_term = async |number: &str| {
        let term = id(&["hilltop", "term", "lakeside", "current", number]);
        let args = json!({"streamId": lake, "termId": term, "limit": 200});
        data(call(&stage, "lakeside.teacher", "get_class_gradebook", args).await)
    };
    let there = of_term("1").await;
    let row = row_of(&there, students[0]);
    assert_eq!(
        (&row["averages"], &row["average"], &row["position"]),
        (&json!({"Chemistry": 68.0}), &json!(68.0), &json!(1))
    );
    let named = there["subjects"].as_array().unwrap();
    let chemistry = named.iter().find(|subject| subject["name"] == "Chemistry").unwrap();
    assert_eq!(chemistry["classAverage"], 68.0);
    let row = row_of(&of_term("2").await, students[0]);
    assert_eq!(
        (&row["averages"], row.get("average")),
        (&json!({}), None),
        "another term"
    );
    // and in the subject, for who teaches it there
    let staff = HILLTOP.staff("lakeside.teacher");
    stage
        .arrange(&format!(
            "INSERT INTO subject_teachers (school_id, stream_id, subject_id, staff_id)
             VALUES ('{}', '{lake}', '{}', '{staff}') ON CONFLICT DO NOTHING",
            HILLTOP.id(),
            subject("CHE")
        ))
        .await;
    let term = id(&["hilltop", "term", "lakeside", "current", "1"]);
    let args = json!({"streamId": lake, "subjectId": subject("CHE"), "termId": term, "limit": 200});
    let row = row_of(
        &data(call(&stage, "lakeside.teacher", "get_subject_gradebook", args).await),
        students[0],
    );
    assert_eq!(
        (&row["average"], &row["scoresFromOtherStreams"], &row["scores"]),
        (&json!(68.0), &json!(2), &json!([]))
    );
    stage.finish().await;
}

/// The longest names that there can be leave room for a student, and what the head has no room for is said.
#[tokio::test]
async fn have_room_for_a_student_beside_any_head() {
    let stage = Stage::new().await;
    let (school, east) = (HILLTOP.id(), HILLTOP.stream_id());
    let long = "𞤀".repeat(117);
    stage
        .arrange(&format!(
            "INSERT INTO assessments (school_id, stream_id, subject_id, campus_academic_year_id, term_id, name, out_of, weight, held_on)
             SELECT school_id, stream_id, subject_id, campus_academic_year_id, term_id, lpad(n::text, 2, '0') || '{long}', 3, 1, held_on
               FROM assessments CROSS JOIN generate_series(1, 58) n WHERE id = '{}';
             INSERT INTO subjects (school_id, code, name)
             SELECT '{school}', 'X' || n, lpad(n::text, 2, '0') || '{long}' FROM generate_series(1, 60) n;
             INSERT INTO subject_teachers (school_id, stream_id, subject_id, staff_id)
             SELECT '{school}', '{east}', id, '{}' FROM subjects WHERE code LIKE 'X%' AND name LIKE '%{long}'",
            HILLTOP.assessment("1", "1"),
            HILLTOP.staff("newcomer")
        ))
        .await;
    for (who, tool, head, of) in [
        (
            "subject.teacher",
            "get_subject_gradebook",
            "assessments",
            subject("CHE"),
        ),
        ("class.teacher", "get_class_gradebook", "subjects", Uuid::nil()),
    ] {
        let mut args = json!({"streamId": east, "termId": first_term(), "limit": 1});
        if !of.is_nil() {
            args["subjectId"] = json!(of);
        }
        let result = call(&stage, who, tool, args).await;
        let contract::AgentToolResult::Data { data, scope_context } = result else {
            panic!("{tool}: {result:?}")
        };
        assert_eq!(data["rows"].as_array().unwrap().len(), 1, "{tool}");
        let named = data[head].as_array().unwrap().len();
        assert!((10..50).contains(&named), "{tool}: {named}");
        assert!(
            scope_context.contains("left out because the result was too large"),
            "{tool}: {scope_context}"
        );
    }
    stage.finish().await;
}
