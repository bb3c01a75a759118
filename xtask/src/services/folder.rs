//! Folders for the data of private servers, and what is random about them.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use super::ServiceError;
use super::account::{Account, command_as};

/// Makes a new folder for one run of one service, which only the service's user can enter.
///
/// It is under `target/services`; where root starts the service and the parents are closed to its user (a checkout in
/// root's home), it is under the system's folder for temporary files.
pub(crate) fn create_fresh(root: &Path, service: &str, account: Option<Account>) -> Result<PathBuf, ServiceError> {
    let name = format!("{service}-{}-{}", std::process::id(), random_hex(4)?);
    let folder = root.join("target/services").join(&name);
    create_private(&folder, account)?;
    if is_reachable(&folder, account) {
        return Ok(folder);
    }
    fs::remove_dir(&folder).map_err(ServiceError::file("removing", &folder))?;
    let folder = std::env::temp_dir().join(name);
    create_private(&folder, account)?;
    Ok(folder)
}

/// Finds or makes the folder that keeps data between runs: `folder`, or one under the system's folder for temporary
/// files that has its name from `folder`, where the parents are closed to the service's user.
pub(crate) fn create_kept(folder: &Path, account: Option<Account>) -> Result<PathBuf, ServiceError> {
    create_private(folder, account)?;
    if is_reachable(folder, account) {
        return Ok(folder.to_path_buf());
    }
    let mut hasher = DefaultHasher::new();
    folder.hash(&mut hasher);
    let folder = std::env::temp_dir().join(format!("stack-postgres-{:016x}", hasher.finish()));
    create_private(&folder, account)?;
    Ok(folder)
}

/// As many random bytes, in hexadecimal: for passwords and names.
///
/// # Errors
/// Where the system has no source of them.
pub fn random_hex(bytes: usize) -> Result<String, ServiceError> {
    let mut random = vec![0; bytes];
    let mut source = fs::File::open("/dev/urandom").map_err(ServiceError::file("opening", "/dev/urandom"))?;
    source
        .read_exact(&mut random)
        .map_err(ServiceError::file("reading", "/dev/urandom"))?;
    Ok(random
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

/// Writes a file that only `account` (or who runs this) can read.
pub(crate) fn write_private(path: &Path, content: &str, account: Option<Account>) -> Result<(), ServiceError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(ServiceError::file("creating", path))?;
    file.write_all(content.as_bytes())
        .map_err(ServiceError::file("writing", path))?;
    give(path, account)
}

fn create_private(folder: &Path, account: Option<Account>) -> Result<(), ServiceError> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(ServiceError::file("creating", parent))?;
    }
    match fs::create_dir(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return require_ours(folder, account),
        Err(error) => return Err(ServiceError::file("creating", folder)(error)),
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
        .map_err(ServiceError::file("setting the mode of", folder))?;
    give(folder, account)
}

/// A folder in a place that all can write to might be someone else's trap.
fn require_ours(folder: &Path, account: Option<Account>) -> Result<(), ServiceError> {
    let found = fs::symlink_metadata(folder).map_err(ServiceError::file("looking at", folder))?;
    let owner = match account {
        Some(account) => account.ids().0,
        None => fs::metadata("/proc/self")
            .map_err(ServiceError::file("looking at", "/proc/self"))?
            .uid(),
    };
    if found.is_dir() && found.uid() == owner {
        Ok(())
    } else {
        Err(ServiceError::ForeignFolder {
            folder: folder.to_path_buf(),
        })
    }
}

fn give(path: &Path, account: Option<Account>) -> Result<(), ServiceError> {
    let Some((uid, gid)) = account.map(Account::ids) else {
        return Ok(());
    };
    chown(path, Some(uid), Some(gid)).map_err(ServiceError::file("giving away", path))
}

/// Whether `account` can enter the folder, all the way from the root.
fn is_reachable(folder: &Path, account: Option<Account>) -> bool {
    if account.is_none() {
        return true;
    }
    let mut probe = command_as(account, "sh");
    probe
        .current_dir("/")
        .args(["-c", r#"cd "$1" 2> /dev/null"#, "sh"])
        .arg(folder);
    probe.status().is_ok_and(|status| status.success())
}
