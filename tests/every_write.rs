//! What every tool that changes something owes: one audit row in the change's own transaction, and one effect a key. Proven by
//! walking the registry.

use super::every_tool::{
    ids::{id_arguments, put},
    is_refusal,
};
use contract::{RpcTool, tool::Placement, tools::RPC_AGENT_TOOLS};
use e2e::{
    Person, Stage,
    arrange::Snapshot,
    fixtures::{HILLTOP, RIVERSIDE, School},
    stage::{data, error, incoming},
};
use serde_json::{Value, json};
use server::{error::MASKED_ERROR, execute::Incoming};
use std::time::Duration;
use uuid::Uuid;

const KEY_REUSED: &str = "This call's key was already used for another call.";

fn writes() -> impl Iterator<Item = &'static RpcTool> {
    RPC_AGENT_TOOLS
        .iter()
        .filter(|tool| tool.definition.event.is_mutating())
}

async fn user_of(stage: &Stage, tool: &RpcTool) -> Person {
    stage.person(&HILLTOP.user_of(tool)).await
}

fn example_of(school: &School, person: &Person, tool: &RpcTool, call_id: &str) -> Incoming {
    incoming(person, tool.definition.name, school.example(tool), call_id)
}

/// Other arguments than these, which fit the same schema: another id, or a longer text where there is none.
fn altered(tool: &RpcTool, mut args: Value) -> Value {
    let ids = id_arguments(&tool.schema());
    let example = args.clone();
    for path in ids {
        put(&mut args, &path, &json!(Uuid::now_v7()));
        if args != example {
            return args;
        }
    }
    let text = last_text(&mut args).expect("an example names a row or holds a text");
    *text = json!(format!("{}s", text.as_str().unwrap()));
    args
}

