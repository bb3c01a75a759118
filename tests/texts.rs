//! Texts: what people write is stored and returned byte for byte, whatever it is, or refused in words.

use contract::AgentToolResult;
use e2e::{
    Person, Stage,
    fixtures::HILLTOP,
    stage::{data, error},
};
use serde_json::{Value, json};

/// Strings that broke other people's programs; `data/README.md` says whose they are.
fn naughty() -> Vec<String> {
    let texts: Vec<String> = serde_json::from_str(include_str!("data/blns.json")).unwrap();
    assert_eq!(texts.len(), 515);
    texts
}

/// A text that may be a name of this length: not too long, and not blank, as JSON Schema's patterns know blanks.
fn fits(text: &str, most: usize) -> bool {
    let is_blank = |one: char| one == '\u{feff}' || (one.is_whitespace() && one != '\u{85}');
    (1..=most).contains(&text.chars().count()) && !text.chars().all(is_blank)
}

/// Asserts that a text came back as it was, or was refused for what it is; answers which.
fn unharmed(result: AgentToolResult, member: &str, text: &str, most: usize) -> bool {
    match result {
        AgentToolResult::Data { data, .. } => {
            assert_eq!(data[member], text, "it came back otherwise");
            true
        }
        AgentToolResult::Error { error } => {
            assert!(
                error.starts_with(&format!("Invalid tool arguments: {member}: ")),
                "{text:?}: {error}"
            );
            assert!(!fits(text, most), "{text:?} was refused: {error}");
            false
        }
        pending @ AgentToolResult::Pending { .. } => panic!("{text:?}: {pending:?}"),
    }
}

async fn head(stage: &Stage) -> Person {
    stage.person(&HILLTOP.email("head")).await
}

#[tokio::test]
async fn are_names_of_departments_as_they_were_written() {
    let stage = Stage::new().await;
    let head = head(&stage).await;
    let (mut stored, mut taken) = (0, 0);
    for text in naughty() {
        let result = stage.call(&head, "create_department", json!({"name": text})).await;
        if result == AgentToolResult::error("A department of that name exists on this campus.") {
            taken += 1;
            continue;
        }
        if !unharmed(result.clone(), "name", &text, 120) {
            continue;
        }
        stored += 1;
        let id = data(result)["id"].clone();
        let shown = data(stage.call(&head, "get_department", json!({"departmentId": id})).await);
        assert_eq!(shown["name"], text);
    }
    assert!(stored > 400 && taken < 40, "{stored} stored, {taken} taken");
    assert_eq!(stage.audit_rows().await, stored);
    let same = "SELECT count(*) FROM audit_log a JOIN departments d ON d.id = a.resource_id AND a.arguments ->> 'name' = d.name";
    assert_eq!(stage.count(same).await, stored, "and in the trail as well");
    stage.finish().await;
}

#[tokio::test]
async fn are_changed_to_what_was_written() {
    let stage = Stage::new().await;
    let head = head(&stage).await;
    let department = HILLTOP.department_id();
    let (target, mut stored) = (HILLTOP.staff("newcomer"), 0);
    for text in naughty() {
        let rename = json!({"departmentId": department, "name": text});
        unharmed(stage.call(&head, "update_department", rename).await, "name", &text, 120);
        let describe = json!({"departmentId": department, "description": text});
        let described = stage.call(&head, "update_department", describe).await;
        if unharmed(described, "description", &text, 1000) {
            stored += 1;
            let shown = data(
                stage
                    .call(&head, "get_department", json!({"departmentId": department}))
                    .await,
            );
            assert_eq!(shown["description"], text);
        }
        for member in ["name", "title"] {
            let mut change = json!({"targetStaffId": target});
            change[member] = json!(text);
            let changed = stage.call(&head, "update_staff_member", change).await;
            unharmed(changed, member, &text, 200);
        }
    }
    assert!(stored > 400, "{stored}");
    stage.finish().await;
}

