//! How much of the house one person, one turn or one worker can take.

use super::*;
use contract::turn::MAX_COUNTED_TOKENS;
use futures_util::future::join_all;
use reqwest::StatusCode;

fn usage(tokens: u64) -> TurnEvent {
    TurnEvent::Usage {
        agent: "Rover".into(),
        input_tokens: tokens,
        output_tokens: tokens,
    }
}

fn kept(number: usize, bytes: usize) -> JournalEntry {
    JournalEntry::Result {
        tool_call_id: format!("c{number}"),
        content: "x".repeat(bytes),
        succeeded: true,
    }
}

/// All schools' turns wait in one queue.
#[tokio::test]
async fn so_many_turns_of_a_person_are_open_at_once() {
    let scene = Scene::with(&[("OPEN_TURNS", "3")]).await;
    let other = Server::on(&scene.stage).await;
    let doors = [scene.head.clone(), scene.head.at(&other)];
    let hello = json!({"message": "Hello"});
    let said = join_all((0..12).map(|number| doors[number % 2].post("/v1/threads", &hello))).await;
    let (begun, refused): (Vec<_>, Vec<_>) = said
        .into_iter()
        .partition(|(status, _)| *status == StatusCode::ACCEPTED);
    assert_eq!((begun.len(), refused.len()), (3, 9), "{refused:?}");
    for (status, problem) in &refused {
        assert_eq!(*status, StatusCode::TOO_MANY_REQUESTS, "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with("3 of your messages"), "{detail}");
    }
    assert_eq!(scene.stage.count("SELECT count(*) FROM turns").await, 3);

    let colleague = scene.server.person(&scene.stage, &HILLTOP.email("admin")).await;
    assert_eq!(colleague.post("/v1/threads", &hello).await.0, StatusCode::ACCEPTED);
    let cancel = format!("/v1/turns/{}/cancel", begun[0].1["id"].as_str().unwrap());
    assert_eq!(scene.head.post(&cancel, &json!({})).await.0, StatusCode::ACCEPTED);
    assert_eq!(scene.head.post("/v1/threads", &hello).await.0, StatusCode::ACCEPTED);
    assert_eq!(
        scene.head.post("/v1/threads", &hello).await.0,
        StatusCode::TOO_MANY_REQUESTS
    );
    other.process.kill().await;
    scene.finish().await;
}

/// What an endpoint counts, or a worker says that it did, is nobody's word but its own.
#[tokio::test]
async fn no_count_of_tokens_breaks_a_sum() {
    let scene = Scene::with(&[("DAILY_TOKENS", "1000000000000")]).await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Count.").await;
    for number in 1..=3 {
        let counted = report(&turn, 1, number, vec![usage(u64::MAX)]);
        assert_eq!(scene.worker.tell(&counted).await, ReportTaken::GoOn);
    }
    let spent = "SELECT sum(tokens)::bigint FROM turn_tokens";
    let most = i64::try_from(MAX_COUNTED_TOKENS).unwrap();
    assert_eq!(scene.stage.count(spent).await, 6 * most);
    let told = "SELECT max((event ->> 'inputTokens')::numeric)::bigint FROM turn_events";
    assert_eq!(scene.stage.count(told).await, most, "and nobody is shown more");

    // whatever is there already
    let colleague = scene.server.person(&scene.stage, &HILLTOP.email("admin")).await;
    let theirs = colleague.thread(&json!({})).await;
    colleague.turn(&theirs, "Mine").await;
    let second = scene.worker.take_turn().await;
    scene.worker.claim(&second, Uuid::new_v4(), false).await;
    let counted = report(&second, 1, 1, vec![usage(1)]);
    assert_eq!(scene.worker.tell(&counted).await, ReportTaken::GoOn);
    scene
        .stage
        .arrange("UPDATE turn_tokens SET tokens = 9223372036854775807")
        .await;
    let counted = report(&second, 1, 2, vec![usage(1), answer("Done.")]);
    assert_eq!(scene.worker.tell(&counted).await, ReportTaken::OverBudget);
    let ended = colleague.get(&format!("/v1/turns/{}", second.turn_id)).await.1;
    assert_eq!(ended["status"], "answered");
    let (status, problem) = colleague
        .post(&format!("/v1/threads/{theirs}/turns"), &json!({"message": "More"}))
        .await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{problem}");
    assert_eq!(scene.worker.dead_reports().await, 0);
    scene.finish().await;
}

/// All that is kept of a turn goes into the reply to a claim.
#[tokio::test]
async fn what_is_kept_of_a_turn_is_bounded_in_bytes() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.unclaimed(&thread, "Keep it.").await;
    let run = Uuid::new_v4();
    scene.worker.claim(&turn, run, false).await;
    let keeping = |number: usize, bytes: usize| {
        let place = u32::try_from(number).unwrap();
        let mut keeping = report(&turn, 1, place, vec![TurnEvent::Started {}]);
        keeping.journal = vec![kept(number, bytes)];
        keeping
    };
    for number in 1..=9 {
        assert_eq!(scene.worker.tell(&keeping(number, 900_000)).await, ReportTaken::GoOn);
    }
    scene.worker.report(&keeping(10, 900_000)).await;
    scene.worker.until_dead_reports(1).await;
    assert_eq!(scene.stage.count("SELECT count(*) FROM turn_messages").await, 9);
    assert_eq!(scene.stage.count("SELECT count(*) FROM turn_events").await, 9);
    // what is there already, and what there is room for
    for (number, bytes) in [(9, 900_000), (10, 1000)] {
        assert_eq!(scene.worker.tell(&keeping(number, bytes)).await, ReportTaken::GoOn);
    }
    let TurnClaimed::Granted { journal, .. } = scene.worker.claim(&turn, run, false).await else {
        panic!("it is its own")
    };
    assert_eq!(journal.len(), 10);
    scene.finish().await;
}

#[tokio::test]
async fn what_is_kept_of_a_turn_is_bounded_in_number() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Keep it.").await;
    let keeping = |first: usize| {
        let mut keeping = report(&turn, 1, 1, Vec::new());
        keeping.journal = (first..first + 256).map(|number| kept(number, 1)).collect();
        keeping
    };
    for part in 0..16 {
        assert_eq!(scene.worker.tell(&keeping(part * 256)).await, ReportTaken::GoOn);
    }
    scene.worker.report(&keeping(16 * 256)).await;
    scene.worker.until_dead_reports(1).await;
    assert_eq!(scene.stage.count("SELECT count(*) FROM turn_messages").await, 4096);
    scene.finish().await;
}

#[tokio::test]
async fn an_answer_names_a_call_as_calls_can_be_named() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Ask me.").await;
    let id = "q".repeat(199);
    let asked = TurnEvent::Asked {
        agent: "Rover".into(),
        tool_call_id: id.clone(),
        question: "Which?".into(),
        choices: Vec::new(),
    };
    let waits = report(&turn, 1, 1, vec![asked, TurnEvent::Waiting {}]);
    assert_eq!(scene.worker.tell(&waits).await, ReportTaken::GoOn);
    let path = format!("/v1/turns/{}/answers", turn.turn_id);
    for none in ["a\u{0}", "", "q", &"q".repeat(200), &"q".repeat(60_000)] {
        let (status, problem) = scene
            .head
            .post(&path, &json!({"toolCallId": none, "answer": "This"}))
            .await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{problem}");
    }
    let (status, problem) = scene
        .head
        .post(&path, &json!({"toolCallId": id, "answer": "This"}))
        .await;
    assert_eq!(status, StatusCode::ACCEPTED, "{problem}");
    scene.finish().await;
}
