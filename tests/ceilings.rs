//! Nobody gives more than they hold (fault 7): by a department's permissions, by a role, or by moving somebody.

use e2e::{
    Person, Stage,
    fixtures::{HILLTOP, HILLTOP_LAKESIDE},
    stage::{data, error},
};
use serde_json::{Value, json};

const ROLE_TOO_HIGH: &str = "Permission denied: that role allows more than you may do yourself.";
const MOVE_TOO_HIGH: &str = "Permission denied: that person's roles would allow more there than you may do yourself.";

/// Somebody with these rules and nothing else.
async fn with_rules(stage: &Stage, rules: &[e2e::arrange::GivenRule<'_>]) -> Person {
    stage.give_rules(&HILLTOP, "moses.balikowa", 70, rules).await;
    stage.person(&HILLTOP.email("moses.balikowa")).await
}

fn permission(action: &str, resource: &str) -> Value {
    json!([{"action": action, "resource": resource}])
}

#[tokio::test]
async fn a_new_departments_members_get_what_its_maker_has() {
    let stage = Stage::new().await;
    let maker = with_rules(
        &stage,
        &[
            ("CREATE", "DEPARTMENT", "allow", None),
            ("LIST", "STUDENT", "allow", None),
        ],
    )
    .await;
    let create = |permissions: Value| {
        let args = json!({"name": "Drama", "campusId": HILLTOP.campus("main"), "permissions": permissions});
        stage.call(&maker, "create_department", args)
    };
    let before = stage.snapshot().await;
    for (action, resource) in [
        ("DELETE", "STAFF"),
        ("MANAGE", "DEPARTMENT"),
        ("CREATE", "ALL"),
        ("MANAGE", "ALL"),
        ("READ", "STUDENT"),
    ] {
        let refused = error(create(permission(action, resource)).await);
        assert!(
            refused.starts_with("Permission denied: you may not "),
            "{action} {resource}: {refused}"
        );
    }
    // one of two is too much
    let mixed = json!([{"action": "LIST", "resource": "STUDENT"}, {"action": "DELETE", "resource": "STAFF"}]);
    assert_eq!(
        error(create(mixed).await),
        "Permission denied: you may not DELETE STAFF."
    );
    assert_eq!(stage.snapshot().await, before);

    data(create(permission("LIST", "STUDENT")).await);
    assert_eq!(
        stage
            .count(
                "SELECT count(*) FROM department_permissions p JOIN departments d ON d.id = p.department_id
                     WHERE d.name = 'Drama' AND p.action = 'LIST' AND p.resource = 'STUDENT'"
            )
            .await,
        1
    );
    stage.finish().await;
}

#[tokio::test]
async fn a_departments_members_get_what_its_changer_has() {
    let stage = Stage::new().await;
    let changer = with_rules(&stage, &[("UPDATE", "DEPARTMENT", "allow", None)]).await;
    let update = |person: &Person, permissions: Value| {
        let args = json!({"departmentId": HILLTOP.department_id(), "name": "Science", "permissions": permissions});
        let stage = &stage;
        let person = person.clone();
        async move { stage.call(&person, "update_department", args).await }
    };
    let before = stage.snapshot().await;
    let refused = error(update(&changer, permission("DELETE", "STAFF")).await);
    assert_eq!(refused, "Permission denied: you may not DELETE STAFF.");
    assert_eq!(stage.snapshot().await, before, "the name neither");
    // what the members had already is no licence
    let refused = error(update(&changer, permission("LIST", "LESSON_TEMPLATE")).await);
    assert_eq!(refused, "Permission denied: you may not LIST LESSON_TEMPLATE.");
    assert_eq!(stage.snapshot().await, before);

    data(update(&changer, permission("UPDATE", "DEPARTMENT")).await);
    let head = stage.person(&HILLTOP.email("head")).await;
    data(update(&head, permission("MANAGE", "ALL")).await);
    data(update(&changer, json!([])).await);
    let left = format!(
        "DO $$ BEGIN ASSERT (SELECT count(*) FROM department_permissions WHERE department_id = '{}') = 0; END $$",
        HILLTOP.department_id()
    );
    stage.arrange(&left).await;
    stage.finish().await;
}

/// A denial takes from what a broader rule gave, here as anywhere.
#[tokio::test]
async fn what_is_denied_is_not_held() {
    let stage = Stage::new().await;
    let lakeside = json!({"campusId": HILLTOP.campus("lakeside")});
    let maker = with_rules(
        &stage,
        &[
            ("MANAGE", "ALL", "allow", None),
            ("DELETE", "REPORT", "deny", Some(lakeside)),
        ],
    )
    .await;
    let create = |campus: &str, permissions: Value| {
        let args = json!({"name": "Drama", "campusId": HILLTOP.campus(campus), "permissions": permissions});
        stage.call(&maker, "create_department", args)
    };
    for (action, resource) in [
        ("DELETE", "REPORT"),
        ("MANAGE", "REPORT"),
        ("DELETE", "ALL"),
        ("MANAGE", "ALL"),
    ] {
        error(create("lakeside", permission(action, resource)).await);
    }
    assert_eq!(stage.audit_rows().await, 0);
    let give = |role: &str| {
        let args = json!({"targetStaffId": HILLTOP.staff("newcomer"), "role": role});
        stage.call(&maker, "assign_staff_role", args)
    };
    assert_eq!(error(give("school_admin").await), ROLE_TOO_HIGH);
    assert_eq!(stage.audit_rows().await, 0);
    data(give("clerk").await);
    data(create("lakeside", permission("READ", "REPORT")).await);
    data(create("main", permission("MANAGE", "ALL")).await);
    stage.finish().await;
}

#[tokio::test]
async fn a_role_is_given_by_whoever_holds_all_of_it() {
    let stage = Stage::new().await;
    let manager = with_rules(
        &stage,
        &[("MANAGE", "ROLE", "allow", None), ("READ", "ALL", "allow", None)],
    )
    .await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let give = |person: &Person, target: &str, role: &str, campus: Option<&str>| {
        let mut args = json!({"targetStaffId": HILLTOP.staff(target), "role": role});
        if let Some(campus) = campus {
            args["campusId"] = json!(HILLTOP.campus(campus));
        }
        let (stage, person) = (&stage, person.clone());
        async move { stage.call(&person, "assign_staff_role", args).await }
    };
    let before = stage.snapshot().await;
    for (person, target, role, campus) in [
        (&manager, "newcomer", "clerk", None),
        (&manager, "newcomer", "clerk", Some("main")),
        (&manager, "moses.balikowa", "school_admin", None),
        (&head, "newcomer", "clerk", None),
        (&head, "head", "school_admin", None),
    ] {
        assert_eq!(
            error(give(person, target, role, campus).await),
            ROLE_TOO_HIGH,
            "{role} to {target}"
        );
    }
    for (target, campus, refused) in [
        ("newcomer", "lakeside", "Campus not found."),
        ("isaac.ocen", "main", "Staff member not found."),
        ("clerk", "main", "Staff member not found."),
    ] {
        assert_eq!(error(give(&head, target, "clerk", Some(campus)).await), refused);
    }
    assert_eq!(stage.snapshot().await, before);

    data(give(&head, "newcomer", "clerk", Some("main")).await);
    data(give(&head, "newcomer", "school_admin", Some("main")).await);
    data(give(&head, "newcomer", "class_teacher", Some("main")).await);
    data(give(&admin, "newcomer", "school_admin", None).await);
    assert_eq!(stage.audit_rows().await, 4);
    stage.finish().await;
}

/// Rules about one's own campus follow a person there, so moving one gives something.
#[tokio::test]
async fn a_move_gives_no_more_than_the_mover_has_there() {
    let stage = Stage::new().await;
    let mover = with_rules(
        &stage,
        &[("UPDATE", "STAFF", "allow", None), ("LIST", "CAMPUS", "allow", None)],
    )
    .await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let move_to = |person: &Person, target: &str, campus: &str| {
        let args =
            json!({"targetStaffId": HILLTOP.staff(target), "title": "Moved", "campusId": HILLTOP.campus(campus)});
        let (stage, person) = (&stage, person.clone());
        async move { stage.call(&person, "update_staff_member", args).await }
    };
    let before = stage.snapshot().await;
    for target in ["dos", "class.teacher", "both.hats"] {
        assert_eq!(
            error(move_to(&mover, target, "lakeside").await),
            MOVE_TOO_HIGH,
            "{target}"
        );
    }
    assert_eq!(stage.snapshot().await, before);

    data(move_to(&mover, "newcomer", "lakeside").await);
    data(move_to(&mover, "dos", "main").await);
    // held on Main, wherever its holder works
    data(move_to(&mover, "head", "lakeside").await);
    data(move_to(&admin, "class.teacher", "lakeside").await);
    let teacher = stage.person(&HILLTOP.email("class.teacher")).await;
    let department = json!({"departmentId": HILLTOP_LAKESIDE.department_id()});
    data(stage.call(&teacher, "get_department", department).await);
    stage.finish().await;
}

/// A head may not send somebody where they have no say, nor fetch them from there.
#[tokio::test]
async fn a_move_is_between_campuses_of_the_mover() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let before = stage.snapshot().await;
    let move_to = |target: &str, campus: &str| {
        let args = json!({"targetStaffId": HILLTOP.staff(target), "campusId": HILLTOP.campus(campus)});
        stage.call(&head, "update_staff_member", args)
    };
    assert_eq!(error(move_to("newcomer", "lakeside").await), "Campus not found.");
    assert_eq!(error(move_to("isaac.ocen", "main").await), "Staff member not found.");
    assert_eq!(error(move_to("clerk", "main").await), "Staff member not found.");
    assert_eq!(stage.snapshot().await, before);
    data(move_to("newcomer", "main").await);
    stage.finish().await;
}

