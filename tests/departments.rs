//! Departments: what their tools do once they are admitted, and the rules that are their own.

use e2e::{
    Person, Stage,
    fixtures::{HILLTOP, HILLTOP_LAKESIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use server::db::seed::id;
use uuid::Uuid;

const TAKEN: &str = "A department of that name exists on this campus.";

async fn get(stage: &Stage, department: Uuid) -> Value {
    let admin = stage.person(&HILLTOP.email("admin")).await;
    data(
        stage
            .call(&admin, "get_department", json!({"departmentId": department}))
            .await,
    )
}

fn department(campus: &str, name: &str) -> Uuid {
    id(&["hilltop", "department", campus, name])
}

fn names(page: &Value) -> Vec<&str> {
    let rows = page["rows"].as_array().unwrap();
    rows.iter().map(|row| row["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn are_shown_with_their_people() {
    let stage = Stage::new().await;
    let sciences = get(&stage, HILLTOP.department_id()).await;
    assert_eq!(
        sciences,
        json!({
            "id": HILLTOP.department_id(),
            "campusId": HILLTOP.campus("main"),
            "campusName": "Main",
            "name": "Sciences",
            "description": "Chemistry, Physics and Biology on the old campus; keeps the laboratories.",
            "heads": [{"staffId": HILLTOP.staff("subject.teacher"), "name": "Esther Akello"}],
            "memberCount": 2,
            "permissions": [
                {"action": "CREATE", "resource": "LESSON_TEMPLATE"},
                {"action": "LIST", "resource": "LESSON_TEMPLATE"},
            ],
        })
    );
    stage.finish().await;
}

#[tokio::test]
async fn are_listed_by_name_on_the_campuses_asked_for() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let list = |args: Value| stage.call(&admin, "list_departments", args);
    let main = ["Humanities", "Languages", "Mathematics", "Sciences"];
    let lakeside = ["Arts and Crafts", "Library", "Sciences", "Sports and Rowing"];
    let on = |campus: &str| json!({"campusId": HILLTOP.campus(campus)});
    assert_eq!(names(&data(list(on("main")).await)), main);
    assert_eq!(names(&data(list(on("lakeside")).await)), lakeside);
    let mut all: Vec<&str> = main.into_iter().chain(lakeside).collect();
    all.sort_unstable();
    let page = data(list(json!({})).await);
    assert_eq!(names(&page), all);
    assert_eq!((&page["more"], page.get("nextCursor")), (&json!(false), None));
    assert!(
        !page.to_string().contains(&HILLTOP.id().to_string()),
        "a reply does not name the tenant"
    );
    stage.finish().await;
}

#[tokio::test]
async fn have_names_of_their_own_on_a_campus_whatever_the_case() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let create = |name: &str, campus: &str| {
        stage.call(
            &admin,
            "create_department",
            json!({"name": name, "campusId": HILLTOP.campus(campus)}),
        )
    };
    let rename =
        |from: Uuid, name: &str| stage.call(&admin, "update_department", json!({"departmentId": from, "name": name}));
    let before = stage.snapshot().await;
    for name in [
        "Humanities",
        "HUMANITIES",
        "humanities",
        " Humanities  ",
        "\tHumanities",
    ] {
        assert_eq!(error(create(name, "main").await), TAKEN);
        assert_eq!(error(rename(HILLTOP.department_id(), name).await), TAKEN);
    }
    assert_eq!(stage.snapshot().await, before);
    data(create("Humanities", "lakeside").await);
    data(rename(HILLTOP.department_id(), "SCIENCES").await);
    stage.finish().await;
}

#[tokio::test]
async fn need_a_campus_where_there_are_several() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let create = |person: &Person| {
        let (stage, person) = (&stage, person.clone());
        async move { stage.call(&person, "create_department", json!({"name": "Drama"})).await }
    };
    let refused = error(create(&admin).await);
    assert_eq!(
        refused,
        "Invalid tool arguments: campusId: name a campus; this person works on more than one"
    );
    assert_eq!(stage.audit_rows().await, 0);
    assert_eq!(data(create(&head).await)["campusId"], json!(HILLTOP.campus("main")));
    stage.finish().await;
}

/// fault 35: null is absent, and clearing is explicit
#[tokio::test]
async fn keep_what_an_update_does_not_name() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let update = |mut args: Value| {
        args["departmentId"] = json!(HILLTOP.department_id());
        stage.call(&head, "update_department", args)
    };
    let before = get(&stage, HILLTOP.department_id()).await;
    let nulls = json!({"name": "Natural Sciences", "description": null, "permissions": null, "clear": null});
    data(update(nulls).await);
    let mut expected = before.clone();
    expected["name"] = json!("Natural Sciences");
    assert_eq!(get(&stage, HILLTOP.department_id()).await, expected);

    data(update(json!({"description": "All of it"})).await);
    expected["description"] = json!("All of it");
    assert_eq!(get(&stage, HILLTOP.department_id()).await, expected);

    data(update(json!({"clear": ["description"]})).await);
    expected["description"] = Value::Null;
    assert_eq!(get(&stage, HILLTOP.department_id()).await, expected);

    data(update(json!({"permissions": []})).await);
    expected["permissions"] = json!([]);
    assert_eq!(get(&stage, HILLTOP.department_id()).await, expected);
    stage.finish().await;
}

