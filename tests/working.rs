//! A worker in this process with a scripted model, and a turn at the door that it answers.

use crate::http::{Event, Visitor};
use e2e::Stage;
use reqwest::StatusCode;
use scripted_model::{Script, ScriptedModel};
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinSet};

/// A worker that runs in this process, with the demo model.
pub(crate) struct Working {
    stop: oneshot::Sender<()>,
    task: JoinSet<()>,
    _model: ScriptedModel,
}

impl Working {
    pub(crate) async fn on(stage: &Stage) -> Self {
        Self::with(stage, Script::rules()).await
    }

    pub(crate) async fn with(stage: &Stage, script: Script) -> Self {
        let model = ScriptedModel::start(script).await.expect("the model listens");
        let (url, variables) = (model.base_url(), stage.variables().clone());
        let config = worker::Config::from_lookup(|name| match name {
            "OPENAI_BASE_URL" => Some(url.clone()),
            "MODEL" => Some("scripted-demo".to_owned()),
            _ => variables.get(name).cloned(),
        });
        let config = config.expect("the worker's settings are right");
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = oneshot::channel();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let stopped = async { drop(stopped.await) };
            let ready = || ready.send(()).expect("somebody waits for it");
            worker::run_with(config, stopped, ready)
                .await
                .expect("the worker ends in order");
        });
        is_ready.await.expect("the worker becomes ready");
        Self {
            stop,
            task,
            _model: model,
        }
    }

    pub(crate) async fn stop(self) {
        drop(self.stop);
        self.task.join_all().await;
    }
}

/// A turn at the HTTP door: the kinds of its events, and the last one.
pub(crate) async fn talk(visitor: &Visitor, thread: &str, message: &str) -> (Vec<Event>, Value) {
    let turn = visitor.turn(thread, message).await;
    let events = visitor.follow(&turn, None).await.all().await;
    let last = events.last().expect("a turn has events").data["outcome"].clone();
    (events, last)
}

/// The same turn where each call that waits for a yes gets it, from whoever decides.
pub(crate) async fn talk_approved(
    visitor: &Visitor,
    decider: &Visitor,
    thread: &str,
    message: &str,
) -> (Vec<Event>, Value) {
    let turn = visitor.turn(thread, message).await;
    let mut follow = visitor.follow(&turn, None).await;
    let (mut events, mut asked) = (Vec::new(), Vec::new());
    while let Some(event) = follow.next().await {
        match event.kind.as_str() {
            "approval_asked" => asked.push(event.data["approvalId"].as_str().expect("it has an id").to_owned()),
            "waiting" => {
                for id in asked.drain(..) {
                    let path = format!("/v1/approvals/{id}/decision");
                    let (status, settled) = decider.post(&path, &json!({"decision": "approve"})).await;
                    assert_eq!(status, StatusCode::OK, "{settled}");
                }
            }
            _ => {}
        }
        events.push(event);
    }
    let last = events.last().expect("a turn has events").data["outcome"].clone();
    (events, last)
}
