//! Many turns at once, through two workers and two servers: each is answered once, in order, and none is mixed up with another.

use crate::http::{Event, Server, Visitor};
use e2e::{Stage, fixtures::HILLTOP, process::Process};
use futures_util::future::join_all;
use scripted_model::{Script, ScriptedModel};
use serde_json::json;
use std::{collections::HashSet, fs};
use tokio::sync::Semaphore;
use uuid::Uuid;

const TURNS: usize = 100;
/// How many of them one person follows at once at a server, which has no more for an account.
const STREAMS: usize = 16;
/// What a process may keep of a hundred turns more, in MB: the allocator's slack, and no turn.
const SLACK_MB: u64 = 24;

/// One person's turn, to its end.
async fn turn((visitor, streams): &(Visitor, Semaphore), name: &str) -> Vec<Event> {
    let thread = visitor.thread(&json!({})).await;
    let turn = visitor
        .turn(&thread, &format!("Create a department called {name}"))
        .await;
    let _one = streams.acquire().await.expect("it is never closed");
    visitor.follow(&turn, None).await.all().await
}

fn assert_in_order(events: &[Event], name: &str) {
    let places: Vec<u32> = events
        .iter()
        .map(|event| {
            let (attempt, place) = event.id.split_once('.').expect("an id is attempt and place");
            assert_eq!(attempt, "1", "{event:?}");
            place.parse().expect("a place is a number")
        })
        .collect();
    assert!(
        places.is_sorted() && places.iter().collect::<HashSet<_>>().len() == places.len(),
        "{places:?}"
    );
    let ended: Vec<_> = events.iter().filter(|event| event.kind == "ended").collect();
    assert_eq!(ended.len(), 1, "{events:?}");
    let answer = ended[0].data["outcome"]["answer"]
        .as_str()
        .unwrap_or_else(|| panic!("no answer: {events:?}"));
    assert!(answer.contains(name), "{answer} for {name}");
    let said: String = events.iter().filter_map(|event| event.data["delta"].as_str()).collect();
    assert_eq!(said, answer);
}

/// Resident memory of a process, in MB.
fn resident(process: &Process) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).expect("the process runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("it has memory");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("it is a number");
    kilobytes / 1024
}

#[tokio::test]
async fn are_each_answered_once_and_in_order() {
    let turns = TURNS.to_string();
    let settings = [
        ("AUTH_SECRET", "signs the tokens of these tests only!"),
        ("OPEN_TURNS", turns.as_str()),
    ];
    let stage = Stage::with(&settings).await;
    let model = ScriptedModel::start(Script::rules()).await.expect("the model listens");
    let url = model.base_url();
    let more = [("OPENAI_BASE_URL", url.as_str()), ("MODEL", "scripted-demo")];
    let worker = || Process::start(env!("CARGO_BIN_EXE_worker-under-test"), &[], &stage, &more);
    let (servers, workers) = (
        [Server::on(&stage).await, Server::on(&stage).await],
        [worker().await, worker().await],
    );
    let head = servers[0].person(&stage, &HILLTOP.email("head")).await;
    let visitors = [head.clone(), head.at(&servers[1])].map(|visitor| (visitor, Semaphore::new(STREAMS)));

    let round = async |round: usize| {
        let names: Vec<String> = (0..TURNS).map(|at| format!("R{round}N{at}X")).collect();
        let turns = names.iter().enumerate().map(|(at, name)| turn(&visitors[at % 2], name));
        let all = join_all(turns).await;
        for (events, name) in all.iter().zip(&names) {
            assert_in_order(events, name);
        }
    };
    let memory = || -> Vec<u64> {
        let servers = servers.iter().map(|server| resident(&server.process));
        servers.chain(workers.iter().map(resident)).collect()
    };
    round(1).await;
    let before = memory();
    round(2).await;
    let after = memory();
    for (before, after) in before.iter().zip(&after) {
        assert!(*after <= before + SLACK_MB, "{before} MB became {after} MB");
    }

    let made = stage
        .count("SELECT count(*) FROM departments WHERE name ~ '^R[12]N[0-9]+X$'")
        .await;
    let written: Vec<(Uuid, i64)> = sqlx::query_as(
        "SELECT t.id, count(a.id) FROM turns t LEFT JOIN audit_log a ON a.turn_id = t.id::text
          WHERE t.status = 'answered' GROUP BY t.id",
    )
    .fetch_all(&mut stage.owner().await)
    .await
    .expect("there are turns");
    assert_eq!((made, written.len()), (i64::try_from(2 * TURNS).unwrap(), 2 * TURNS));
    assert!(
        written.iter().all(|(_, rows)| *rows == 1),
        "one row a turn: {written:?}"
    );
    let ends = stage
        .count("SELECT count(*) FROM turn_events WHERE event ->> 'type' = 'ended'")
        .await;
    assert_eq!(ends, i64::try_from(2 * TURNS).unwrap());

    for worker in workers {
        worker.kill().await;
    }
    for server in servers {
        server.process.kill().await;
    }
    stage.finish().await;
}
