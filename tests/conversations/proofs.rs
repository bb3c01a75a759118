//! What proves that whoever claims a turn or reports of it may: a grant whose time is not over, and the run that has it.

use super::*;
use e2e::stage::now_ms;
use server::grant::{Door, TurnGrant};

impl Scene {
    /// The message of a turn, with a grant of it that ends then.
    async fn with_grant_until(&self, turn: &TurnMessage, expires_at_ms: i64) -> TurnMessage {
        let head = self.stage.person(&HILLTOP.email("head")).await;
        let grant = TurnGrant {
            identity: head.identity,
            scope: head.scope,
            turn_id: turn.turn_id,
            door: Door::Chat,
            expires_at_ms,
        };
        let grant = self.stage.config().grants.mint(&grant).expect("a grant is minted");
        TurnMessage { grant, ..turn.clone() }
    }

    async fn attempts(&self) -> i64 {
        self.stage.count("SELECT sum(attempt)::bigint FROM turns").await
    }
}

#[tokio::test]
async fn a_grant_that_is_over_claims_nothing() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.unclaimed(&thread, "Whose is it?").await;
    let over = scene.with_grant_until(&turn, now_ms() - 60_000).await;
    for redelivered in [false, true] {
        let claimed = scene.worker.claim(&over, Uuid::new_v4(), redelivered).await;
        assert_eq!(claimed, TurnClaimed::Refused {});
    }
    assert_eq!(scene.attempts().await, 0);
    let run = Uuid::new_v4();
    let claimed = scene.worker.claim(&turn, run, false).await;
    assert!(matches!(claimed, TurnClaimed::Granted { attempt: 1, .. }));
    // nor does it take the turn from whoever has it
    let claimed = scene.worker.claim(&over, Uuid::new_v4(), true).await;
    assert_eq!(claimed, TurnClaimed::Refused {});
    let mut done = report(&turn, 1, 1, vec![answer("Mine.")]);
    done.run = Some(run);
    assert_eq!(scene.worker.tell(&done).await, ReportTaken::GoOn);
    scene.finish().await;
}

/// Its worker was lost when its time was nearly over, and it is delivered again only after that.
#[tokio::test]
async fn a_turn_that_is_delivered_again_late_goes_on_with_a_fresh_grant() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Take your time.").await;
    scene
        .stage
        .arrange("UPDATE turns SET deadline_at = now() - interval '2 seconds'")
        .await;
    let late = scene.with_grant_until(&turn, now_ms() - 2000).await;
    let next = scene.taken_over(&late).await;
    assert!(next.deadline_ms > now_ms() + 60_000, "there is time for it");
    let done = report(&next, 2, 1, vec![answer("Done.")]);
    assert_eq!(scene.worker.tell(&done).await, ReportTaken::GoOn);
    scene.finish().await;
}

/// Every attempt has a number that can be guessed.
#[tokio::test]
async fn a_report_is_of_the_run_that_has_the_turn() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.unclaimed(&thread, "Whose is it?").await;
    let run = Uuid::new_v4();
    scene.worker.claim(&turn, run, false).await;
    let of = |run: Option<Uuid>, first: u32, event: TurnEvent| TurnReport {
        run,
        ..report(&turn, 1, first, vec![event])
    };
    let forged = of(Some(Uuid::new_v4()), 1, answer("All done, trust me."));
    assert_eq!(scene.worker.tell(&forged).await, ReportTaken::Superseded);
    assert_eq!(scene.stage.count("SELECT count(*) FROM turn_events").await, 0);
    // a worker of the version before says none
    for told in [of(Some(run), 1, text("a")), of(None, 2, text("b"))] {
        assert_eq!(scene.worker.tell(&told).await, ReportTaken::GoOn);
    }
    // and that only as long as its grant lasts, where its own run is known for longer
    let over = scene.with_grant_until(&turn, now_ms() - 120_000).await;
    for (run, taken) in [(None, ReportTaken::Superseded), (Some(run), ReportTaken::GoOn)] {
        let late = TurnReport {
            grant: over.grant.clone(),
            ..of(run, 3, text("c"))
        };
        assert_eq!(scene.worker.tell(&late).await, taken);
    }
    let asked = TurnEvent::Asked {
        agent: "Rover".into(),
        tool_call_id: "q".into(),
        question: "Which?".into(),
        choices: Vec::new(),
    };
    scene.worker.tell(&of(Some(run), 4, asked)).await;
    for (run, taken) in [
        (Some(run), ReportTaken::GoOn),
        (Some(run), ReportTaken::GoOn),
        (Some(Uuid::new_v4()), ReportTaken::Superseded),
    ] {
        let waits = of(run, 5, TurnEvent::Waiting {});
        assert_eq!(
            scene.worker.tell(&waits).await,
            taken,
            "it waits, however often that is told"
        );
    }
    scene.finish().await;
}
