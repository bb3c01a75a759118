//! Runs of a turn that are lost around a call that waits: what they tell twice is told once.

use super::{Asked, keep_turn};
use contract::{
    envelope::PendingApproval,
    turn::{ToolOutcome, TurnClaim, TurnClaimed, TurnEvent, TurnReport},
};
use server::{conversation::Conversations, db::Database, decision::Ruling};
use uuid::Uuid;

struct Kept {
    asked: Asked,
    conversations: Conversations,
}

impl Kept {
    async fn new() -> Self {
        let asked = Asked::new().await;
        keep_turn(&asked.stage, &asked.admin).await;
        let database = Database::connect_lazily(&asked.stage.config().roles).unwrap();
        let conversations = Conversations::new(database, asked.stage.config().grants.clone(), 1_000_000);
        Self { asked, conversations }
    }

    async fn claim(&self, dispatch: u32, redelivered: bool) -> TurnClaimed {
        let claim = TurnClaim {
            turn_id: self.asked.admin.turn_id,
            grant: self.asked.admin.grant.clone(),
            dispatch,
            run: Uuid::new_v4(),
            redelivered,
        };
        self.conversations.claim(&claim).await.unwrap().reply
    }

    async fn report(&self, attempt: u32, events: Vec<TurnEvent>) {
        let report = TurnReport {
            turn_id: self.asked.admin.turn_id,
            grant: self.asked.admin.grant.clone(),
            attempt,
            run: None,
            first: 1,
            events,
            journal: Vec::new(),
        };
        self.conversations.record(&report).await.unwrap();
    }

    /// That the call waits, as its run tells.
    fn asks(&self) -> Vec<TurnEvent> {
        let (agent, tool_call_id, tool) = ("Rover".to_owned(), "1".to_owned(), super::TOOL.to_owned());
        vec![
            TurnEvent::ToolStarted {
                agent: agent.clone(),
                tool_call_id: tool_call_id.clone(),
                tool: tool.clone(),
            },
            TurnEvent::ApprovalAsked {
                agent,
                tool_call_id,
                tool,
                pending: PendingApproval {
                    approval_id: self.asked.id,
                    preview: serde_json::Value::Null,
                    expires_at: chrono::DateTime::default(),
                },
                scope_context: String::new(),
            },
        ]
    }

    async fn tell(&self) {
        self.asked.stage.decisions().tell(&self.conversations).await.unwrap();
    }

    async fn told(&self) -> Vec<String> {
        let kinds = "SELECT event ->> 'type' FROM turn_events ORDER BY attempt, place";
        let kinds = sqlx::query_scalar(kinds);
        kinds.fetch_all(&mut self.asked.stage.owner().await).await.unwrap()
    }
}

#[tokio::test]
async fn ask_once_for_the_same_approval() {
    let kept = Kept::new().await;
    assert!(matches!(
        kept.claim(1, false).await,
        TurnClaimed::Granted { attempt: 1, .. }
    ));
    kept.report(1, kept.asks()).await;
    assert_eq!(kept.claim(1, true).await, TurnClaimed::Refused {}, "the first is lost");
    assert!(matches!(
        kept.claim(2, false).await,
        TurnClaimed::Granted { attempt: 2, .. }
    ));
    let mut events = kept.asks();
    events.push(TurnEvent::Waiting {});
    kept.report(2, events).await;
    kept.asked.decide("admin", Ruling::approve()).await.unwrap();
    kept.tell().await;
    kept.tell().await;
    assert_eq!(
        kept.told().await,
        [
            "tool_started",
            "approval_asked",
            "tool_started",
            "waiting",
            "decided",
            "tool_ended"
        ]
    );
    kept.asked.stage.finish().await;
}

/// A run that comes to the call again before it is told reads what came of it, and tells that itself.
#[tokio::test]
async fn end_the_call_once() {
    let kept = Kept::new().await;
    kept.claim(1, false).await;
    kept.report(1, kept.asks()).await;
    kept.asked.decide("admin", Ruling::approve()).await.unwrap();
    kept.tell().await;
    assert_eq!(
        kept.told().await,
        ["tool_started", "approval_asked"],
        "a run has the turn"
    );
    assert_eq!(kept.claim(1, true).await, TurnClaimed::Refused {}, "the first is lost");
    assert!(matches!(
        kept.claim(2, false).await,
        TurnClaimed::Granted { attempt: 2, .. }
    ));
    let ended = TurnEvent::ToolEnded {
        agent: "Rover".into(),
        tool_call_id: "1".into(),
        tool: super::TOOL.into(),
        outcome: ToolOutcome::ScopeContext("All.".into()),
    };
    kept.report(2, vec![TurnEvent::Started {}, ended]).await;
    assert_eq!(
        kept.told().await,
        ["tool_started", "approval_asked", "decided", "tool_ended", "started"]
    );
    kept.asked.stage.finish().await;
}

/// What is asked anew while a run has the turn is told when that waits, behind what it told itself.
#[tokio::test]
async fn are_told_what_was_asked_anew_meanwhile() {
    let kept = Kept::new().await;
    kept.claim(1, false).await;
    kept.asked
        .stage
        .arrange("UPDATE approvals SET contract_hash = repeat('0', 64)")
        .await;
    let anew = kept.asked.decide("admin", Ruling::approve()).await.unwrap().approval;
    kept.tell().await;
    assert_eq!(kept.told().await, [""; 0]);
    let mut events = kept.asks();
    events.push(TurnEvent::Waiting {});
    kept.report(1, events).await;
    let asked_anew = [
        "tool_started",
        "approval_asked",
        "waiting",
        "decided",
        "approval_asked",
        "waiting",
    ];
    assert_eq!(kept.told().await, asked_anew);
    super::decide(&kept.asked.stage, "admin", anew.id, Ruling::approve())
        .await
        .unwrap();
    kept.tell().await;
    kept.tell().await;
    let told = kept.told().await;
    assert_eq!(
        (&told[..6], &told[6..]),
        (
            &asked_anew.map(str::to_owned)[..],
            &["decided".to_owned(), "tool_ended".to_owned()][..]
        )
    );
    kept.asked.stage.finish().await;
}
