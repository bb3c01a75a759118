//! Which user a server runs as. PostgreSQL refuses to run as root, so root starts it (and the broker) as someone else.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use super::ServiceError;

/// A user that root gives a server to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// The account for a service: none unless this process is root's, since then the server runs as who runs this.
    pub(crate) fn for_service(service: &'static str, user: &'static str) -> Result<Option<Self>, ServiceError> {
        if id(&["-u"]) != Some(0) {
            return Ok(None);
        }
        let account = |user| {
            Some(Self {
                uid: id(&["-u", user])?,
                gid: id(&["-g", user])?,
            })
        };
        account(user)
            .or_else(|| account("nobody"))
            .map(Some)
            .ok_or(ServiceError::NoAccount { service, user })
    }

    /// The numbers, for `chown`.
    pub(crate) fn ids(self) -> (u32, u32) {
        (self.uid, self.gid)
    }
}

/// A command that runs as `account`, has no input, and is out of reach of the terminal's Ctrl-C: who started the
/// servers stops them last.
pub(crate) fn command_as(account: Option<Account>, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).process_group(0);
    if let Some(account) = account {
        command.gid(account.gid).uid(account.uid);
    }
    command
}

/// The answer of `id`, without a crate that asks the system itself.
fn id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(arguments).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
