//! Who may do what on which campus: roles, pins, departments, and the order of rules.

use crate::registry::snapshot::assert_committed;
use contract::{AgentToolResult, RpcTool, tools::RPC_AGENT_TOOLS};
use e2e::{
    Person, Stage,
    fixtures::{HILLTOP, HILLTOP_LAKESIDE, School},
    stage::{data, error},
};
use serde_json::{Value, json};
use server::error::MASKED_ERROR;
use std::{collections::BTreeSet, fmt::Write as _};
use uuid::Uuid;

const PEOPLE: [&str; 12] = [
    "platform",
    "admin",
    "head",
    "harriet.namara",
    "clerk",
    "class.teacher",
    "subject.teacher",
    "both.hats",
    "dos",
    "lakeside.teacher",
    "moses.balikowa",
    "newcomer",
];

/// The example of a tool about a campus, which it names wherever the tool takes one.
fn about(school: &School, tool: &RpcTool) -> Value {
    let mut args = school.example(tool);
    if tool.schema()["properties"].get("campusId").is_some() {
        args["campusId"] = json!(school.campus(school.first_campus));
    }
    args
}

/// Whether a call was admitted, on a stage where a write gets no further than to its audit row.
fn admitted(result: &AgentToolResult) -> Option<bool> {
    match result {
        AgentToolResult::Data { .. } => Some(true),
        AgentToolResult::Error { error } if error == MASKED_ERROR => Some(true),
        AgentToolResult::Error { error } if error.starts_with("Permission denied: ") => Some(false),
        AgentToolResult::Error { error } if error.ends_with(" not found.") => Some(false),
        AgentToolResult::Error { .. } | AgentToolResult::Pending { .. } => None,
    }
}

async fn cell(stage: &Stage, person: &Person, tool: &RpcTool) -> &'static str {
    let name = tool.definition.name;
    let here = stage.call(person, name, about(&HILLTOP, tool)).await;
    let there = stage.call(person, name, about(&HILLTOP_LAKESIDE, tool)).await;
    match (admitted(&here), admitted(&there)) {
        (Some(true), Some(true)) => "both",
        (Some(true), Some(false)) => "main",
        (Some(false), Some(true)) => "lakeside",
        (Some(false), Some(false)) => "-",
        _ => "n/a",
    }
}

const ABOUT_THE_TABLE: &str = "\
# Who of the seeded people of Hilltop Academy may use which tool about a row of which campus: Main, Lakeside, both or neither (-).
# A tool that is about no campus says both or neither. \"n/a\": nothing to do with permission (an operator has no school).
# `authorization::is_as_the_committed_table_says` writes it, where `UPDATE_SNAPSHOTS` is set, and compares it.
";

#[tokio::test]
async fn is_as_the_committed_table_says() {
    let stage = Stage::new().await;
    let mut people = Vec::new();
    for who in PEOPLE {
        let email = if who == "platform" {
            "platform@operator.example".to_owned()
        } else {
            HILLTOP.email(who)
        };
        people.push(stage.person(&email).await);
    }
    stage
        .arrange(
            "CREATE FUNCTION refuse_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no further'; END $$;
             CREATE TRIGGER stop BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_it()",
        )
        .await;
    let mut table = format!("{:<23}", "");
    table.extend(PEOPLE.map(|who| format!(" {who:<16}")));
    for tool in RPC_AGENT_TOOLS {
        write!(table, "\n{:<23}", tool.definition.name).unwrap();
        for person in &people {
            write!(table, " {:<16}", cell(&stage, person, tool).await).unwrap();
        }
    }
    let lines = table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_committed("tests/data/who_may_what.txt", &format!("{ABOUT_THE_TABLE}{lines}\n"));
    assert_eq!(stage.audit_rows().await, 0);
    stage.finish().await;
}

