//! Subjects belong to the whole school: seen from every campus, and made by whoever may do so for all of it.

use e2e::{
    Stage,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use uuid::Uuid;

fn texts(rows: &Value, member: &str) -> Vec<String> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row[member].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn are_the_same_on_every_campus() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let all = data(stage.call(&admin, "list_subjects", json!({})).await)["rows"].clone();
    let names = texts(&all, "name");
    assert!(
        names.contains(&"Chemistry".to_owned()) && names.is_sorted(),
        "{names:?}"
    );
    for who in ["head", "class.teacher", "lakeside.teacher", "clerk"] {
        let person = stage.person(&HILLTOP.email(who)).await;
        let seen = data(stage.call(&person, "list_subjects", json!({})).await)["rows"].clone();
        assert_eq!(seen, all, "{who}");
    }
    let riverside = stage.person(&RIVERSIDE.email("admin")).await;
    let seen = data(stage.call(&riverside, "list_subjects", json!({})).await)["rows"].clone();
    let theirs = texts(&seen, "subjectId");
    assert!(texts(&all, "subjectId").iter().all(|subject| !theirs.contains(subject)));
    stage.finish().await;
}

#[tokio::test]
async fn are_listed_for_a_class() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let list = |class: Uuid| stage.call(&admin, "list_subjects", json!({"classId": class}));
    let senior_4 = data(list(id(&["hilltop", "class", "Senior 4"])).await)["rows"].clone();
    assert!(!texts(&senior_4, "code").contains(&"LUG".to_owned()));
    let senior_1 = data(list(id(&["hilltop", "class", "Senior 1"])).await)["rows"].clone();
    assert!(texts(&senior_1, "code").contains(&"LUG".to_owned()));
    for foreign in [id(&["riverside", "class", "Form 1"]), Uuid::now_v7()] {
        assert_eq!(error(list(foreign).await), "Class not found.");
    }
    stage.finish().await;
}

#[tokio::test]
async fn are_made_by_whoever_may_for_the_whole_school() {
    let stage = Stage::new().await;
    let art = json!({"code": "ART", "name": "Art"});
    let before = stage.snapshot().await;
    for who in ["head", "dos", "clerk"] {
        let person = stage.person(&HILLTOP.email(who)).await;
        let refused = error(stage.call(&person, "create_subject", art.clone()).await);
        assert_eq!(refused, "Permission denied: you may not CREATE SUBJECT.", "{who}");
    }
    assert_eq!(stage.snapshot().await, before);
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let made = data(stage.call(&admin, "create_subject", art).await);
    let classes = ["Senior 1", "Senior 2", "Senior 3", "Senior 4"];
    assert_eq!(texts(&made["classes"], "name")[..4], classes, "every class takes it");
    stage.finish().await;
}

#[tokio::test]
async fn are_made_for_some_classes_of_the_school() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let senior_1 = id(&["hilltop", "class", "Senior 1"]);
    let create = |classes: &[Uuid]| {
        let args = json!({"code": "ART", "name": "Art", "classIds": classes});
        stage.call(&admin, "create_subject", args)
    };
    let before = stage.snapshot().await;
    for classes in [
        &[Uuid::now_v7()][..],
        &[senior_1, id(&["riverside", "class", "Form 1"])],
    ] {
        assert_eq!(error(create(classes).await), "Class not found.");
    }
    assert_eq!(stage.snapshot().await, before);
    let made = data(create(&[senior_1, senior_1]).await);
    assert_eq!(made["classes"], json!([{"classId": senior_1, "name": "Senior 1"}]));
    stage.finish().await;
}

/// An operator has no school: it follows from the classes.
#[tokio::test]
async fn of_an_operator_are_of_the_classes_school() {
    let stage = Stage::new().await;
    let operator = stage.person("platform@operator.example").await;
    let make = |classes: Value| {
        let args = json!({"code": "ART", "name": "Art", "classIds": classes});
        stage.call(&operator, "create_subject", args)
    };
    let (form, senior) = (
        id(&["riverside", "class", "Form 3"]),
        id(&["hilltop", "class", "Senior 3"]),
    );
    let before = stage.snapshot().await;
    assert_eq!(error(make(json!([form, senior])).await), "Class not found.");
    assert_eq!(
        error(make(Value::Null).await),
        "Invalid tool arguments: classIds: name the classes; this person belongs to no school"
    );
    assert_eq!(stage.snapshot().await, before);
    data(make(json!([form])).await);
    let theirs = "SELECT count(*) FROM subjects b JOIN schools s ON s.id = b.school_id AND s.slug = 'riverside' WHERE b.code = 'ART'";
    assert_eq!(stage.count(theirs).await, 1);
    stage.finish().await;
}

#[tokio::test]
async fn have_codes_and_names_of_their_own() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let before = stage.snapshot().await;
    for (args, refusal) in [
        (
            json!({"code": "CHE", "name": "Cheese"}),
            "A subject with that code exists in this school.",
        ),
        (
            json!({"code": " che", "name": "Cheese"}),
            "A subject with that code exists in this school.",
        ),
        (
            json!({"code": "XYZ", "name": "CHEMISTRY"}),
            "A subject of that name exists in this school.",
        ),
    ] {
        assert_eq!(error(stage.call(&admin, "create_subject", args).await), refusal);
    }
    assert_eq!(stage.snapshot().await, before);
    let riverside = stage.person(&RIVERSIDE.email("admin")).await;
    data(
        stage
            .call(&riverside, "create_subject", json!({"code": "LUG", "name": "Luganda"}))
            .await,
    );
    stage.finish().await;
}
