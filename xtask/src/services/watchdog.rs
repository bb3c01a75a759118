//! Ends what was started here when the process that started it ends, even by `kill -9`.
//!
//! A shell waits at the end of a pipe whose other end only this process holds. When that closes, for whatever reason,
//! the shell signals the processes that it was told of, waits, kills what is left, and removes the folder.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::ServiceError;

/// Entries are `SIGNAL:pid` or `container:id`. A signal to the shell itself must not keep it from its work, so it
/// ignores those that a terminal sends.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
folder=$1
entries=
while read -r verb entry; do
  case $verb in
    watch) entries="$entries $entry" ;;
    forget)
      kept=
      for e in $entries; do [ "$e" = "$entry" ] || kept="$kept $e"; done
      entries=$kept ;;
  esac
done
for e in $entries; do
  case $e in
    container:*) docker rm --force --volumes "${e#*:}" ;;
    *) kill -s "${e%%:*}" "${e#*:}" ;;
  esac
done
tries=0
while [ "$tries" -lt 150 ]; do
  running=
  for e in $entries; do
    case $e in
      container:*) ;;
      *) if kill -0 "${e#*:}"; then running="$running ${e#*:}"; fi ;;
    esac
  done
  [ -n "$running" ] || break
  tries=$((tries + 1))
  sleep 0.1
done
for pid in $running; do kill -s KILL "$pid"; done
[ -z "$folder" ] || rm -rf "$folder" || { sleep 1; rm -rf "$folder"; }
"#;

/// Watches over processes and containers for as long as this process lives.
#[derive(Debug)]
pub struct Watchdog {
    shell: Child,
}

impl Watchdog {
    /// Starts one. `folder` is removed at the end.
    ///
    /// # Errors
    /// Where no shell can be started.
    pub fn start(folder: Option<&Path>) -> Result<Self, ServiceError> {
        let mut command = Command::new("sh");
        command
            .args(["-c", SCRIPT, "watchdog"])
            .arg(folder.unwrap_or(Path::new("")));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .current_dir("/");
        let shell = command.spawn().map_err(ServiceError::file("starting", "sh"))?;
        Ok(Self { shell })
    }

    /// From now on the process gets `signal`, by name, when this process ends; and is killed if that doesn't end it.
    ///
    /// # Errors
    /// Where the watchdog itself was ended by someone.
    pub fn watch(&mut self, pid: u32, signal: &str) -> Result<(), ServiceError> {
        self.tell("watch", &format!("{signal}:{pid}"))
    }

    /// The process has ended: its number may become another's.
    pub fn forget(&mut self, pid: u32, signal: &str) {
        // A watchdog that is gone remembers nothing.
        let _ = self.tell("forget", &format!("{signal}:{pid}"));
    }

    /// As [`Watchdog::watch`], for a container.
    pub(crate) fn watch_container(&mut self, id: &str) -> Result<(), ServiceError> {
        self.tell("watch", &format!("container:{id}"))
    }

    fn tell(&mut self, verb: &str, entry: &str) -> Result<(), ServiceError> {
        let written = match &mut self.shell.stdin {
            Some(pipe) => pipe.write_all(format!("{verb} {entry}\n").as_bytes()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        written.map_err(ServiceError::file("writing to", "the watchdog"))
    }
}

impl Drop for Watchdog {
    /// Lets it do its work, and waits for that: after this nothing is left.
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
