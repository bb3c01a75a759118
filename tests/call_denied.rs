//! Calls that the pipeline refuses: each leaves nothing, and each has its admitted twin.

use contract::AgentToolResult;
use e2e::{
    Stage,
    fixtures::HILLTOP,
    stage::{data, error, incoming},
};
use serde_json::json;

#[tokio::test]
async fn leaves_no_row() {
    let stage = Stage::new().await;
    let before = stage.count("SELECT count(*) FROM departments").await;
    let teacher = stage.person(&HILLTOP.email("class.teacher")).await;
    let refused = error(
        stage
            .call(&teacher, "create_department", json!({"name": "Drama"}))
            .await,
    );
    assert_eq!(refused, "Permission denied: you may not CREATE DEPARTMENT.");
    assert_eq!(stage.count("SELECT count(*) FROM departments").await, before);
    assert_eq!(
        (
            stage.audit_rows().await,
            stage.count("SELECT count(*) FROM tool_calls").await
        ),
        (0, 0)
    );

    let head = stage.person(&HILLTOP.email("head")).await;
    data(stage.call(&head, "create_department", json!({"name": "Drama"})).await);
    assert_eq!(stage.count("SELECT count(*) FROM departments").await, before + 1);
    assert_eq!(stage.audit_rows().await, 1);
    stage.finish().await;
}

/// What is wrong with a call.
type Change = fn(&mut server::execute::Incoming, &e2e::Person);

#[tokio::test]
async fn without_a_grant_for_exactly_this_identity() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let clerk = stage.person(&HILLTOP.email("clerk")).await;
    let call = |change: fn(&mut server::execute::Incoming, &e2e::Person)| {
        let mut call = incoming(&head, "create_department", json!({"name": "Drama"}), "1");
        change(&mut call, &clerk);
        stage.pipeline().execute(call)
    };
    let cases: [(Change, &str); 3] = [
        (|call, _| call.grant = None, "carries no turn grant"),
        (
            |call, clerk| {
                call.grant = Some(clerk.grant.clone());
                call.key = format!("{}:1", clerk.turn_id);
            },
            "for another identity or scope",
        ),
        (
            |call, _| call.key = "elsewhere:1".to_owned(),
            "key belongs to another turn",
        ),
    ];
    for (change, why) in cases {
        let refused = error(call(change).await);
        assert!(
            refused.starts_with("Permission denied") && refused.contains(why),
            "{refused}"
        );
    }
    assert_eq!(stage.audit_rows().await, 0);
    assert!(call(|_, _| {}).await.is_data());
    stage.finish().await;
}

#[tokio::test]
async fn with_a_deadline_that_has_passed() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let mut late = incoming(&head, "create_department", json!({"name": "Drama"}), "1");
    late.deadline_ms = e2e::stage::now_ms() - 1;
    let refused: AgentToolResult = stage.pipeline().execute(late).await;
    assert_eq!(
        error(refused),
        "The time for this call has run out. It was not carried out."
    );
    assert_eq!(stage.audit_rows().await, 0);
    stage.finish().await;
}
