//! Installs the servers, where Debian's package manager can. Their own services, which the packages may start, are
//! never used.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{ServiceError, postgres, rabbit};

/// Whether this is a Debian or an Ubuntu.
pub(crate) fn is_supported() -> bool {
    Path::new("/etc/debian_version").exists() && Path::new("/usr/bin/apt-get").exists()
}

/// Installs the packages, asking `sudo` where this is not root's process.
pub(crate) fn install(packages: &[&str]) -> Result<(), ServiceError> {
    eprintln!("install    {} (apt-get; takes a minute or two)", packages.join(" "));
    // An index that could not be renewed may still do: what counts is the install.
    let _ = apt_get(&["update", "--quiet=2"]);
    let outcome = apt_get(&[&["install", "--quiet=2", "--yes", "--no-install-recommends"], packages].concat());
    // apt-get also fails where a package's own service cannot start, as in a bare container. Nobody needs that one.
    let is_there = |package: &&str| match *package {
        "postgresql" => postgres::is_installed(),
        _ => rabbit::is_installed(),
    };
    if packages.iter().all(is_there) {
        return Ok(());
    }
    let reason = outcome.map_or_else(|error| error.to_string(), |status| status.to_string());
    Err(ServiceError::NotInstallable {
        packages: packages.join(" "),
        reason,
    })
}

fn apt_get(arguments: &[&str]) -> std::io::Result<std::process::ExitStatus> {
    let is_root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    let words = if is_root { &["env"][..] } else { &["sudo", "env"][..] };
    let words = words
        .iter()
        .chain(&["DEBIAN_FRONTEND=noninteractive", "apt-get"])
        .chain(arguments);
    let mut words = words.copied();
    let mut command = Command::new(words.next().unwrap_or("env"));
    // Its chatter goes to standard error; its input stays the terminal's, since `sudo` may ask for a password there.
    command.args(words).stdout(Stdio::from(std::io::stderr())).status()
}
