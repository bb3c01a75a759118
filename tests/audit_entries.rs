//! The trail as the school's people read it.

use e2e::{
    Person, Stage,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};

/// Five changes: two on Main by the head, one on Lakeside by its head, one of nobody's campus by the admin, one in the other school.
async fn with_a_trail() -> Stage {
    let stage = Stage::new().await;
    let of = async |who: &str| stage.person(&HILLTOP.email(who)).await;
    data(
        stage
            .call(&of("head").await, "create_department", json!({"name": "Drama"}))
            .await,
    );
    let title = json!({"targetStaffId": HILLTOP.staff("newcomer"), "title": "Teacher of Art"});
    data(stage.call(&of("head").await, "update_staff_member", title).await);
    data(
        stage
            .call(
                &of("harriet.namara").await,
                "create_department",
                json!({"name": "Dance"}),
            )
            .await,
    );
    let title = json!({"targetStaffId": HILLTOP.staff("moses.balikowa"), "title": "Head Librarian"});
    data(stage.call(&of("admin").await, "update_staff_member", title).await);
    let abroad = stage.person(&RIVERSIDE.email("head")).await;
    data(
        stage
            .call(&abroad, "create_department", json!({"name": "Debating"}))
            .await,
    );
    stage
}

async fn list(stage: &Stage, person: &Person, args: Value) -> Vec<Value> {
    let page = data(stage.call(person, "list_audit_entries", args).await);
    page["rows"].as_array().unwrap().clone()
}

fn what(rows: &[Value]) -> Vec<String> {
    let what = |row: &Value| match &row["arguments"] {
        args if args["name"].is_string() => args["name"].as_str().unwrap().to_owned(),
        args => args["title"].as_str().unwrap().to_owned(),
    };
    rows.iter().map(what).collect()
}

#[tokio::test]
async fn come_newest_first_with_all_that_happened() {
    let stage = with_a_trail().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let rows = list(&stage, &admin, json!({})).await;
    assert_eq!(what(&rows), ["Head Librarian", "Dance", "Teacher of Art", "Drama"]);
    let oldest = rows.last().unwrap();
    for (member, value) in [
        ("actorEmail", json!("head@hilltop.example")),
        ("actorType", json!("STAFF")),
        ("action", json!("CREATE")),
        ("resourceType", json!("DEPARTMENT")),
        ("campusId", json!(HILLTOP.campus("main"))),
        ("event", json!("create.department")),
        ("door", json!("chat")),
        ("arguments", json!({"name": "Drama"})),
    ] {
        assert_eq!(oldest[member], value, "{member}");
    }
    assert!(oldest["resourceId"].is_string() && oldest["turnId"].is_string() && oldest["toolCallId"].is_string());
    stage.finish().await;
}

#[tokio::test]
async fn are_those_of_ones_campuses() {
    let stage = with_a_trail().await;
    for (who, right) in [
        ("clerk", vec!["Head Librarian", "Dance", "Teacher of Art", "Drama"]),
        ("head", vec!["Teacher of Art", "Drama"]),
        ("harriet.namara", vec!["Dance"]),
    ] {
        let person = stage.person(&HILLTOP.email(who)).await;
        assert_eq!(what(&list(&stage, &person, json!({})).await), right, "{who}");
    }
    let pinned = stage.person_on(&HILLTOP.email("admin"), "lakeside").await;
    assert_eq!(what(&list(&stage, &pinned, json!({})).await), ["Dance"]);
    let operator = stage.person("platform@operator.example").await;
    assert_eq!(list(&stage, &operator, json!({})).await.len(), 5);
    let teacher = stage.person(&HILLTOP.email("class.teacher")).await;
    let refused = stage.call(&teacher, "list_audit_entries", json!({})).await;
    assert_eq!(error(refused), "Permission denied: you may not LIST AUDIT_LOG.");
    stage.finish().await;
}

#[tokio::test]
async fn are_filtered_by_actor_resource_and_time() {
    let stage = with_a_trail().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let all = list(&stage, &admin, json!({})).await;
    let time = |at: usize| all[at]["createdAt"].clone();
    let dance = all[1]["resourceId"].clone();
    for (filter, right) in [
        (
            json!({"actorEmail": "head@hilltop.example"}),
            vec!["Teacher of Art", "Drama"],
        ),
        (
            json!({"actorEmail": "HEAD@Hilltop.Example"}),
            vec!["Teacher of Art", "Drama"],
        ),
        (json!({"actorEmail": "head@riverside.example"}), vec![]),
        (json!({"resourceType": "DEPARTMENT"}), vec!["Dance", "Drama"]),
        (json!({"resourceType": "department"}), vec!["Dance", "Drama"]),
        (
            json!({"resourceType": "STAFF"}),
            vec!["Head Librarian", "Teacher of Art"],
        ),
        (
            json!({"resourceType": "DEPARTMENT", "actorEmail": "head@hilltop.example"}),
            vec!["Drama"],
        ),
        (json!({"resourceId": dance}), vec!["Dance"]),
        (json!({"resourceId": HILLTOP.department_id()}), vec![]),
        (json!({"from": time(1)}), vec!["Head Librarian", "Dance"]),
        (json!({"to": time(1)}), vec!["Teacher of Art", "Drama"]),
        (json!({"from": time(2), "to": time(0)}), vec!["Dance", "Teacher of Art"]),
        (
            json!({"from": "2020-01-01T00:00:00+03:00", "to": "2020-01-02T00:00:00Z"}),
            vec![],
        ),
    ] {
        assert_eq!(what(&list(&stage, &admin, filter.clone()).await), right, "{filter}");
    }
    for (filter, why) in [
        (json!({"from": time(0), "to": time(0)}), "from: must be before to"),
        (json!({"from": "yesterday"}), "from: "),
        (json!({"resourceId": "none"}), "resourceId: "),
        (json!({"actorEmail": ""}), "actorEmail: "),
    ] {
        let refused = error(stage.call(&admin, "list_audit_entries", filter.clone()).await);
        assert!(
            refused.starts_with(&format!("Invalid tool arguments: {why}")),
            "{filter}: {refused}"
        );
    }
    stage.finish().await;
}
