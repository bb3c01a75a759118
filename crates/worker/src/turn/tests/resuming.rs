//! A turn that is kept comes to the same end wherever it is killed, and however often.
//!
//! The fakes here count the points at which a turn waits for something: a model, a call, the books. A run is killed at
//! each of them in turn, and another goes on from what the books have.

mod replaying;
mod waiting;
mod world;

use super::*;
use contract::turn::JournalEntry;
use std::collections::BTreeSet;
use world::{Storing, World};

/// Everything that must be the same however a turn came to its end.
#[derive(Debug, PartialEq)]
struct Outcome {
    answer: String,
    /// The keys of what was done.
    effects: BTreeSet<String>,
    /// The names of what was kept.
    kept: BTreeSet<String>,
    /// What the models read in each step, by its name.
    read: Vec<(String, Value)>,
}

async fn outcome(world: &Arc<World>) -> Outcome {
    let answer = world.finish().await;
    let kept: Vec<String> = world.stored().iter().map(JournalEntry::name).collect();
    let (names, effects) = (kept.iter().cloned().collect::<BTreeSet<_>>(), world.effects());
    assert_eq!(names.len(), kept.len(), "each is kept once: {kept:?}");
    let done: BTreeSet<String> = effects.iter().cloned().collect();
    assert_eq!(done.len(), effects.len(), "each is done once: {effects:?}");
    Outcome {
        answer,
        effects: done,
        kept: names,
        read: world.read(),
    }
}

#[tokio::test]
async fn without_a_kill_everything_is_asked_done_and_told_once() {
    for storing in [Storing::AtOnce, Storing::Late] {
        let world = World::new(storing, Vec::new());
        let outcome = outcome(&world).await;
        assert_eq!(outcome.answer, "All done.");
        let keys = ["create", "delete"].map(|id| format!("{}:{id}", Uuid::from_u128(9)));
        assert_eq!(outcome.effects, keys.into());
        let kept = "#1 #2 #3 t#1 t#2 t#3 =list =create =where =t =delete =map =t/mine =t/which =t/drop =t/roster";
        assert_eq!(outcome.kept, kept.split(' ').map(str::to_owned).collect());
        assert_eq!(world.runs(), 3, "it waited for the questions, and for the approval");
        let told = world.told();
        let mut once = told.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), told.len(), "{told:?}");
        for event in [
            "asked where",
            "asked t/which",
            "approval_asked delete",
            "delegated t",
            "tool_started t/roster",
        ] {
            assert!(told.contains(&event.to_owned()), "{event} in {told:?}");
        }
    }
}

/// fault 12, fault 49
#[tokio::test]
async fn killed_at_each_point_the_end_is_the_same() {
    for storing in [Storing::AtOnce, Storing::Late] {
        let expected = outcome(&World::new(storing, Vec::new())).await;
        let mut point = 1;
        loop {
            let world = World::new(storing, vec![point]);
            assert_eq!(outcome(&world).await, expected, "killed at {point}, stored {storing:?}");
            if world.kills() == 0 {
                break;
            }
            point += 1;
        }
        assert!(point > 25, "only {point} points");
    }
}

#[tokio::test]
async fn killed_again_and_again_the_end_is_the_same() {
    for storing in [Storing::AtOnce, Storing::Late] {
        let expected = outcome(&World::new(storing, Vec::new())).await;
        for first in (1..30).step_by(2) {
            for second in [1, 3, 8] {
                let world = World::new(storing, vec![first, second, second, 1]);
                assert_eq!(
                    outcome(&world).await,
                    expected,
                    "killed at {first} and {second}, stored {storing:?}"
                );
            }
        }
    }
}
