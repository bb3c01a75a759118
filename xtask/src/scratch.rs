//! A database for one run of a command, on whichever server there is.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use xtask::services::Services;

/// A database with nothing in it, which goes when this is dropped.
pub(crate) struct Scratch<'a> {
    services: &'a Services,
    name: String,
}

impl<'a> Scratch<'a> {
    /// Makes one whose name begins with what it is for.
    pub(crate) fn create(services: &'a Services, purpose: &str) -> anyhow::Result<Self> {
        let name = format!("{purpose}_{}", std::process::id());
        let maintenance = maintenance_database(services);
        let create = format!("drop database if exists {name} with (force);\ncreate database {name};\n");
        psql(services.psql(&maintenance), &create).context("making a scratch database")?;
        Ok(Self { services, name })
    }

    pub(crate) fn url(&self) -> String {
        self.services.database_url_of(&self.name)
    }

    /// Runs statements in it by `psql`, with these options; what that prints.
    pub(crate) fn psql(&self, options: &[&str], sql: &str) -> anyhow::Result<String> {
        let mut command = self.services.psql(&self.name);
        command.args(options);
        psql(command, sql)
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let command = self.services.psql(&maintenance_database(self.services));
        // A private server goes anyway; on another one, a failure leaves a database whose name says what it is.
        let _ = psql(
            command,
            &format!("drop database if exists {} with (force);\n", self.name),
        );
    }
}

/// The database that the URL itself names: one must be connected to some other, to make or drop one.
fn maintenance_database(services: &Services) -> String {
    let url = services.database_url();
    let base = url.split('?').next().unwrap_or(url);
    base.rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or("postgres")
        .to_owned()
}

fn psql(mut command: Command, sql: &str) -> anyhow::Result<String> {
    command.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| {
        format!(
            "starting {} (Debian, Ubuntu: apt-get install postgresql-client)",
            command.get_program().display()
        )
    })?;
    if let Some(mut input) = child.stdin.take() {
        // Where psql ends early this fails too, and its own words say more.
        let _ = input.write_all(sql.as_bytes());
    }
    let output = child.wait_with_output().context("waiting for psql")?;
    if !output.status.success() {
        // Not the words of the command: they hold a password.
        bail!("psql: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("what psql printed is not UTF-8")
}
