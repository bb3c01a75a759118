//! What every tool owes, proven by walking the registry. Nothing here knows any one tool.

pub(crate) mod ids;

use contract::{
    AgentCallScope, AgentToolResult, RpcTool, context::AgentRunModeName, tool::Placement, tools::RPC_AGENT_TOOLS,
};
use e2e::{
    Person, Stage,
    arrange::Snapshot,
    fixtures::HILLTOP,
    stage::{data, error, incoming},
};
use ids::{id_arguments, ids_of, put};
use serde_json::{Value, json};
use server::{
    error::{MASKED_ERROR, MISSING_IDENTITY_ERROR, NO_TENANT_SCOPE_ERROR},
    hooks,
    posture::Auth,
};
use uuid::Uuid;

const INACTIVE: &str = "Permission denied: this account is not active in this school.";
const CAMPUS_NOT_OPEN: &str = "Permission denied: this campus is not open to you.";

fn reads() -> impl Iterator<Item = &'static RpcTool> {
    RPC_AGENT_TOOLS.iter().filter(|tool| !is_write(tool))
}

fn writes() -> impl Iterator<Item = &'static RpcTool> {
    RPC_AGENT_TOOLS.iter().filter(|tool| is_write(tool))
}

const fn is_write(tool: &RpcTool) -> bool {
    tool.definition.event.is_mutating()
}

async fn run(stage: &Stage, person: &Person, tool: &RpcTool, args: Value) -> AgentToolResult {
    stage.call(person, tool.definition.name, args).await
}

async fn run_example(stage: &Stage, person: &Person, tool: &RpcTool) -> AgentToolResult {
    run(stage, person, tool, HILLTOP.example(tool)).await
}

async fn user_of(stage: &Stage, tool: &RpcTool) -> Person {
    stage.person(&HILLTOP.user_of(tool)).await
}

/// What somebody is told who may not: to whoever may not even read a row, it does not exist.
pub(super) fn is_refusal(text: &str) -> bool {
    text.starts_with("Permission denied: ") || text.ends_with(" not found.")
}

/// Calls each tool's example as its user, after a change, and expects this error and no trace.
async fn all_refused(stage: &Stage, expected: &str, change: impl AsyncFn(&Stage, Person, &RpcTool) -> AgentToolResult) {
    let before = stage.snapshot().await;
    for tool in RPC_AGENT_TOOLS {
        let user = user_of(stage, tool).await;
        let refused = error(change(stage, user, tool).await);
        assert_eq!(refused, expected, "{}", tool.definition.name);
    }
    assert_eq!(stage.snapshot().await, before);
}

#[tokio::test]
async fn runs_its_example() {
    let reading = Stage::new().await;
    for tool in reads() {
        let user = user_of(&reading, tool).await;
        let result = run_example(&reading, &user, tool).await;
        assert!(result.is_data(), "{}: {result:?}", tool.definition.name);
    }
    reading.finish().await;
    for tool in writes() {
        let stage = Stage::new().await;
        let user = user_of(&stage, tool).await;
        let result = run_example(&stage, &user, tool).await;
        assert!(result.is_data(), "{}: {result:?}", tool.definition.name);
        stage.finish().await;
    }
}