/// Texts that are looked for find nothing, and break nothing.
#[tokio::test]
async fn are_looked_for_as_they_are() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let args = json!({"name": "Drama", "campusId": HILLTOP.campus("main")});
    data(stage.call(&admin, "create_department", args).await);
    let before = stage.snapshot().await;
    for text in naughty() {
        for member in ["actorEmail", "resourceType"] {
            let mut filter = json!({});
            filter[member] = json!(text);
            match stage.call(&admin, "list_audit_entries", filter).await {
                AgentToolResult::Data { data, .. } => assert_eq!(data["rows"], json!([]), "{member} {text:?}"),
                AgentToolResult::Error { error } => {
                    assert!(
                        error.starts_with(&format!("Invalid tool arguments: {member}: ")),
                        "{text:?}: {error}"
                    );
                }
                pending @ AgentToolResult::Pending { .. } => panic!("{text:?}: {pending:?}"),
            }
        }
        let role = json!({"targetStaffId": HILLTOP.staff("newcomer"), "role": text});
        let refused = error(stage.call(&admin, "assign_staff_role", role).await);
        if fits(&text, 120) {
            let none = "Invalid tool arguments: role: there is no such role; there are: ";
            assert!(refused.starts_with(none), "{text:?}: {refused}");
        } else {
            assert!(
                refused.starts_with("Invalid tool arguments: role: "),
                "{text:?}: {refused}"
            );
        }
        let cursor = error(stage.call(&admin, "list_departments", json!({"cursor": text})).await);
        assert!(
            cursor.starts_with("Invalid tool arguments: cursor: "),
            "{text:?}: {cursor}"
        );
    }
    assert_eq!(stage.snapshot().await, before);
    let found = json!({"actorEmail": "admin@hilltop.example"});
    assert_eq!(
        data(stage.call(&admin, "list_audit_entries", found).await)["rows"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    stage.finish().await;
}

#[tokio::test]
async fn with_a_nul_are_refused_wherever_they_stand() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let campus = HILLTOP.campus("main");
    let before = stage.snapshot().await;
    for (tool, args, place) in [
        ("create_department", json!({"name": "A\0B", "campusId": campus}), "name"),
        (
            "create_department",
            json!({"name": "A", "description": "\0", "campusId": campus}),
            "description",
        ),
        (
            "update_department",
            json!({"departmentId": HILLTOP.department_id(), "name": "\0A"}),
            "name",
        ),
        (
            "update_staff_member",
            json!({"targetStaffId": HILLTOP.staff("newcomer"), "title": "A\0"}),
            "title",
        ),
        (
            "assign_staff_role",
            json!({"targetStaffId": HILLTOP.staff("newcomer"), "role": "clerk\0"}),
            "role",
        ),
        (
            "list_audit_entries",
            json!({"actorEmail": "a\0@b.example"}),
            "actorEmail",
        ),
        ("list_audit_entries", json!({"resourceType": "STAFF\0"}), "resourceType"),
        ("list_departments", json!({"cursor": "\0"}), "cursor"),
    ] {
        let refused = error(stage.call(&admin, tool, args).await);
        let expected = format!("Invalid tool arguments: {place}: a NUL character is not allowed");
        assert_eq!(refused, expected, "{tool}");
    }
    assert_eq!(stage.snapshot().await, before);
    data(
        stage
            .call(&admin, "create_department", json!({"name": "A␀B", "campusId": campus}))
            .await,
    );
    stage.finish().await;
}

#[tokio::test]
async fn are_as_long_as_they_may_be_in_characters_and_no_longer() {
    let stage = Stage::new().await;
    let head = head(&stage).await;
    let create = |name: String, description: String| {
        stage.call(
            &head,
            "create_department",
            json!({"name": name, "description": description}),
        )
    };
    for one in ["x", "é", "数", "🎭"] {
        let longest = data(create(one.repeat(120), one.repeat(1000)).await);
        assert_eq!(longest["name"], one.repeat(120));
        assert_eq!(longest["description"], one.repeat(1000));
        let refused = error(create(one.repeat(121), one.repeat(1001)).await);
        assert!(
            refused.contains("name: ") && refused.contains("description: "),
            "{refused}"
        );
        assert!(!refused.contains(&one.repeat(100)), "the value is not echoed");
    }
    assert_eq!(stage.audit_rows().await, 4);
    stage.finish().await;
}

/// Two ways to write one letter are two texts.
#[tokio::test]
async fn are_not_normalised() {
    let stage = Stage::new().await;
    let head = head(&stage).await;
    for name in [
        "caf\u{e9}",
        "cafe\u{301}",
        "ﬁne",
        "fine",
        "Straße",
        "strasse",
        "  edged  ",
        "a\tb\r\nc",
    ] {
        let created = data(stage.call(&head, "create_department", json!({"name": name})).await);
        assert_eq!(created["name"], Value::from(name));
    }
    assert_eq!(stage.audit_rows().await, 8);
    stage.finish().await;
}
