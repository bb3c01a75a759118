//! `kill -9` of the server, at any moment, under a stream of writes.

use e2e::{
    Stage,
    fixtures::HILLTOP,
    process::Process,
    writers::{Writers, moments},
};
use std::time::{Duration, Instant};

const WRITES: usize = 2000;
const KILLS: usize = 6;
/// Opens the gap between commit and reply in which a kill does most harm.
const GAP: (&str, &str) = ("PAUSE_BEFORE_REPLY_MS", "10");

async fn start(stage: &Stage) -> Process {
    Process::start(
        env!("CARGO_BIN_EXE_server-under-test"),
        &["serve"],
        stage,
        &[GAP, ("LOG", "error,lapin=off")],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn loses_and_repeats_nothing() {
    let stage = Stage::new().await;
    // tries are forgotten when they end; here they are counted for good
    stage
        .arrange(
            "CREATE TABLE run_again (key text);
             CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
             $$ BEGIN INSERT INTO public.run_again VALUES (NEW.key); RETURN NULL; END $$;
             CREATE TRIGGER keep AFTER INSERT OR UPDATE ON delivery_attempts FOR EACH ROW EXECUTE FUNCTION keep()",
        )
        .await;
    let mut server = start(&stage).await;
    let writers = Writers::start(&stage, stage.person(&HILLTOP.email("head")).await);
    let begun = Instant::now();
    let killing = async {
        for moment in moments(KILLS, WRITES) {
            writers.until(moment).await;
            server.kill().await;
            server = start(&stage).await;
        }
        server
    };
    let (answers, server) = tokio::join!(writers.write(WRITES), killing);
    let seconds = begun.elapsed().as_secs_f32();
    let redelivered = stage.count("SELECT count(*) FROM run_again").await;
    eprintln!(
        "{KILLS} kills of the server under {WRITES} writes: {seconds:.1} s, {} tries, {redelivered} calls run again",
        writers.tries()
    );
    assert!(redelivered > 0, "the kills met calls in flight");
    writers.assert_settled(&stage, &answers).await;
    assert!(server.terminate(Duration::from_secs(20)).await);
    assert_eq!(stage.peer().await.waiting().await, 0, "nothing was left unacked");
    stage.finish().await;
}
