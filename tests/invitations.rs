//! Invitations: somebody joins the staff by their address, whose account is one in the whole installation.

use contract::AgentToolResult;
use e2e::{
    Person, Stage,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error},
};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, Row as _};
use uuid::Uuid;

const ON_STAFF: &str = "Somebody with that address is on the staff of this school already.";
const REFUSED: &str = "That address cannot be invited.";

async fn invite(stage: &Stage, person: &Person, email: &str, campus: Option<Uuid>) -> AgentToolResult {
    let mut args = json!({"email": email, "name": "Naomi Adongo"});
    if let Some(campus) = campus {
        args["campusId"] = json!(campus);
    }
    stage.call(person, "invite_staff_member", args).await
}

async fn admin(stage: &Stage) -> Person {
    stage.person(&HILLTOP.email("admin")).await
}

#[tokio::test]
async fn open_an_account_that_has_no_role() {
    let stage = Stage::new().await;
    let main = HILLTOP.campus("main");
    let joined = data(invite(&stage, &admin(&stage).await, "Naomi.Adongo@Staff.example", Some(main)).await);
    assert_eq!(
        (
            &joined["email"],
            &joined["name"],
            &joined["campusName"],
            &joined["active"]
        ),
        (
            &json!("naomi.adongo@staff.example"),
            &json!("Naomi Adongo"),
            &json!("Main"),
            &json!(true)
        )
    );
    let naomi = stage.person("naomi.adongo@staff.example").await;
    assert_eq!(naomi.identity.user_type.as_str(), "STAFF");
    let refused = error(stage.call(&naomi, "list_staff", json!({})).await);
    assert_eq!(refused, "Permission denied: you may not LIST STAFF.");
    data(stage.call(&naomi, "list_announcements", json!({})).await);
    stage.finish().await;
}

#[tokio::test]
async fn go_as_far_as_the_rules_of_whoever_invites() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let pinned = stage.person_on(&HILLTOP.email("admin"), "lakeside").await;
    let before = stage.snapshot().await;
    for (campus, refused) in [
        (
            None,
            "Permission denied: you may not add staff of the whole school; name a campus.",
        ),
        (Some(HILLTOP.campus("lakeside")), "Campus not found."),
        (Some(RIVERSIDE.campus("north")), "Campus not found."),
        (Some(Uuid::now_v7()), "Campus not found."),
    ] {
        assert_eq!(
            error(invite(&stage, &head, "naomi@staff.example", campus).await),
            refused
        );
    }
    assert_eq!(stage.snapshot().await, before);
    let here = data(invite(&stage, &head, "naomi@staff.example", Some(HILLTOP.campus("main"))).await);
    assert_eq!(here["campusName"], "Main");
    let there = data(invite(&stage, &pinned, "peter@staff.example", Some(HILLTOP.campus("main"))).await);
    assert_eq!(
        there["campusName"], "Lakeside",
        "the pinned one, whatever the model names"
    );
    let everywhere = data(invite(&stage, &admin(&stage).await, "sarah@staff.example", None).await);
    assert_eq!(everywhere["campusId"], Value::Null);
    stage.finish().await;
}

