//! Private servers, for real: they start, survive what the fault tests do to them, and leave nothing behind.

#![expect(clippy::unwrap_used, reason = "a helper of a test ends the test")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use xtask::services::{Durability, PrivatePostgres, PrivateRabbit};

/// Everything here takes some seconds on an idle machine.
const PATIENCE: Duration = Duration::from_mins(1);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn sql(postgres: &PrivatePostgres, query: &str) -> String {
    let mut psql = Command::new(postgres.program("psql"));
    psql.arg(postgres.url())
        .args(["--no-psqlrc", "--tuples-only", "--no-align", "--command", query]);
    let output = psql.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{query}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn answers(url: &str) -> bool {
    let address = url.rsplit('@').next().unwrap().split('/').next().unwrap();
    std::net::TcpStream::connect(address).is_ok()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The processes whose command line or environment names the text.
fn processes_of(text: &str) -> Vec<PathBuf> {
    let names = |process: &PathBuf| {
        let part = |name| fs::read(process.join(name)).unwrap_or_default();
        let cwd = fs::read_link(process.join("cwd")).unwrap_or_default();
        [
            part("cmdline"),
            part("environ"),
            cwd.into_os_string().into_encoded_bytes(),
        ]
        .iter()
        .any(|part| String::from_utf8_lossy(part).contains(text))
    };
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| *path != own)
        .filter(names)
        .collect()
}

#[test]
fn postgres_keeps_what_it_confirmed_before_a_kill() {
    let mut postgres = PrivatePostgres::start(root(), Durability::Fast).unwrap();
    let url = postgres.url().to_owned();
    sql(
        &postgres,
        "create table kept (id int); insert into kept values (1), (2)",
    );

    postgres.kill();
    assert!(!answers(&url));
    postgres.restart().unwrap();

    assert_eq!(postgres.url(), url);
    assert_eq!(sql(&postgres, "select count(*) from kept"), "2");
}

#[test]
fn kept_postgres_takes_up_the_data_of_a_killed_run() {
    let folder = root().join(format!("target/services/kept-{}", std::process::id()));
    let mut first = PrivatePostgres::start_keeping(&folder).unwrap();
    sql(&first, "create table kept (id int)");
    first.kill();
    drop(first);

    let second = PrivatePostgres::start_keeping(&folder).unwrap();
    assert_eq!(sql(&second, "select count(*) from kept"), "0");
    drop(second);

    let _ = fs::remove_dir_all(folder);
}

#[test]
fn closed_parent_folders_are_no_obstacle() {
    let closed = root().join(format!("target/services/closed-{}", std::process::id()));
    fs::create_dir_all(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();

    let postgres = PrivatePostgres::start(&closed, Durability::Fast).unwrap();
    assert_eq!(sql(&postgres, "select 1"), "1");
    drop(postgres);

    fs::remove_dir_all(closed).unwrap();
}

#[test]
fn rabbit_survives_a_kill_and_stops_in_order() {
    let mut rabbit = PrivateRabbit::start(root()).unwrap();
    let url = rabbit.url().to_owned();

    rabbit.kill();
    assert!(!answers(&url));
    rabbit.restart().unwrap();
    assert!(answers(&url));
    rabbit.stop();
    assert!(!answers(&url));

    assert_eq!(rabbit.url(), url);
}

/// Starts `cargo xtask services` and waits until both are up. Returns it with the folders that it works in.
fn start_services() -> (Child, Vec<String>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command
        .arg("services")
        .env_remove("DATABASE_URL")
        .env_remove("AMQP_URL");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let exports = BufReader::new(child.stdout.take().unwrap()).lines().take(2).count();
    assert_eq!(exports, 2);
    let lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .take(2)
        .map(Result::unwrap);
    let folders: Vec<String> = lines
        .map(|line| line.rsplit_once(", in ").unwrap().1.to_owned())
        .collect();
    for folder in &folders {
        assert!(!processes_of(folder).is_empty(), "{folder}");
    }
    (child, folders)
}

fn assert_nothing_left(folders: &[String]) {
    for folder in folders {
        eventually(&format!("processes of {folder} are left"), || {
            processes_of(folder).is_empty()
        });
        eventually(&format!("{folder} is left"), || !Path::new(folder).exists());
    }
}

#[test]
fn nothing_is_left_after_a_kill_of_who_started_them() {
    let (mut child, folders) = start_services();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_nothing_left(&folders);
}

#[test]
fn nothing_is_left_after_a_stop() {
    let (mut child, folders) = start_services();
    xtask::services::send_signal(&[child.id()], "TERM");
    assert!(child.wait().unwrap().success());
    assert_nothing_left(&folders);
}

#[test]
fn missing_services_are_one_error_that_says_what_to_do() {
    let dead = "amqp://127.0.0.1:1/%2f";
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let output = command.arg("services").env("AMQP_URL", dead).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        error.contains("AMQP_URL is set, but nothing answers at 127.0.0.1:1"),
        "{error}"
    );
}
