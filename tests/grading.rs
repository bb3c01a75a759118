//! How campuses grade: who sees it, who changes it, and what bands are.

use e2e::{
    Stage,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error, pending},
};
use serde_json::{Value, json};
use server::{
    conversation,
    decision::{Became, DecisionError, Ruling},
    grant::Door,
};

const CAMPUS_NOT_FOUND: &str = "Campus not found.";

fn on(campus: &str) -> Value {
    json!({"campusId": HILLTOP.campus(campus)})
}

fn bands(of: &[(&str, i32)]) -> Value {
    of.iter()
        .map(|(label, from)| json!({"label": label, "from": from}))
        .collect()
}

async fn get(stage: &Stage, who: &str, args: Value) -> contract::AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    stage.call(&person, "get_grading_config", args).await
}

async fn update(stage: &Stage, who: &str, args: Value) -> contract::AgentToolResult {
    let person = stage.person(&HILLTOP.email(who)).await;
    stage.call(&person, "update_grading_config", args).await
}

#[tokio::test]
async fn is_shown_to_whoever_teaches_on_the_campus_or_directs_it() {
    let stage = Stage::new().await;
    for (who, args, campus) in [
        ("class.teacher", json!({}), "Main"),
        ("subject.teacher", on("main"), "Main"),
        ("dos", json!({}), "Main"),
        ("lakeside.teacher", json!({}), "Lakeside"),
        ("isaac.ocen", on("lakeside"), "Lakeside"),
    ] {
        assert_eq!(data(get(&stage, who, args).await)["campusName"], campus, "{who}");
    }
    for (who, campus) in [
        ("class.teacher", "lakeside"),
        ("dos", "lakeside"),
        ("admin", "main"),
        ("head", "main"),
    ] {
        assert_eq!(
            error(get(&stage, who, on(campus)).await),
            CAMPUS_NOT_FOUND,
            "{who} of {campus}"
        );
    }
    let elsewhere = json!({"campusId": RIVERSIDE.campus("north")});
    assert_eq!(error(get(&stage, "dos", elsewhere).await), CAMPUS_NOT_FOUND);
    let nowhere = "Permission denied: this is for who teaches on a campus or directs its studies.";
    for who in ["admin", "newcomer", "clerk"] {
        assert_eq!(error(get(&stage, who, json!({})).await), nowhere, "{who}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn is_no_more_of_who_taught_there_last_year() {
    let stage = Stage::new().await;
    data(get(&stage, "class.teacher", json!({})).await);
    let only_last_year = format!(
        "DELETE FROM class_teachers t USING streams s, campus_academic_years y
          WHERE s.id = t.stream_id AND y.id = s.campus_academic_year_id AND y.is_current AND t.staff_id = '{0}';
         DELETE FROM subject_teachers WHERE staff_id = '{0}'",
        HILLTOP.staff("class.teacher")
    );
    stage.arrange(&only_last_year).await;
    assert_eq!(error(get(&stage, "class.teacher", on("main")).await), CAMPUS_NOT_FOUND);
    stage.finish().await;
}

#[tokio::test]
async fn is_asked_for_by_campus_where_one_teaches_on_two() {
    let stage = Stage::new().await;
    let stream = server::db::seed::id(&["hilltop", "stream", "lakeside", "current", "S2 Lake"]);
    stage
        .arrange(&format!(
            "INSERT INTO class_teachers (school_id, stream_id, staff_id) VALUES ('{}', '{stream}', '{}')
             ON CONFLICT ON CONSTRAINT class_teachers_stream_key DO UPDATE SET staff_id = excluded.staff_id",
            HILLTOP.id(),
            HILLTOP.staff("class.teacher")
        ))
        .await;
    let refused = error(get(&stage, "class.teacher", json!({})).await);
    assert!(refused.starts_with("Invalid tool arguments: campusId: "), "{refused}");
    assert_eq!(
        data(get(&stage, "class.teacher", on("lakeside")).await)["campusName"],
        "Lakeside"
    );
    let pinned = stage.person_on(&HILLTOP.email("class.teacher"), "main").await;
    let shown = data(stage.call(&pinned, "get_grading_config", on("lakeside")).await);
    assert_eq!(shown["campusName"], "Main", "the pinned campus wins");
    stage.finish().await;
}

#[tokio::test]
async fn is_replaced_whole_by_the_director_of_the_campus() {
    let stage = Stage::new().await;
    let new = bands(&[("Pass", 50), ("Fail", 0), ("Honours", 80)]);
    let before = stage.snapshot().await;
    for (who, campus, refusal) in [
        ("class.teacher", "main", CAMPUS_NOT_FOUND),
        ("head", "main", CAMPUS_NOT_FOUND),
        ("admin", "main", CAMPUS_NOT_FOUND),
        ("dos", "lakeside", CAMPUS_NOT_FOUND),
    ] {
        let args = json!({"campusId": HILLTOP.campus(campus), "bands": new});
        assert_eq!(error(update(&stage, who, args).await), refusal, "{who} of {campus}");
    }
    assert_eq!(stage.snapshot().await, before);
    let was = data(get(&stage, "class.teacher", json!({})).await)["bands"].clone();
    let mut replaced = data(update(&stage, "dos", json!({"bands": new})).await);
    assert_eq!(replaced.as_object_mut().unwrap().remove("replacedBands"), Some(was));
    let expected = json!([
        {"label": "Honours", "from": 80},
        {"label": "Pass", "from": 50, "below": 80},
        {"label": "Fail", "from": 0, "below": 50},
    ]);
    assert_eq!(
        (&replaced["bands"], &replaced["campusName"]),
        (&expected, &json!("Main"))
    );
    assert_eq!(data(get(&stage, "class.teacher", json!({})).await), replaced);
    stage.finish().await;
}

/// Whoever directs the studies asks, and whoever may change the grading of that campus decides.
#[tokio::test]
async fn is_replaced_once_somebody_else_of_the_campus_approves() {
    let stage = Stage::new().await;
    let lakeside = on("lakeside");
    let heads = [("UPDATE", "GRADING_CONFIG", "allow", Some(lakeside))];
    stage.give_rules(&HILLTOP, "newcomer", 77, &heads).await;
    let dos = stage.person(&HILLTOP.email("dos")).await;
    let args = json!({"bands": bands(&[("Pass", 50), ("Fail", 0)])});
    let waits = pending(stage.ask(&dos, "update_grading_config", args).await);
    assert_eq!(waits.preview["bands"][0]["label"], "Pass");

    let decide = async |email: String| {
        let person = conversation::Person { email };
        let decisions = stage.decisions();
        decisions
            .decide(&person, Door::Rest, waits.approval_id, Ruling::approve())
            .await
    };
    let before = stage.snapshot().await;
    let own = decide(HILLTOP.email("dos")).await;
    assert!(matches!(own, Err(DecisionError::NeedsAnother)), "{own:?}");
    let others = ["newcomer", "isaac.ocen", "class.teacher", "clerk"].map(|who| HILLTOP.email(who));
    for email in others.into_iter().chain([RIVERSIDE.email("head")]) {
        let refused = decide(email.clone()).await;
        assert!(matches!(refused, Err(DecisionError::Unknown)), "{email}: {refused:?}");
    }
    assert_eq!(stage.snapshot().await, before);

    assert_eq!(decide(HILLTOP.email("head")).await.unwrap().became, Became::Executed);
    let now = data(get(&stage, "class.teacher", json!({})).await);
    assert_eq!(now["bands"].as_array().map(Vec::len), Some(2), "{now}");
    stage.finish().await;
}

#[tokio::test]
async fn covers_every_percentage_once() {
    let stage = Stage::new().await;
    let before = stage.snapshot().await;
    for (wrong, why) in [
        (bands(&[("A", 50), ("B", 10)]), "bands: one of them must begin at 0"),
        (
            bands(&[("A", 50), ("B", 50), ("C", 0)]),
            "bands: two of them begin at the same percentage",
        ),
        (bands(&[("A", 50), ("a", 0)]), "bands: two of them have the same label"),
    ] {
        let refused = error(update(&stage, "dos", json!({"bands": wrong})).await);
        assert_eq!(refused, format!("Invalid tool arguments: {why}"));
    }
    let thirteen: Vec<Value> = (0..13).map(|n| json!({"label": format!("L{n}"), "from": n})).collect();
    for wrong in [
        bands(&[("A", 0)]),
        bands(&[("A", 101), ("B", 0)]),
        bands(&[(" ", 0), ("B", 1)]),
        json!(thirteen),
    ] {
        let refused = error(update(&stage, "dos", json!({"bands": wrong})).await);
        assert!(refused.starts_with("Invalid tool arguments: bands"), "{refused}");
    }
    assert_eq!(stage.snapshot().await, before);
    data(update(&stage, "dos", json!({"bands": bands(&[("A", 100), ("B", 0)])})).await);
    stage.finish().await;
}

/// What no tool can write, nobody can.
#[tokio::test]
async fn covers_every_percentage_in_the_database_too() {
    let stage = Stage::new().await;
    let mut owner = stage.owner().await;
    for (change, refusal) in [
        (
            "DELETE FROM grading_bands WHERE lower_bound = 0",
            "grading_bands_begin_at_zero",
        ),
        (
            "UPDATE grading_bands SET lower_bound = 1 WHERE lower_bound = 0",
            "grading_bands_begin_at_zero",
        ),
        ("DELETE FROM grading_bands", "grading_bands_begin_at_zero"),
        (
            "UPDATE grading_bands SET lower_bound = 0",
            "grading_bands_lower_bound_key",
        ),
        (
            "UPDATE grading_bands SET lower_bound = -1 WHERE lower_bound = 0",
            "grading_bands_lower_bound_check",
        ),
        ("UPDATE grading_bands SET label = 'same'", "grading_bands_label_key"),
    ] {
        let refused = sqlx::query(change).execute(&mut owner).await.unwrap_err();
        let constraint = refused.as_database_error().and_then(|error| error.constraint());
        assert_eq!(constraint, Some(refusal), "{change}");
    }
    stage
        .arrange("BEGIN; DELETE FROM grading_bands; DELETE FROM grading_configs; COMMIT")
        .await;
    assert_eq!(
        error(get(&stage, "dos", json!({})).await),
        "Grading configuration not found."
    );
    stage.finish().await;
}

/// Labels are the same whatever their case, and where languages fold differently the database has the last word.
#[tokio::test]
async fn has_no_two_labels_that_the_database_takes_for_the_same() {
    let stage = Stage::new().await;
    let before = stage.snapshot().await;
    for (first, second) in [("a", "A"), ("İ", "i"), ("ΑΣ", "ασ")] {
        let args = json!({"bands": bands(&[(first, 50), (second, 0)])});
        assert_eq!(
            error(update(&stage, "dos", args).await),
            "Invalid tool arguments: bands: two of them have the same label",
            "{first} and {second}"
        );
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}
