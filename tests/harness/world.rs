//! The services of this test process, and the template that every stage's database is cloned from.

use server::{
    config::OwnerConfig,
    db::{migrate::migrate, seed::seed},
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};
use tokio::sync::OnceCell;
use uuid::Uuid;
use xtask::services::{Install, Services};

/// The workspace's folder.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests are a folder of the workspace")
        .to_owned()
}

/// The services: found or started at the first use, and gone with the process.
pub fn services() -> &'static Services {
    static SERVICES: OnceLock<Services> = OnceLock::new();
    SERVICES.get_or_init(|| match Services::find_or_start(&root(), Install::Never) {
        Ok(services) => services,
        Err(error) => panic!("{error}"),
    })
}

/// The name of the migrated and seeded template.
pub async fn template() -> &'static str {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    TEMPLATE
        .get_or_init(|| async {
            let name = format!("e2e_template_{}", Uuid::new_v4().simple());
            create_database(&name, None).await;
            prepare(&services().database_url_of(&name)).await;
            name
        })
        .await
}

/// Migrates and seeds an empty database, and leaves it alone.
pub async fn prepare(url: &str) {
    migrate(&owner_config(url)).await.expect("the database migrates");
    let mut connection = PgConnection::connect(url).await.expect("the database answers");
    seed(&mut connection).await.expect("the database is seeded");
    connection.close().await.expect("the database is left alone");
}

/// A connection to a database as the owner, for arranging and asserting.
pub async fn connect(database: &str) -> PgConnection {
    PgConnection::connect(&services().database_url_of(database))
        .await
        .expect("the database answers")
}

/// Creates a database, empty or from a template.
pub async fn create_database(name: &str, template: Option<&str>) {
    let statement = match template {
        Some(template) => format!("CREATE DATABASE {name} TEMPLATE {template}"),
        None => format!("CREATE DATABASE {name}"),
    };
    run(statement).await;
}

/// Drops a database, whoever is still connected to it.
pub async fn drop_database(name: &str) {
    run(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
}

async fn run(statement: String) {
    let mut connection = PgConnection::connect(services().database_url())
        .await
        .expect("the database answers");
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await
        .expect("the statement runs");
}

/// The owner's configuration for a database's URL.
#[must_use]
pub fn owner_config(url: &str) -> OwnerConfig {
    let url = url.to_owned();
    OwnerConfig::from_lookup(&|name| (name == "DATABASE_URL").then(|| url.clone())).expect("the URL can be read")
}
