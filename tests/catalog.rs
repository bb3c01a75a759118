//! What the database's catalog must say for tenants to be kept apart, and what the server's roles then can and cannot do.

mod checks;

use checks::{CHECKS, Check, GLOBAL, PREFIX};
use e2e::{
    Stage,
    fixtures::{HILLTOP, RIVERSIDE},
};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use std::collections::BTreeSet;
use uuid::Uuid;

#[tokio::test]
async fn keeps_tenants_apart() {
    let stage = Stage::new().await;
    let mut owner = stage.owner().await;
    for check in CHECKS {
        let found = findings(&mut owner, check).await;
        assert!(found.is_empty(), "not so that {}: {found:?}", check.says);
    }
    let tables: BTreeSet<String> = names(&mut owner, "select name from tables where tenant is null")
        .await
        .into_iter()
        .collect();
    let listed: BTreeSet<String> = GLOBAL.iter().map(|(table, _)| (*table).to_owned()).collect();
    assert_eq!(
        tables, listed,
        "the list of global tables is neither short nor long of any"
    );
    stage.finish().await;
}

#[tokio::test]
async fn every_check_finds_what_it_is_for() {
    let stage = Stage::new().await;
    let mut owner = stage.owner().await;
    for check in CHECKS {
        assert!(!check.breaches.is_empty(), "{}: shown to fail by nothing", check.says);
        for breach in check.breaches {
            let found = findings_after(&mut owner, breach, check).await;
            assert!(!found.is_empty(), "{}: does not see `{breach}`", check.says);
        }
    }
    stage.finish().await;
}

#[tokio::test]
async fn the_audit_log_is_append_only_even_for_its_owner() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let args = serde_json::json!({"name": "Drama"});
    assert!(stage.call(&head, "create_department", args).await.is_data());
    let mut owner = stage.owner().await;
    for role in ["origin", "replica"] {
        for change in [
            "update audit_log set event = 'x.y'",
            "delete from audit_log",
            "truncate audit_log",
        ] {
            let mut tx = owner.begin().await.unwrap();
            tx.execute(AssertSqlSafe(format!("set local session_replication_role = {role}")))
                .await
                .unwrap();
            let error = tx.execute(change).await.unwrap_err().to_string();
            assert!(error.contains("append-only"), "{change} as {role}: {error}");
            tx.rollback().await.unwrap();
        }
    }
    assert_eq!(stage.audit_rows().await, 1);
    stage.finish().await;
}

/// fault 3, fault 4
#[tokio::test]
async fn without_a_tenant_there_is_no_row() {
    let stage = Stage::new().await;
    let (mut owner, mut app) = (stage.owner().await, as_app(&stage).await);
    let tables = readable(&mut owner).await;
    assert!(tables.len() > 15, "{tables:?}");
    let mut held = 0;
    for table in tables {
        for setting in ["", "set local app.school_id = ''"] {
            let mut tx = app.begin().await.unwrap();
            tx.execute(setting).await.unwrap();
            assert_eq!(count(&mut tx, &table, "").await, 0, "{table} after `{setting}`");
            tx.rollback().await.unwrap();
        }
        held += count(&mut owner, &table, "").await;
    }
    assert!(held > 500, "the tables hold rows: {held}");
    stage.finish().await;
}

#[tokio::test]
async fn with_a_tenant_there_are_exactly_its_rows() {
    let stage = Stage::new().await;
    let (mut owner, mut app) = (stage.owner().await, as_app(&stage).await);
    for school in [HILLTOP.id(), RIVERSIDE.id()] {
        for table in readable(&mut owner).await {
            let own = match table.as_str() {
                "schools" => format!("where id = '{school}'"),
                "users" => format!("where id in (select user_id from staff where school_id = '{school}')"),
                _ => format!("where school_id = '{school}'"),
            };
            let wanted = count(&mut owner, &table, &own).await;
            let mut tx = tenant(&mut app, school).await;
            assert_eq!(count(&mut tx, &table, "").await, wanted, "{table}");
            assert_eq!(count(&mut tx, &table, &own).await, wanted, "{table}: no other's");
            tx.rollback().await.unwrap();
        }
    }
    stage.finish().await;
}