#[tokio::test]
async fn refuses_an_unknown_field() {
    let stage = Stage::new().await;
    let before = stage.snapshot().await;
    for tool in RPC_AGENT_TOOLS {
        let user = user_of(&stage, tool).await;
        let mut args = HILLTOP.example(tool);
        args["unheardOf"] = json!(true);
        let refused = error(run(&stage, &user, tool, args).await);
        assert!(
            refused.starts_with("Invalid tool arguments: ") && refused.contains("unheardOf"),
            "{}: {refused}",
            tool.definition.name
        );
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

/// fault 3
#[tokio::test]
async fn refuses_whoever_has_no_school() {
    let stage = Stage::new().await;
    all_refused(&stage, NO_TENANT_SCOPE_ERROR, async |stage, user, tool| {
        let nowhere = stage.regranted(&user, |grant| grant.identity.school_id = None);
        run_example(stage, &nowhere, tool).await
    })
    .await;
    stage.finish().await;
}

#[tokio::test]
async fn refuses_whoever_is_nobody() {
    let stage = Stage::new().await;
    for missing in ["sub", "type", "identity"] {
        all_refused(&stage, MISSING_IDENTITY_ERROR, async |stage, user, tool| {
            let mut call = incoming(&user, tool.definition.name, HILLTOP.example(tool), "1");
            match missing {
                "identity" => call.request.as_object_mut().unwrap().remove("identity"),
                member => call.request["identity"].as_object_mut().unwrap().remove(member),
            };
            stage.pipeline().execute(call).await
        })
        .await;
    }
    stage.finish().await;
}

/// fault 1: whether it was offered decides nothing
#[tokio::test]
async fn refuses_whoever_has_no_permission() {
    let stage = Stage::new().await;
    let newcomer = stage.person(&HILLTOP.email("newcomer")).await;
    let clerk = stage.person(&HILLTOP.email("clerk")).await;
    let before = stage.snapshot().await;
    for tool in RPC_AGENT_TOOLS {
        let name = tool.definition.name;
        match stage
            .pipeline()
            .handlers()
            .auth(tool.definition.event.as_str())
            .unwrap()
        {
            Auth::Casl { action, resource } => {
                let expected = format!("Permission denied: you may not {action} {resource}.");
                assert_eq!(error(run_example(&stage, &newcomer, tool).await), expected, "{name}");
                let of_clerk = run_example(&stage, &clerk, tool).await;
                assert_eq!(of_clerk.is_data(), !is_write(tool), "{name}");
                if is_write(tool) {
                    assert_eq!(error(of_clerk), expected, "{name}");
                }
            }
            Auth::Relationship { .. } if is_write(tool) => {
                for person in [&clerk, &newcomer] {
                    let refusal = error(run_example(&stage, person, tool).await);
                    assert!(is_refusal(&refusal), "{name}: {refusal}");
                }
            }
            // what these show to whom is each one's own rule
            Auth::Relationship { .. } => {}
        }
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

/// Puts each of these ids into each id argument, and all of them at once, and compares with an id that exists nowhere.
async fn as_if_nowhere(stage: &Stage, user: &Person, tool: &RpcTool, foreign: &[(String, Value)]) -> usize {
    let arguments = id_arguments(&tool.schema());
    let mut places: Vec<&[Vec<String>]> = arguments.iter().map(std::slice::from_ref).collect();
    places.push(&arguments);
    let mut compared = 0;
    for paths in places.into_iter().filter(|paths| !paths.is_empty()) {
        let with = |id: &Value| {
            let mut args = HILLTOP.example(tool);
            for path in paths {
                put(&mut args, path, id);
            }
            run(stage, user, tool, args)
        };
        let nowhere = serde_json::to_string(&with(&json!(Uuid::now_v7())).await).unwrap();
        for (table, id) in foreign {
            let reply = serde_json::to_string(&with(id).await).unwrap();
            assert_eq!(reply, nowhere, "{}: {paths:?} of {table}", tool.definition.name);
            compared += 1;
        }
    }
    compared
}

/// fault 54
#[tokio::test]
async fn knows_no_id_of_another_school() {
    let stage = Stage::new().await;
    let foreign = ids_of(&stage, &e2e::fixtures::RIVERSIDE, None).await;
    assert!(foreign.len() > 15, "{foreign:?}");
    let before = stage.snapshot().await;
    let mut compared = 0;
    for tool in RPC_AGENT_TOOLS {
        let user = user_of(&stage, tool).await;
        compared += as_if_nowhere(&stage, &user, tool, &foreign).await;
    }
    assert!(compared > 200, "{compared}");
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

/// fault 54, between the campuses of a school
#[tokio::test]
async fn knows_no_id_of_a_campus_that_is_not_the_callers() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let there = json!({"name": "Drama", "campusId": HILLTOP.campus(HILLTOP.second_campus)});
    data(stage.call(&admin, "create_department", there).await);
    let foreign = ids_of(&stage, &HILLTOP, Some(HILLTOP.second_campus)).await;
    assert!(foreign.len() > 5, "{foreign:?}");
    let head = stage.person(&HILLTOP.email("head")).await;
    let before = stage.snapshot().await;
    let mut compared = 0;
    for tool in RPC_AGENT_TOOLS {
        compared += as_if_nowhere(&stage, &head, tool, &foreign).await;
        // whoever works for the whole school is no stranger there
        if matches!(tool.definition.placement, Placement::Roles(_)) {
            let user = user_of(&stage, tool).await;
            compared += as_if_nowhere(&stage, &user, tool, &foreign).await;
        }
    }
    assert!(compared > 100, "{compared}");
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

/// Whoever taught a stream last year, and whatever is still stored about it.
#[tokio::test]
async fn knows_no_stream_of_last_year() {
    let stage = Stage::new().await;
    let mut owner = stage.owner().await;
    let streams: Vec<Uuid> = sqlx::query_scalar(
        "SELECT st.id FROM streams st
           JOIN campus_academic_years y ON y.id = st.campus_academic_year_id AND NOT y.is_current WHERE st.school_id = $1",
    )
    .bind(HILLTOP.id())
    .fetch_all(&mut owner)
    .await
    .unwrap();
    assert!(streams.len() > 1, "both campuses had one");
    let mut ended: Vec<_> = streams.iter().map(|id| ("streams".to_owned(), json!(id))).collect();
    for table in ["assessments", "lesson_plans"] {
        let query = format!("SELECT id FROM {table} WHERE stream_id = ANY($1) LIMIT 3");
        let ids: Vec<Uuid> = sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .bind(&streams)
            .fetch_all(&mut owner)
            .await
            .unwrap();
        ended.extend(ids.into_iter().map(|id| (table.to_owned(), json!(id))));
    }
    let before = stage.snapshot().await;
    for tool in RPC_AGENT_TOOLS {
        let user = user_of(&stage, tool).await;
        as_if_nowhere(&stage, &user, tool, &ended).await;
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

/// Whom only last year's stream had is shown by no relationship.
#[tokio::test]
async fn shows_no_student_of_last_year_to_who_taught_them_then() {
    let stage = Stage::new().await;
    let gone = Uuid::now_v7();
    stage
        .arrange(&format!(
            "INSERT INTO students (school_id, id, campus_id, admission_number, given_name, family_name)
             SELECT st.school_id, '{gone}', st.campus_id, 'GONE-1', 'Gone', 'Since' FROM streams st
               JOIN class_teachers t ON t.stream_id = st.id AND t.staff_id = '{}'
               JOIN campus_academic_years y ON y.id = st.campus_academic_year_id AND NOT y.is_current LIMIT 1;
             INSERT INTO enrolments (school_id, student_id, stream_id, campus_academic_year_id)
             SELECT st.school_id, '{gone}', st.id, st.campus_academic_year_id FROM streams st
               JOIN class_teachers t ON t.stream_id = st.id AND t.staff_id = '{}'
               JOIN campus_academic_years y ON y.id = st.campus_academic_year_id AND NOT y.is_current LIMIT 1",
            HILLTOP.staff("class.teacher"),
            HILLTOP.staff("class.teacher"),
        ))
        .await;
    assert_eq!(
        stage
            .count("SELECT count(*) FROM enrolments e JOIN students s ON s.id = e.student_id AND s.given_name = 'Gone'")
            .await,
        1
    );
    for tool in reads() {
        let auth = stage.pipeline().handlers().auth(tool.definition.event.as_str());
        if !matches!(auth, Some(Auth::Relationship { .. })) {
            continue;
        }
        for who in ["class.teacher", "subject.teacher", "both.hats", "dos"] {
            let person = stage.person(&HILLTOP.email(who)).await;
            let shown = serde_json::to_string(&run_example(&stage, &person, tool).await).unwrap();
            assert!(
                !shown.contains(&gone.to_string()),
                "{} shows {who} {shown}",
                tool.definition.name
            );
        }
    }
    stage.finish().await;
}

/// The database lets an account be read only by whom it then refuses a write, with exactly that reason.
const ONLY_FOR_READERS: &str = "
    CREATE TABLE probe (at timestamptz NOT NULL DEFAULT now());
    GRANT INSERT ON probe TO school_app, school_platform;
    CREATE FUNCTION may_not_write() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
        BEGIN
            INSERT INTO probe DEFAULT VALUES;
        EXCEPTION WHEN read_only_sql_transaction THEN
            RETURN true;
        END;
        RAISE EXCEPTION 'a write was let through';
    END $$;
    ALTER TABLE users RENAME TO accounts;
    CREATE VIEW users WITH (security_invoker = true) AS SELECT * FROM accounts WHERE may_not_write();
    GRANT SELECT, UPDATE ON users TO school_app, school_platform;";

#[tokio::test]
async fn that_reads_cannot_write() {
    let stage = Stage::new().await;
    let operator = stage.person("platform@operator.example").await;
    let mut users = Vec::new();
    for tool in RPC_AGENT_TOOLS {
        users.push((tool, user_of(&stage, tool).await));
    }
    stage.arrange(ONLY_FOR_READERS).await;
    for (tool, user) in &users {
        let result = run_example(&stage, user, tool).await;
        assert_eq!(
            result.is_data(),
            !is_write(tool),
            "{}: {result:?}",
            tool.definition.name
        );
        if is_write(tool) {
            assert_eq!(error(result), MASKED_ERROR);
        }
        let result = run_example(&stage, &operator, tool).await;
        let masked = result == AgentToolResult::error(MASKED_ERROR);
        assert_eq!(masked, is_write(tool), "{} unscoped: {result:?}", tool.definition.name);
    }
    assert_eq!(stage.audit_rows().await, 0);
    stage.finish().await;
}

#[tokio::test]
async fn refuses_whoever_has_left() {
    for statement in [
        "UPDATE staff SET active = false",
        "UPDATE users SET active = false",
        "UPDATE users SET type = 'PLATFORM_ADMIN'",
    ] {
        let stage = Stage::new().await;
        let mut users = Vec::new();
        for tool in RPC_AGENT_TOOLS {
            users.push((tool, user_of(&stage, tool).await));
        }
        stage.arrange(statement).await;
        let before = stage.snapshot().await;
        for (tool, user) in &users {
            let refused = error(run_example(&stage, user, tool).await);
            assert_eq!(refused, INACTIVE, "{} after {statement}", tool.definition.name);
        }
        assert_eq!(stage.snapshot().await, before);
        stage.finish().await;
    }
}

/// fault 51: a turn keeps nothing of what its person could do
#[tokio::test]
async fn refuses_whoever_lost_the_role_within_the_turn() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let is_casl = |tool: &&RpcTool| {
        let auth = stage.pipeline().handlers().auth(tool.definition.event.as_str());
        matches!(auth, Some(Auth::Casl { .. }))
    };
    for tool in reads().filter(is_casl) {
        assert!(run_example(&stage, &admin, tool).await.is_data());
    }
    let held = format!("DELETE FROM user_roles WHERE staff_id = '{}'", HILLTOP.staff("admin"));
    stage.arrange(&held).await;
    let before = stage.snapshot().await;
    for tool in RPC_AGENT_TOOLS.iter().filter(is_casl) {
        let refused = error(run_example(&stage, &admin, tool).await);
        assert!(refused.starts_with("Permission denied: you may not "), "{refused}");
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

#[tokio::test]
async fn refuses_a_pinned_campus_that_is_not_open() {
    let stage = Stage::new().await;
    let lakeside = HILLTOP.campus(HILLTOP.second_campus);
    let elsewhere = e2e::fixtures::RIVERSIDE.campus("north");
    let cases = [
        ("newcomer", lakeside),
        ("class.teacher", lakeside),
        ("head", lakeside),
        ("admin", elsewhere),
        ("admin", Uuid::now_v7()),
    ];
    let before = stage.snapshot().await;
    for (who, campus) in cases {
        let person = stage.person(&HILLTOP.email(who)).await;
        let pinned = stage.regranted(&person, |grant| {
            grant.scope = AgentCallScope::Campus { campus_id: campus }
        });
        for tool in RPC_AGENT_TOOLS {
            let refused = error(run_example(&stage, &pinned, tool).await);
            assert_eq!(refused, CAMPUS_NOT_OPEN, "{who}, {}", tool.definition.name);
        }
    }
    assert_eq!(stage.snapshot().await, before);
    for tool in reads().filter(|tool| tool.definition.scope.is_offered_in(AgentRunModeName::Campus)) {
        let pinned = stage.person_on(&HILLTOP.user_of(tool), HILLTOP.first_campus).await;
        let admitted = run_example(&stage, &pinned, tool).await;
        assert!(admitted.is_data(), "{}: {admitted:?}", tool.definition.name);
    }
    stage.finish().await;
}

#[tokio::test]
async fn whose_handler_panics_says_nothing_of_it() {
    let stage = Stage::with(&[("DB_POOL", "1")]).await;
    let before: Snapshot = stage.snapshot().await;
    for tool in RPC_AGENT_TOOLS {
        let user = user_of(&stage, tool).await;
        let call = incoming(&user, tool.definition.name, HILLTOP.example(tool), "1");
        hooks::panic_on(call.key.clone());
        assert_eq!(error(stage.pipeline().execute(call).await), MASKED_ERROR);
    }
    assert_eq!(stage.snapshot().await, before);
    // the one connection was not left inside a transaction
    for tool in reads() {
        let user = user_of(&stage, tool).await;
        assert!(run_example(&stage, &user, tool).await.is_data());
    }
    stage.finish().await;
}