fn last_text(value: &mut Value) -> Option<&mut Value> {
    match value {
        Value::String(_) => Some(value),
        Value::Array(items) => items.iter_mut().rev().find_map(last_text),
        Value::Object(members) => members.values_mut().rev().find_map(last_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

type Trail = (Uuid, String, String, String, String, String, Option<String>, Value);

async fn trail(stage: &Stage) -> Vec<Trail> {
    sqlx::query_as(
        "SELECT school_id, actor_email, actor_type, event, door, turn_id, tool_call_id, arguments FROM audit_log WHERE event <> 'decide.approval' ORDER BY id",
    )
    .fetch_all(&mut stage.owner().await)
    .await
    .unwrap()
}

#[tokio::test]
async fn leaves_exactly_one_audit_row() {
    for tool in writes() {
        let stage = Stage::new().await;
        let user = user_of(&stage, tool).await;
        let before = stage.snapshot().await;
        data(stage.execute(example_of(&HILLTOP, &user, tool, "call_7")).await);
        let expected = (
            HILLTOP.id(),
            user.identity.email.clone(),
            user.identity.user_type.as_str().to_owned(),
            tool.definition.event.to_string(),
            "chat".to_owned(),
            user.turn_id.to_string(),
            Some("call_7".to_owned()),
            HILLTOP.example(tool),
        );
        assert_eq!(trail(&stage).await, [expected], "{}", tool.definition.name);
        let after = stage.snapshot().await;
        let changed: Vec<_> = before.keys().filter(|table| before[*table] != after[*table]).collect();
        assert!(
            changed.len() > 2,
            "{}: an effect beside the two records: {changed:?}",
            tool.definition.name
        );
        stage.finish().await;
    }
}

#[tokio::test]
async fn is_the_only_one_that_leaves_a_row() {
    let stage = Stage::new().await;
    let before = stage.snapshot().await;
    for tool in RPC_AGENT_TOOLS
        .iter()
        .filter(|tool| !tool.definition.event.is_mutating())
    {
        let user = user_of(&stage, tool).await;
        data(stage.execute(example_of(&HILLTOP, &user, tool, "1")).await);
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

/// fault 11, fault 12
#[tokio::test]
async fn is_done_once_a_key() {
    for tool in writes() {
        let name = tool.definition.name;
        let stage = Stage::new().await;
        let user = user_of(&stage, tool).await;
        let call = || example_of(&HILLTOP, &user, tool, "1");
        let first = stage.execute(call()).await;
        assert!(first.is_data(), "{name}: {first:?}");
        let after = stage.snapshot().await;
        assert_eq!(stage.execute(call()).await, first, "{name}");

        let mut other = call();
        other.request["args"] = altered(tool, HILLTOP.example(tool));
        assert_ne!(other.request["args"], call().request["args"]);
        assert_eq!(error(stage.execute(other).await), KEY_REUSED, "{name}");
        assert_eq!(stage.snapshot().await, after, "{name}");
        stage.finish().await;
    }
}

/// Of a specialist's belt an operator can use nothing: nobody is a platform administrator's student.
#[tokio::test]
async fn of_an_operator_shows_in_the_trail_of_the_school_that_it_changed() {
    for tool in writes() {
        let name = tool.definition.name;
        let stage = Stage::new().await;
        let operator = stage.person("platform@operator.example").await;
        let call = || example_of(&RIVERSIDE, &operator, tool, "1");
        let before = stage.snapshot().await;
        let first = stage.execute(call()).await;
        if matches!(tool.definition.placement, Placement::Roles(_)) {
            let refusal = error(first);
            assert!(is_refusal(&refusal), "{name}: {refusal}");
            assert_eq!(stage.snapshot().await, before, "{name}");
            stage.finish().await;
            continue;
        }
        assert!(first.is_data(), "{name}: {first:?}");
        assert_eq!(stage.execute(call()).await, first, "{name}");
        let rows = trail(&stage).await;
        assert_eq!(rows.len(), 1, "{name}");
        assert_eq!(
            (rows[0].0, rows[0].1.as_str(), rows[0].2.as_str()),
            (RIVERSIDE.id(), "platform@operator.example", "PLATFORM_ADMIN"),
            "{name}"
        );
        assert_eq!(stage.count("SELECT count(*) FROM operator_tool_calls").await, 1);
        assert_eq!(stage.count("SELECT count(*) FROM tool_calls").await, 0);
        stage.finish().await;
    }
}

/// Everything but what was decided and still waits to be done.
async fn effects(stage: &Stage) -> Snapshot {
    let mut tables = stage.snapshot().await;
    tables.remove("approvals");
    tables.remove("audit_log");
    tables.insert("writes".to_owned(), stage.audit_rows().await.to_string());
    tables
}

/// Makes every tool's write fail at some point, and shows that nothing is left and that the key is free.
async fn fails_whole(break_it: &str, mend_it: &str) {
    for tool in writes() {
        let name = tool.definition.name;
        let stage = Stage::new().await;
        let user = user_of(&stage, tool).await;
        let call = || example_of(&HILLTOP, &user, tool, "1");
        stage.arrange(break_it).await;
        let before = effects(&stage).await;
        assert_eq!(error(stage.execute(call()).await), MASKED_ERROR, "{name}");
        assert_eq!(effects(&stage).await, before, "{name}");
        stage.arrange(mend_it).await;
        // what was approved and could not be done is taken up again
        stage.decisions().look_after(Duration::ZERO).await.unwrap();
        let again = stage.execute(call()).await;
        assert!(again.is_data(), "{name}: {again:?}");
        assert_eq!(stage.audit_rows().await, 1);
        stage.finish().await;
    }
}

const REFUSE: &str = "CREATE FUNCTION refuse_it() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'the disk of row % is full', NEW; END $$;";

/// fault 13
#[tokio::test]
async fn is_undone_without_its_audit_row() {
    let break_it = "CREATE TRIGGER broken BEFORE INSERT ON audit_log FOR EACH ROW WHEN (NEW.event <> 'decide.approval')
        EXECUTE FUNCTION refuse_it()";
    fails_whole(&format!("{REFUSE} {break_it}"), "DROP TRIGGER broken ON audit_log").await;
}

/// fault 13
#[tokio::test]
async fn is_undone_without_its_stored_reply() {
    let break_it = "CREATE TRIGGER broken BEFORE INSERT ON tool_calls FOR EACH ROW EXECUTE FUNCTION refuse_it()";
    fails_whole(&format!("{REFUSE} {break_it}"), "DROP TRIGGER broken ON tool_calls").await;
}

/// fault 13
#[tokio::test]
async fn is_undone_without_its_commit() {
    let break_it = "CREATE CONSTRAINT TRIGGER broken AFTER INSERT ON audit_log DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.event <> 'decide.approval') EXECUTE FUNCTION refuse_it()";
    fails_whole(&format!("{REFUSE} {break_it}"), "DROP TRIGGER broken ON audit_log").await;
}

/// fault 13, the reverse: no effect, no row
#[tokio::test]
async fn leaves_no_row_without_its_effect() {
    let each_table = |does: &str| {
        format!(
            "DO $$ DECLARE name text; BEGIN
                FOR name IN SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'
                    AND table_type = 'BASE TABLE' AND table_name NOT IN ('audit_log', 'tool_calls')
                LOOP EXECUTE format('{does}', name); END LOOP;
            END $$;"
        )
    };
    let break_it = each_table(
        "CREATE TRIGGER broken BEFORE INSERT OR UPDATE OR DELETE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_it()",
    );
    fails_whole(
        &format!("{REFUSE} {break_it}"),
        &each_table("DROP TRIGGER broken ON %I"),
    )
    .await;
}

const CONFLICT: &str = "
    CREATE SEQUENCE tries;
    GRANT USAGE ON SEQUENCE tries TO school_app;
    CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        -- a sequence keeps counting through rollbacks
        IF nextval('tries') <= LIMIT_OF_TRIES THEN
            RAISE EXCEPTION 'could not serialize access' USING errcode = 'serialization_failure';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER conflict BEFORE INSERT ON audit_log FOR EACH ROW WHEN (NEW.event <> 'decide.approval') EXECUTE FUNCTION conflict();";

#[tokio::test]
async fn is_run_again_whole_after_a_conflict() {
    for tool in writes() {
        let stage = Stage::new().await;
        let user = user_of(&stage, tool).await;
        stage.arrange(&CONFLICT.replace("LIMIT_OF_TRIES", "2")).await;
        let result = stage.execute(example_of(&HILLTOP, &user, tool, "1")).await;
        assert!(result.is_data(), "{}: {result:?}", tool.definition.name);
        assert_eq!(stage.count("SELECT last_value FROM tries").await, 3);
        assert_eq!(stage.audit_rows().await, 1);
        stage.finish().await;
    }
}

#[tokio::test]
async fn is_given_up_when_it_only_conflicts() {
    let stage = Stage::new().await;
    let tool = writes().next().unwrap();
    let user = user_of(&stage, tool).await;
    stage.arrange(&CONFLICT.replace("LIMIT_OF_TRIES", "1000")).await;
    let before = stage.snapshot().await;
    let result = stage.execute(example_of(&HILLTOP, &user, tool, "1")).await;
    assert_eq!(error(result), MASKED_ERROR);
    assert_eq!(stage.count("SELECT last_value FROM tries").await, 5);
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}
