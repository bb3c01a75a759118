//! Migrations, and the passwords of the roles: as the owner, once before a server starts.

use super::DbError;
use crate::config::OwnerConfig;
use sqlx::{AssertSqlSafe, Connection, PgConnection, migrate::Migrator};
use url::Url;

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// Why a database could not be migrated.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbError),
    /// A migration failed, or what was run before differs from what there is.
    #[error(transparent)]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// A role's URL is none.
    #[error("the URL of the role {0} cannot be read")]
    RoleUrl(&'static str),
}

/// Opens the owner's connection.
pub(crate) async fn connect(owner: &OwnerConfig) -> Result<PgConnection, DbError> {
    Ok(PgConnection::connect(owner.owner.reveal()).await?)
}

/// Brings the schema up to date and gives the roles their passwords. Two at once wait for one another.
///
/// # Errors
///
/// See [`MigrateError`].
pub async fn migrate(config: &OwnerConfig) -> Result<(), MigrateError> {
    let mut connection = connect(config).await?;
    MIGRATIONS.run(&mut connection).await?;
    for (role, url) in [
        ("school_app", &config.roles.app),
        ("school_platform", &config.roles.platform),
        ("school_directory", &config.roles.directory),
    ] {
        let url = Url::parse(url.reveal()).map_err(|_| MigrateError::RoleUrl(role))?;
        if let (user, Some(password)) = (url.username(), url.password())
            && user == role
        {
            set_password(&mut connection, role, &percent_decoded(password)).await?;
        }
    }
    connection.close().await.map_err(DbError::from)?;
    Ok(())
}

/// `ALTER ROLE` takes no parameters; the server quotes the value itself.
async fn set_password(connection: &mut PgConnection, role: &str, password: &str) -> Result<(), DbError> {
    let statement: String = sqlx::query_scalar("SELECT format('ALTER ROLE %I PASSWORD %L', $1::text, $2::text)")
        .bind(role)
        .bind(password)
        .fetch_one(&mut *connection)
        .await?;
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await?;
    Ok(())
}

fn percent_decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}