#[tokio::test]
async fn are_refused_for_whoever_is_on_the_staff_or_was() {
    let stage = Stage::new().await;
    let admin = admin(&stage).await;
    let before = stage.snapshot().await;
    for email in ["newcomer@hilltop.example", "NEWCOMER@Hilltop.Example"] {
        assert_eq!(error(invite(&stage, &admin, email, None).await), ON_STAFF, "{email}");
    }
    assert_eq!(
        error(invite(&stage, &admin, "left@hilltop.example", None).await),
        "Somebody with that address was on the staff of this school and has left; they cannot be invited again."
    );
    // an operator, and an account of another school that is closed
    for email in ["platform@operator.example", "left@riverside.example"] {
        assert_eq!(error(invite(&stage, &admin, email, None).await), REFUSED, "{email}");
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

/// An account of another school is joined: nothing of it changes, and it keeps what it was there.
#[tokio::test]
async fn join_an_account_of_another_school_as_it_is() {
    let stage = Stage::new().await;
    let account = "SELECT md5(string_agg(row(u.id, u.email, u.name, u.type, u.active, u.created_at)::text, '' ORDER BY u.id)) FROM users u";
    let before: String = sqlx::query(account)
        .fetch_one(&mut stage.owner().await)
        .await
        .unwrap()
        .get(0);
    let joined = data(invite(&stage, &admin(&stage).await, "head@riverside.example", None).await);
    assert_ne!(joined["name"], "Naomi Adongo", "the account's own name");
    let after: String = sqlx::query(account)
        .fetch_one(&mut stage.owner().await)
        .await
        .unwrap()
        .get(0);
    assert_eq!(after, before);
    assert_eq!(
        stage
            .count(
                "SELECT count(*) FROM staff s JOIN users u ON u.id = s.user_id WHERE u.email = 'head@riverside.example'"
            )
            .await,
        2
    );
    stage.finish().await;
}

/// Among all letters there are others that fold to those of somebody else's address: the Kelvin sign is no k, nor a wide n an n.
#[tokio::test]
async fn fold_no_letter_into_anothers_address() {
    let stage = Stage::new().await;
    let admin = admin(&stage).await;
    let before = stage.snapshot().await;
    for email in [
        "cler\u{212a}@hilltop.example",
        "adm\u{130}n@hilltop.example",
        "\u{ff4e}ewcomer@hilltop.example",
        "ÉDITH@hilltop.example",
        "e\u{301}dith@hilltop.example",
        // what is not seen makes one address look like another
        "clerk\u{200b}@hilltop.example",
        "cl\u{ad}erk@hilltop.example",
        "\u{202e}clerk@hilltop.example",
        "clerk@hilltop\u{2060}.example",
        "clerk@hilltop.example\u{e0041}",
        "clerk\u{1b}[2j@hilltop.example",
        "clerk\u{9b}2j@hilltop.example",
        "clerk\u{7f}@hilltop.example",
    ] {
        assert_eq!(
            error(invite(&stage, &admin, email, None).await),
            "Invalid tool arguments: email: write its letters small and plain, as the person signs in with them",
            "{email}"
        );
    }
    for email in [
        "",
        "a",
        "a@",
        "@b",
        "a b@c.example",
        "a\u{a0}@c.example",
        "a\u{3000}@c.example",
        "a@b@c.example",
        "a@b.example\n",
    ] {
        let refused = error(invite(&stage, &admin, email, None).await);
        assert!(
            refused.starts_with("Invalid tool arguments: email: "),
            "{email:?}: {refused}"
        );
    }
    assert_eq!(stage.snapshot().await, before);
    data(invite(&stage, &admin, "édith@hilltop.example", None).await);
    stage.finish().await;
}

#[tokio::test]
async fn of_one_address_at_once_are_one() {
    let stage = Stage::new().await;
    let admin = admin(&stage).await;
    let head = stage.person(&HILLTOP.email("head")).await;
    // each in another turn: one turn asks for the same once
    let later = (
        stage.person(&HILLTOP.email("admin")).await,
        stage.person(&HILLTOP.email("head")).await,
    );
    let main = Some(HILLTOP.campus("main"));
    let (a, b, c, d) = tokio::join!(
        invite(&stage, &admin, "naomi@staff.example", main),
        invite(&stage, &head, "naomi@staff.example", main),
        invite(&stage, &later.0, "naomi@staff.example", main),
        invite(&stage, &later.1, "naomi@staff.example", main),
    );
    let (joined, told): (Vec<_>, Vec<_>) = [a, b, c, d].into_iter().partition(AgentToolResult::is_data);
    assert_eq!(joined.len(), 1, "{joined:?}");
    for refused in told {
        assert_eq!(error(refused), ON_STAFF);
    }
    assert_eq!(
        stage
            .count("SELECT count(*) FROM users WHERE name = 'Naomi Adongo'")
            .await,
        1
    );
    // two schools at once: one account, on both staffs
    let other = stage.person(&RIVERSIDE.email("admin")).await;
    let (here, there) = tokio::join!(
        invite(&stage, &admin, "peter@staff.example", None),
        invite(&stage, &other, "peter@staff.example", None),
    );
    data(here);
    data(there);
    assert_eq!(
        stage
            .count("SELECT count(*) FROM users WHERE email = 'peter@staff.example'")
            .await,
        1
    );
    stage.finish().await;
}

/// Whoever is invited by a second school keeps their name in both.
#[tokio::test]
async fn give_no_school_the_name_of_anothers_account() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    data(invite(&stage, &admin, &RIVERSIDE.email("clerk"), None).await);
    let theirs = "SELECT s.id FROM staff s JOIN users u ON u.id = s.user_id WHERE u.email = 'clerk@riverside.example' AND s.school_id = $1";
    let theirs: Uuid = sqlx::query_scalar(theirs)
        .bind(HILLTOP.id())
        .fetch_one(&mut stage.owner().await)
        .await
        .unwrap();
    let rename = |staff: Uuid| json!({"targetStaffId": staff, "name": "Somebody Else"});
    let before = stage.snapshot().await;
    let refused = error(stage.call(&admin, "update_staff_member", rename(theirs)).await);
    assert_eq!(refused, "The name of that account is not this school's to change.");
    let at_home = stage.person(&RIVERSIDE.email("admin")).await;
    let refused = error(
        stage
            .call(&at_home, "update_staff_member", rename(RIVERSIDE.staff("clerk")))
            .await,
    );
    assert_eq!(refused, "The name of that account is not this school's to change.");
    assert_eq!(stage.snapshot().await, before);
    data(
        stage
            .call(&admin, "update_staff_member", rename(HILLTOP.staff("newcomer")))
            .await,
    );
    stage.finish().await;
}

/// What the server's role may do of its own is open or find an account, and nothing else with accounts.
#[tokio::test]
async fn leave_other_accounts_out_of_reach() {
    let stage = Stage::new().await;
    let mut app = PgConnection::connect(stage.config().roles.app.reveal()).await.unwrap();
    let app = &mut app;
    for attempt in [
        "INSERT INTO users (email, name, type) VALUES ('a@b.example', 'A', 'PLATFORM_ADMIN')",
        "UPDATE users SET email = 'a@b.example'",
        "UPDATE users SET type = 'PLATFORM_ADMIN'",
        "DELETE FROM users",
        "INSERT INTO staff (school_id, user_id, active) VALUES (uuid_v7(), uuid_v7(), true)",
        "UPDATE staff SET active = true",
        "DELETE FROM staff",
        "UPDATE user_roles SET campus_id = NULL",
    ] {
        let refused = sqlx::query(attempt).execute(&mut *app).await.unwrap_err().to_string();
        assert!(refused.contains("permission denied"), "{attempt}: {refused}");
    }
    let found: Option<Uuid> = sqlx::query_scalar("SELECT open_account('head@riverside.example', 'Somebody')")
        .fetch_one(&mut *app)
        .await
        .unwrap();
    let seen: i64 = sqlx::query_scalar("SELECT count(*) FROM users")
        .fetch_one(&mut *app)
        .await
        .unwrap();
    assert!(found.is_some() && seen == 0, "an id, and no row");
    stage.finish().await;
}
