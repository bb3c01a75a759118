//! Roles that are taken away: by whoever could give them, and never so that nobody administers the school any more (fault 8).

use contract::AgentToolResult;
use e2e::{
    Person, Stage,
    fixtures::HILLTOP,
    stage::{data, error},
};
use serde_json::json;

/// What is said of a role that there is not, to whoever may give roles.
const NO_ROLE: &str = "Invalid tool arguments: role: there is no such role; there are: school_admin, head_teacher, clerk, director_of_studies, subject_teacher, class_teacher";

const LAST: &str = "That is the last administrator of the school. Make somebody else one first.";
const ROLE_TOO_HIGH: &str = "Permission denied: that role allows more than you may do yourself.";

async fn change(stage: &Stage, tool: &str, person: &Person, held: (&str, &str, Option<&str>)) -> AgentToolResult {
    let (target, role, campus) = held;
    let mut args = json!({"targetStaffId": HILLTOP.staff(target), "role": role});
    if let Some(campus) = campus {
        args["campusId"] = json!(HILLTOP.campus(campus));
    }
    stage.call(person, tool, args).await
}

async fn revoke(stage: &Stage, person: &Person, held: (&str, &str, Option<&str>)) -> AgentToolResult {
    change(stage, "revoke_staff_role", person, held).await
}

async fn give(stage: &Stage, person: &Person, held: (&str, &str, Option<&str>)) -> AgentToolResult {
    change(stage, "assign_staff_role", person, held).await
}

async fn of(stage: &Stage, who: &str) -> Person {
    stage.person(&HILLTOP.email(who)).await
}

const ADMIN: (&str, &str, Option<&str>) = ("admin", "school_admin", None);

/// fault 8
#[tokio::test]
async fn stays() {
    let stage = Stage::new().await;
    let admin = of(&stage, "admin").await;
    let operator = stage.person("platform@operator.example").await;
    // somebody who may do everything on a campus is none, nor is somebody who has left or whose account is closed
    data(give(&stage, &admin, ("newcomer", "school_admin", Some("main"))).await);
    data(give(&stage, &admin, ("moses.balikowa", "school_admin", None)).await);
    stage
        .arrange("UPDATE users SET active = false WHERE email = 'moses.balikowa@hilltop.example'")
        .await;
    let before = stage.snapshot().await;
    for person in [&admin, &operator] {
        assert_eq!(error(revoke(&stage, person, ADMIN).await), LAST);
    }
    assert_eq!(stage.snapshot().await, before);
    data(revoke(&stage, &admin, ("newcomer", "school_admin", Some("main"))).await);
    data(revoke(&stage, &admin, ("moses.balikowa", "school_admin", None)).await);
    // with another one, one may go, also of their own accord
    data(give(&stage, &admin, ("clerk", "school_admin", None)).await);
    data(revoke(&stage, &admin, ADMIN).await);
    let refused = error(revoke(&stage, &admin, ("clerk", "school_admin", None)).await);
    assert_eq!(refused, "Permission denied: you may not MANAGE ROLE.");
    stage.finish().await;
}

/// fault 8, with two who each take the other's
#[tokio::test]
async fn stays_where_two_revoke_at_once() {
    for _ in 0..5 {
        let stage = Stage::new().await;
        let admin = of(&stage, "admin").await;
        data(give(&stage, &admin, ("clerk", "school_admin", None)).await);
        let clerk = of(&stage, "clerk").await;
        let (one, other) = tokio::join!(
            revoke(&stage, &admin, ("clerk", "school_admin", None)),
            revoke(&stage, &clerk, ADMIN),
        );
        let done = [&one, &other].into_iter().filter(|result| result.is_data()).count();
        assert_eq!(done, 1, "{one:?} {other:?}");
        let left = "SELECT count(*) FROM user_roles ur JOIN roles r ON r.id = ur.role_id AND r.school_id = ur.school_id
                      JOIN schools s ON s.id = ur.school_id AND s.slug = 'hilltop' WHERE r.name = 'school_admin'";
        assert_eq!(stage.count(left).await, 1);
        stage.finish().await;
    }
}

/// A role that forbids takes power as well as revoking one does.
#[tokio::test]
async fn is_not_given_a_role_that_forbids_everything() {
    let stage = Stage::new().await;
    let admin = of(&stage, "admin").await;
    for (rank, action, resource) in [(80, "MANAGE", "ALL"), (81, "MANAGE", "ROLE")] {
        stage
            .give_rules(&HILLTOP, "moses.balikowa", rank, &[(action, resource, "deny", None)])
            .await;
        let role = format!("moses.balikowa, rank {rank}");
        let before = stage.snapshot().await;
        assert_eq!(error(give(&stage, &admin, ("admin", &role, None)).await), LAST);
        assert_eq!(error(give(&stage, &admin, ("admin", &role, Some("main"))).await), LAST);
        assert_eq!(stage.snapshot().await, before);
        data(give(&stage, &admin, ("newcomer", &role, None)).await);
    }
    // what a later rule gives back is not taken
    stage
        .give_rules(&HILLTOP, "moses.balikowa", 59, &[("MANAGE", "ALL", "deny", None)])
        .await;
    data(give(&stage, &admin, ("admin", "moses.balikowa, rank 59", None)).await);
    stage.finish().await;
}