fn ids(page: &Value) -> BTreeSet<Uuid> {
    let rows = page["rows"].as_array().unwrap();
    rows.iter()
        .map(|row| row["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

/// A rule of a test: whether it allows, and the only campus that it is about.
type Sketch = (bool, Option<Option<Uuid>>);

/// The last rule that matches decides.
fn expected(rules: &[Sketch], campus: Uuid) -> bool {
    let about = |(_, condition): &&Sketch| condition.is_none_or(|only| only == Some(campus));
    rules.iter().rev().find(about).is_some_and(|(allows, _)| *allows)
}

/// fault 52: a list is what can be read one by one, whatever the order of the rules
#[tokio::test]
async fn lists_what_it_allows_one_by_one() {
    let stage = Stage::new().await;
    let (main, lakeside) = (HILLTOP.campus("main"), HILLTOP.campus("lakeside"));
    let conditions = [None, Some(Some(main)), Some(Some(lakeside)), Some(None)];
    let sketches: Vec<Sketch> = conditions
        .into_iter()
        .flat_map(|only| [(true, only), (false, only)])
        .collect();
    let departments: Vec<(Uuid, Uuid)> = sqlx::query_as("SELECT id, campus_id FROM departments WHERE school_id = $1")
        .bind(HILLTOP.id())
        .fetch_all(&mut stage.owner().await)
        .await
        .unwrap();
    assert_eq!(departments.len(), 8);
    let newcomer = stage.person(&HILLTOP.email("newcomer")).await;
    stage.give_rules(&HILLTOP, "newcomer", 70, &[]).await;
    for (at, &first) in sketches.iter().enumerate() {
        for &second in &sketches {
            // the third runs through all as the others do
            let rules = [(true, sketches[at].1), first, second];
            replace_rules(&stage, &rules).await;
            let right: BTreeSet<Uuid> = departments
                .iter()
                .filter(|row| expected(&rules, row.1))
                .map(|row| row.0)
                .collect();
            let listed = match stage.call(&newcomer, "list_departments", json!({})).await {
                AgentToolResult::Data { data, .. } => ids(&data),
                AgentToolResult::Error { .. } | AgentToolResult::Pending { .. } => BTreeSet::new(),
            };
            assert_eq!(listed, right, "{rules:?}");
            for (id, _) in &departments {
                let one = stage
                    .call(&newcomer, "get_department", json!({"departmentId": id}))
                    .await;
                assert_eq!(one.is_data(), right.contains(id), "{rules:?}");
            }
        }
    }
    stage.finish().await;
}

async fn replace_rules(stage: &Stage, rules: &[Sketch]) {
    let mut statement =
        "DELETE FROM role_permissions WHERE role_id = (SELECT id FROM roles WHERE rank = 70);".to_owned();
    for (position, (allows, condition)) in rules.iter().enumerate() {
        let effect = if *allows { "allow" } else { "deny" };
        let condition = condition.map_or("null".to_owned(), |only| format!("'{}'", json!({"campusId": only})));
        for (offset, action) in ["READ", "LIST"].into_iter().enumerate() {
            write!(
                statement,
                "INSERT INTO role_permissions (school_id, role_id, position, action, resource, effect, condition)
                 SELECT school_id, id, {}, '{action}', 'DEPARTMENT', '{effect}', {condition} FROM roles WHERE rank = 70;",
                position * 2 + offset
            )
            .unwrap();
        }
    }
    stage.arrange(&statement).await;
}

/// fault 48's like: the pin wins, whatever the model wrote
#[tokio::test]
async fn goes_by_the_pinned_campus_and_not_by_the_arguments() {
    let stage = Stage::new().await;
    let (main, lakeside) = (json!(HILLTOP.campus("main")), json!(HILLTOP.campus("lakeside")));
    let admin = stage.person_on(&HILLTOP.email("admin"), "main").await;
    let call = |tool: &'static str, args: Value| stage.call(&admin, tool, args);

    let created = data(call("create_department", json!({"name": "Drama", "campusId": lakeside})).await);
    assert_eq!(created["campusId"], main);
    for tool in ["list_departments", "list_campus_staff", "get_academic_calendar"] {
        let rows = data(call(tool, json!({"campusId": lakeside})).await)["rows"].clone();
        let rows = rows.as_array().unwrap();
        assert!(
            !rows.is_empty() && rows.iter().all(|row| row["campusId"] == main),
            "{tool}: {rows:?}"
        );
    }
    let there = json!({"departmentId": HILLTOP_LAKESIDE.department_id()});
    assert_eq!(
        error(call("get_department", there.clone()).await),
        "Department not found."
    );
    assert_eq!(error(call("delete_department", there).await), "Department not found.");
    let moved = json!({"targetStaffId": HILLTOP.staff("newcomer"), "campusId": lakeside});
    assert_eq!(data(call("update_staff_member", moved).await)["campusId"], main);
    let given = json!({"targetStaffId": HILLTOP.staff("newcomer"), "role": "clerk", "campusId": lakeside});
    assert_eq!(data(call("assign_staff_role", given).await)["campusId"], main);
    let campuses: Vec<Option<Uuid>> =
        sqlx::query_scalar("SELECT campus_id FROM audit_log WHERE event <> 'decide.approval'")
            .fetch_all(&mut stage.owner().await)
            .await
            .unwrap();
    assert_eq!(campuses, [Some(HILLTOP.campus("main")); 3]);

    // unpinned, the same arguments go where they say
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let created = stage
        .call(
            &admin,
            "create_department",
            json!({"name": "Drama", "campusId": lakeside}),
        )
        .await;
    assert_eq!(data(created)["campusId"], lakeside);
    stage.finish().await;
}

/// What members of a department may do counts on its campus only, and less than any role.
#[tokio::test]
async fn of_a_department_is_its_members_on_its_campus_until_a_role_denies_it() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let newcomer = stage.person(&HILLTOP.email("newcomer")).await;
    let list = || stage.call(&newcomer, "list_departments", json!({}));
    let denied = "Permission denied: you may not LIST DEPARTMENT.";
    assert_eq!(error(list().await), denied);

    let permissions = json!([{"action": "LIST", "resource": "DEPARTMENT"}]);
    let change = json!({"departmentId": HILLTOP.department_id(), "permissions": permissions});
    data(stage.call(&admin, "update_department", change).await);
    let rows = data(list().await)["rows"].clone();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["campusId"] == json!(HILLTOP.campus("main"))));
    // nobody else has it
    let moses = stage.person(&HILLTOP.email("moses.balikowa")).await;
    assert_eq!(error(stage.call(&moses, "list_departments", json!({})).await), denied);

    stage
        .give_rules(&HILLTOP, "newcomer", 1, &[("LIST", "DEPARTMENT", "deny", None)])
        .await;
    assert_eq!(error(list().await), denied);
    stage.finish().await;
}

