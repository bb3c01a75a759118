//! Streams of events: how many there may be, and until when they go on.

use super::*;
use e2e::stage::now_ms;
use jsonwebtoken::{EncodingKey, Header, encode};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// So many streams of an account there may be.
const STREAMS: usize = 16;
/// How long a stream may take to end whose reader is looked at every fifteen seconds.
const PATIENCE: Duration = Duration::from_mins(1);

async fn rest(events: http::Events) -> Vec<Event> {
    timeout(PATIENCE, events.all()).await.expect("the stream ends")
}

#[tokio::test]
async fn of_one_account_leave_the_door_open_for_the_others() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.unclaimed(&thread, "Hello").await.turn_id.to_string();
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        open.push(scene.head.follow(&turn, None).await);
    }
    let refused = scene.head.try_follow(&turn, None).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    assert!(refused.headers().contains_key("retry-after"));
    let at_once = scene
        .head
        .try_stream("/v1/threads", &json!({"message": "And now?"}))
        .await;
    assert_eq!(at_once.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        scene.stage.count("SELECT count(*) FROM threads").await,
        1,
        "nothing was begun for it"
    );
    // what is answered at once is, and so is anybody else
    assert_eq!(scene.head.get(&format!("/v1/turns/{turn}")).await.0, StatusCode::OK);
    let other = scene.server.person(&scene.stage, &RIVERSIDE.email("head")).await;
    other.stream("/v1/threads", &json!({"message": "Hello"})).await;

    open.pop();
    let again = async {
        while scene.head.try_follow(&turn, None).await.status() != StatusCode::OK {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, again).await.expect("its place is free again");
    scene.finish().await;
}

#[tokio::test]
async fn end_soon_after_their_reader_may_not_come_in_any_more() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Tell me.").await;
    let mut events = scene.head.follow(&turn.turn_id.to_string(), None).await;
    scene.worker.tell(&report(&turn, 1, 1, vec![text("before")])).await;
    assert_eq!(events.next().await.unwrap().data["delta"], "before");
    let leave = format!("UPDATE staff SET active = false WHERE id = '{}'", HILLTOP.staff("head"));
    scene.stage.arrange(&leave).await;
    assert_eq!(rest(events).await, []);
    let running = "SELECT count(*) FROM turns WHERE ended_at IS NULL";
    assert_eq!(scene.stage.count(running).await, 1, "it is not the turn that has ended");
    scene.finish().await;
}

#[tokio::test]
async fn end_with_the_token_that_they_were_opened_with() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Tell me.").await.turn_id.to_string();
    // taken for as long as clocks may be apart
    let ends = now_ms() / 1000 - 20;
    let claims = json!({"email": HILLTOP.email("head"), "iss": "local", "aud": "school", "exp": ends});
    let key = EncodingKey::from_secret(AUTH[0].1.as_bytes()).expect("a secret can sign");
    let token = encode(&Header::default(), &claims, &key).expect("a token is signed");
    let short = scene.head.with_token(token);
    assert_eq!(rest(short.follow(&turn, None).await).await, []);
    assert_eq!(short.try_follow(&turn, None).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(scene.head.try_follow(&turn, None).await.status(), StatusCode::OK);
    scene.finish().await;
}

#[tokio::test]
async fn end_with_their_turn_wherever_they_were_to_begin() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Tell me.").await;
    let id = turn.turn_id.to_string();
    let beyond = scene.head.follow(&id, Some("2147483647.2147483647")).await;
    scene.worker.tell(&report(&turn, 1, 1, vec![answer("Done.")])).await;
    assert_eq!(rest(beyond).await, []);
    assert_eq!(scene.head.follow(&id, None).await.all().await.len(), 1);
    scene.finish().await;
}