#[tokio::test]
async fn whoever_makes_a_head_could_do_what_a_head_may() {
    let stage = Stage::new().await;
    let may_update = [
        ("UPDATE", "DEPARTMENT", "allow", None),
        ("READ", "DEPARTMENT", "allow", None),
    ];
    let person = with_rules(&stage, &may_update).await;
    let lead = json!({"departmentId": HILLTOP.department_id(), "targetStaffId": HILLTOP.staff("moses.balikowa")});
    let before = stage.snapshot().await;
    let refused = error(stage.call(&person, "assign_department_head", lead.clone()).await);
    assert_eq!(
        refused,
        "Permission denied: only a head of this department, or whoever may DELETE DEPARTMENT, may make somebody its head."
    );
    assert_eq!(stage.snapshot().await, before);
    let may_delete = [("DELETE", "DEPARTMENT", "allow", None)];
    stage.give_rules(&HILLTOP, "moses.balikowa", 71, &may_delete).await;
    data(stage.call(&person, "assign_department_head", lead).await);
    stage.finish().await;
}

#[tokio::test]
async fn nobody_renames_an_account_that_has_left() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let rename = |who: &str| json!({"targetStaffId": HILLTOP.staff(who), "name": "Somebody Else"});
    let before = stage.snapshot().await;
    let refused = error(stage.call(&head, "update_staff_member", rename("left")).await);
    assert_eq!(refused, "The name of that account is not this school's to change.");
    assert_eq!(stage.snapshot().await, before);
    data(stage.call(&head, "update_staff_member", rename("newcomer")).await);
    stage.finish().await;
}