/// fault 51, for what a department gives
#[tokio::test]
async fn of_a_department_ends_with_the_membership() {
    let stage = Stage::new().await;
    stage
        .arrange("UPDATE department_permissions SET resource = 'DEPARTMENT' WHERE action = 'LIST' AND resource = 'LESSON_TEMPLATE'")
        .await;
    let newcomer = stage.person(&HILLTOP.email("newcomer")).await;
    let list = || stage.call(&newcomer, "list_departments", json!({}));
    data(list().await);
    stage.arrange("DELETE FROM department_members").await;
    assert_eq!(error(list().await), "Permission denied: you may not LIST DEPARTMENT.");
    stage.finish().await;
}

/// A role that is held on a campus reaches no further, and `$own` in it means that campus.
#[tokio::test]
async fn of_a_role_ends_where_it_is_held() {
    let stage = Stage::new().await;
    let newcomer = stage.person(&HILLTOP.email("newcomer")).await;
    let give = |role: &str, campus: &str| {
        format!(
            "DELETE FROM user_roles WHERE staff_id = '{0}';
             INSERT INTO user_roles (school_id, staff_id, role_id, campus_id)
             SELECT school_id, '{0}', id, {campus} FROM roles WHERE name = '{role}' AND school_id = '{1}'",
            HILLTOP.staff("newcomer"),
            HILLTOP.id()
        )
    };
    let lakeside = format!("'{}'", HILLTOP.campus("lakeside"));
    let (main_ids, lakeside_ids, both) = ("main", "lakeside", "both");
    for (role, campus, expected) in [
        ("clerk", "null", both),
        ("clerk", lakeside.as_str(), lakeside_ids),
        ("class_teacher", "null", main_ids),
        ("class_teacher", lakeside.as_str(), lakeside_ids),
        ("head_teacher", "null", main_ids),
        ("head_teacher", lakeside.as_str(), lakeside_ids),
        ("school_admin", lakeside.as_str(), lakeside_ids),
    ] {
        stage.arrange(&give(role, campus)).await;
        let page = data(stage.call(&newcomer, "list_departments", json!({})).await);
        let campuses: BTreeSet<&str> = page["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                if row["campusId"] == json!(HILLTOP.campus("main")) {
                    "main"
                } else {
                    "lakeside"
                }
            })
            .collect();
        let right: BTreeSet<&str> = if expected == both {
            [main_ids, lakeside_ids].into()
        } else {
            [expected].into()
        };
        assert_eq!(campuses, right, "{role} on {campus}");
    }
    stage.finish().await;
}