#[tokio::test]
async fn refuse_an_update_of_nothing_and_one_that_contradicts_itself() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let before = stage.snapshot().await;
    for (change, why) in [
        (json!({}), "arguments: name what to change"),
        (json!({"name": null, "clear": []}), "arguments: name what to change"),
        (
            json!({"description": "A", "clear": ["description"]}),
            "clear: description is given and cleared at once",
        ),
        (json!({"clear": ["name"]}), "clear/0: "),
        (json!({"name": ""}), "name: "),
        (json!({"description": " "}), "description: "),
    ] {
        let mut args = change.clone();
        args["departmentId"] = json!(HILLTOP.department_id());
        let refused = error(stage.call(&head, "update_department", args).await);
        let expected = format!("Invalid tool arguments: {why}");
        assert!(refused.starts_with(&expected), "{change}: {refused}");
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

#[tokio::test]
async fn are_deleted_by_their_own_heads_and_by_whoever_may() {
    let stage = Stage::new().await;
    let delete = |who: &'static str, department: Uuid| {
        let stage = &stage;
        async move {
            let person = stage.person(&HILLTOP.email(who)).await;
            stage
                .call(&person, "delete_department", json!({"departmentId": department}))
                .await
        }
    };
    let before = stage.snapshot().await;
    let refused = "Permission denied: only a head of this department, or whoever may DELETE DEPARTMENT, may delete it.";
    // the head of another one, and somebody who may read it
    for who in ["both.hats", "clerk"] {
        assert_eq!(error(delete(who, HILLTOP.department_id()).await), refused, "{who}");
    }
    // who may not even read it, and on a campus that is not open to them
    for (who, there) in [
        ("newcomer", HILLTOP.department_id()),
        ("subject.teacher", HILLTOP_LAKESIDE.department_id()),
        ("isaac.ocen", HILLTOP.department_id()),
    ] {
        assert_eq!(error(delete(who, there).await), "Department not found.", "{who}");
    }
    assert_eq!(stage.snapshot().await, before);

    data(delete("subject.teacher", HILLTOP.department_id()).await);
    data(delete("head", department("main", "Languages")).await);
    data(delete("moses.balikowa", department("lakeside", "Library")).await);
    assert_eq!(stage.audit_rows().await, 3);
    let gone = stage
        .count("SELECT count(*) FROM departments WHERE school_id = (SELECT id FROM schools WHERE slug = 'hilltop')");
    assert_eq!(gone.await, 5);
    assert_eq!(
        stage.count("SELECT count(*) FROM department_members m WHERE NOT EXISTS (SELECT FROM departments d WHERE d.id = m.department_id)").await,
        0
    );
    assert_eq!(
        error(delete("head", HILLTOP.department_id()).await),
        "Department not found."
    );
    stage.finish().await;
}

/// Who was a head a moment ago is none any more.
#[tokio::test]
async fn are_not_deleted_by_a_former_head() {
    let stage = Stage::new().await;
    let teacher = stage.person(&HILLTOP.email("subject.teacher")).await;
    stage.arrange("DELETE FROM department_heads").await;
    let args = json!({"departmentId": HILLTOP.department_id()});
    let refused = error(stage.call(&teacher, "delete_department", args).await);
    assert!(
        refused.starts_with("Permission denied: only a head of this department"),
        "{refused}"
    );
    assert_eq!(stage.audit_rows().await, 0);
    stage.finish().await;
}

#[tokio::test]
async fn get_heads_from_their_campus_or_from_the_whole_school() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let assign = |department: Uuid, staff: Uuid| {
        let args = json!({"departmentId": department, "targetStaffId": staff});
        stage.call(&admin, "assign_department_head", args)
    };
    let before = stage.snapshot().await;
    for (staff, why) in [
        (HILLTOP.staff("isaac.ocen"), "of the other campus"),
        (e2e::fixtures::RIVERSIDE.staff("head"), "of another school"),
        (HILLTOP.staff("left"), "who left"),
        (Uuid::now_v7(), "nobody"),
    ] {
        assert_eq!(
            error(assign(HILLTOP.department_id(), staff).await),
            "Staff member not found.",
            "{why}"
        );
    }
    assert_eq!(
        error(assign(HILLTOP.department_id(), HILLTOP.staff("subject.teacher")).await),
        "That member of staff is a head of this department already."
    );
    assert_eq!(stage.snapshot().await, before);

    let after = data(assign(HILLTOP.department_id(), HILLTOP.staff("newcomer")).await);
    assert_eq!(after["heads"].as_array().unwrap().len(), 2, "beside the head it had");
    data(assign(HILLTOP.department_id(), HILLTOP.staff("clerk")).await);
    data(assign(HILLTOP_LAKESIDE.department_id(), HILLTOP.staff("clerk")).await);
    stage.finish().await;
}

/// An account that was closed takes no department, even where the profile still stands.
#[tokio::test]
async fn get_no_head_whose_account_is_closed() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let args = json!({"departmentId": HILLTOP.department_id(), "targetStaffId": HILLTOP.staff("newcomer")});
    stage
        .arrange("UPDATE users SET active = false WHERE email LIKE 'newcomer@%'")
        .await;
    let before = stage.snapshot().await;
    let refused = stage.call(&admin, "assign_department_head", args.clone()).await;
    assert_eq!(error(refused), "Staff member not found.");
    assert_eq!(stage.snapshot().await, before);
    stage.arrange("UPDATE users SET active = true").await;
    data(stage.call(&admin, "assign_department_head", args).await);
    stage.finish().await;
}

#[tokio::test]
async fn name_a_permission_twice_and_have_it_once() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let twice = json!([{"action": "LIST", "resource": "STAFF"}, {"action": "LIST", "resource": "STAFF"}]);
    let created = stage
        .call(
            &head,
            "create_department",
            json!({"name": "Drama", "permissions": twice}),
        )
        .await;
    let id = data(created)["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        get(&stage, id).await["permissions"],
        json!([{"action": "LIST", "resource": "STAFF"}])
    );
    stage.finish().await;
}