#[tokio::test]
async fn a_tenant_writes_nothing_into_another() {
    let stage = Stage::new().await;
    let (mut owner, mut app) = (stage.owner().await, as_app(&stage).await);
    let written = names(
        &mut owner,
        "select name from tenants where has_any_column_privilege('school_app', rel, 'insert')",
    )
    .await;
    assert!(written.len() > 4, "{written:?}");
    for table in &written {
        let insert = |school: Uuid| AssertSqlSafe(format!("insert into {table} (school_id) values ('{school}')"));
        let mut tx = tenant(&mut app, HILLTOP.id()).await;
        let error = tx.execute(insert(RIVERSIDE.id())).await.unwrap_err().to_string();
        assert!(error.contains("violates row-level security policy"), "{table}: {error}");
        tx.rollback().await.unwrap();
        let mut tx = tenant(&mut app, HILLTOP.id()).await;
        let error = tx.execute(insert(HILLTOP.id())).await.unwrap_err().to_string();
        assert!(
            error.contains("violates not-null constraint"),
            "{table}, for its own school: {error}"
        );
        tx.rollback().await.unwrap();
    }
    for (school, changed) in [(RIVERSIDE, 0), (HILLTOP, 1)] {
        for change in [
            "update departments set name = 'Taken over'",
            "delete from department_heads",
        ] {
            let id = if change.starts_with("update") {
                "id"
            } else {
                "department_id"
            };
            let mut tx = tenant(&mut app, HILLTOP.id()).await;
            let statement = format!("{change} where {id} = '{}'", school.department_id());
            let done = tx.execute(AssertSqlSafe(statement)).await.unwrap().rows_affected();
            assert_eq!(done.min(1), changed, "{change} of {}", school.slug);
            tx.rollback().await.unwrap();
        }
    }
    stage.finish().await;
}

#[tokio::test]
async fn the_servers_role_cannot_become_more() {
    let stage = Stage::new().await;
    let mut app = as_app(&stage).await;
    for (attempt, refusal) in [
        ("set role school_platform", "permission denied"),
        ("set session authorization school_platform", "permission denied"),
        (
            "set row_security = off; select count(*) from students",
            "row-level security",
        ),
        ("set session_replication_role = replica", "permission denied"),
        ("alter table students disable row level security", "must be owner"),
        ("create table mine (id uuid)", "permission denied"),
        ("select * from operator_tool_calls", "permission denied"),
        ("truncate departments", "permission denied"),
    ] {
        let error = app.execute(attempt).await.expect_err(attempt).to_string();
        assert!(error.contains(refusal), "{attempt}: {error}");
    }
    let who: String = app.fetch_one("select current_user::text").await.unwrap().get(0);
    assert_eq!(who, "school_app");
    stage.finish().await;
}

/// Not even its owner can store a reference across schools.
#[tokio::test]
async fn a_reference_across_schools_cannot_be_stored() {
    let stage = Stage::new().await;
    let mut owner = stage.owner().await;
    for (school, campus_of, is_stored) in [(HILLTOP, HILLTOP, true), (HILLTOP, RIVERSIDE, false)] {
        let (school, campus) = (school.id(), campus_of.campus(campus_of.first_campus));
        let insert =
            format!("insert into departments (school_id, campus_id, name) values ('{school}', '{campus}', 'Drama')");
        let done = owner.execute(AssertSqlSafe(insert)).await;
        assert_eq!(done.is_ok(), is_stored, "{done:?}");
    }
    stage.finish().await;
}

/// What a check finds once a statement has run, which is then undone.
async fn findings_after(owner: &mut PgConnection, breach: &'static str, check: &Check) -> Vec<String> {
    loop {
        let mut breached = owner.begin().await.expect("a transaction begins");
        match breached.execute(breach).await {
            Ok(_) => {
                let found = findings(&mut breached, check).await;
                breached.rollback().await.expect("it is undone");
                return found;
            }
            // roles are the whole cluster's, and another test may be migrating its database
            Err(error) if error.to_string().contains("tuple concurrently updated") => {
                breached.rollback().await.expect("it is undone");
            }
            Err(error) => panic!("{breach}: {error}"),
        }
    }
}

async fn findings(connection: &mut PgConnection, check: &Check) -> Vec<String> {
    names(connection, check.query).await
}

/// The names that a query over the catalog answers, in order.
async fn names(connection: &mut PgConnection, query: &str) -> Vec<String> {
    let query = format!("{PREFIX} {query} order by 1");
    sqlx::query_scalar(AssertSqlSafe(query))
        .fetch_all(connection)
        .await
        .expect("the check runs")
}

/// Every table that the server's role may read and that holds something of a school.
async fn readable(owner: &mut PgConnection) -> Vec<String> {
    let query = "select name from tables where has_table_privilege('school_app', rel, 'select') and name <> 'delivery_attempts'";
    names(owner, query).await
}

/// A connection as the server makes it for calls.
async fn as_app(stage: &Stage) -> PgConnection {
    PgConnection::connect(stage.config().roles.app.reveal())
        .await
        .expect("the server's role connects")
}

async fn tenant(app: &mut PgConnection, school: Uuid) -> sqlx::Transaction<'_, sqlx::Postgres> {
    let mut tx = app.begin().await.expect("a transaction begins");
    let set = format!("set local app.school_id = '{school}'");
    tx.execute(AssertSqlSafe(set)).await.expect("the tenant is set");
    tx
}

async fn count(connection: &mut PgConnection, table: &str, condition: &str) -> i64 {
    let query = format!("select count(*) from {table} {condition}");
    sqlx::query_scalar(AssertSqlSafe(query))
        .fetch_one(connection)
        .await
        .expect("rows are counted")
}