/// Nobody comes to be one who does not count as one: moving somebody and leaving a campus changes nothing.
#[tokio::test]
async fn stays_one_on_another_campus() {
    let stage = Stage::new().await;
    let admin = of(&stage, "admin").await;
    let args = json!({"targetStaffId": HILLTOP.staff("admin"), "campusId": HILLTOP.campus("lakeside")});
    data(stage.call(&admin, "update_staff_member", args).await);
    let admin = of(&stage, "admin").await;
    assert_eq!(error(revoke(&stage, &admin, ADMIN).await), LAST);
    data(give(&stage, &admin, ("newcomer", "school_admin", None)).await);
    stage.finish().await;
}

#[tokio::test]
async fn role_is_taken_as_it_is_held() {
    let stage = Stage::new().await;
    let admin = of(&stage, "admin").await;
    let before = stage.snapshot().await;
    let elsewhere =
        "That member of staff does not hold this role without a campus. get_staff_member shows where it is held.";
    for (held, refused) in [
        (("newcomer", "clerk", None), elsewhere),
        (("head", "head_teacher", None), elsewhere),
        (
            ("head", "head_teacher", Some("lakeside")),
            "That member of staff does not hold this role on that campus.",
        ),
        (("head", "wizard", None), NO_ROLE),
    ] {
        assert_eq!(error(revoke(&stage, &admin, held).await), refused, "{held:?}");
    }
    assert_eq!(stage.snapshot().await, before);
    let taken = data(revoke(&stage, &admin, ("head", "HEAD_TEACHER", Some("main"))).await);
    assert_eq!(
        (&taken["role"], &taken["campusName"], &taken["staffName"]),
        (&json!("head_teacher"), &json!("Main"), &json!("Samuel Okello"))
    );
    let head = of(&stage, "head").await;
    let refused = error(stage.call(&head, "list_staff", json!({})).await);
    assert_eq!(refused, "Permission denied: you may not LIST STAFF.");
    // somebody who has left may be left with nothing
    data(revoke(&stage, &admin, ("left", "class_teacher", None)).await);
    stage.finish().await;
}

/// fault 7, the other way round
#[tokio::test]
async fn role_is_taken_by_whoever_could_give_it() {
    let stage = Stage::new().await;
    let admin = of(&stage, "admin").await;
    let head = of(&stage, "head").await;
    data(give(&stage, &admin, ("newcomer", "school_admin", None)).await);
    data(give(&stage, &admin, ("newcomer", "clerk", Some("main"))).await);
    let before = stage.snapshot().await;
    for (held, refused) in [
        (("newcomer", "school_admin", None), ROLE_TOO_HIGH),
        (("head", "school_admin", None), ROLE_TOO_HIGH),
        (("isaac.ocen", "subject_teacher", None), "Staff member not found."),
        (("clerk", "clerk", None), "Staff member not found."),
    ] {
        assert_eq!(error(revoke(&stage, &head, held).await), refused, "{held:?}");
    }
    assert_eq!(stage.snapshot().await, before);
    data(revoke(&stage, &head, ("newcomer", "clerk", Some("main"))).await);
    stage.finish().await;
}

/// A role that forbids gives something when it goes.
#[tokio::test]
async fn role_that_forbids_is_taken_by_whoever_holds_what_it_lifts() {
    let stage = Stage::new().await;
    let admin = of(&stage, "admin").await;
    let manager = [("MANAGE", "ROLE", "allow", None), ("LIST", "STUDENT", "allow", None)];
    stage.give_rules(&HILLTOP, "moses.balikowa", 70, &manager).await;
    stage
        .give_rules(&HILLTOP, "newcomer", 80, &[("DELETE", "STAFF", "deny", None)])
        .await;
    stage
        .give_rules(&HILLTOP, "newcomer", 65, &[("MANAGE", "STAFF", "allow", None)])
        .await;
    let moses = of(&stage, "moses.balikowa").await;
    let role = ("newcomer", "newcomer, rank 80", None);
    let before = stage.snapshot().await;
    assert_eq!(
        error(revoke(&stage, &moses, role).await),
        "Permission denied: without that role the person's others would allow more than you may do yourself."
    );
    assert_eq!(stage.snapshot().await, before);
    data(revoke(&stage, &admin, role).await);
    stage.finish().await;
}
