//! An evaluation as it is written down, and the model that plays it: each agent's steps in their order, as far as they are not refused.

use super::template::{Results, as_text, resolve};
use scripted_model::Reply;
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// One task of a playbook: as it is done for somebody who may, and as it ends for somebody who may not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Evaluation {
    /// The playbook, as `persona/name`.
    pub(super) playbook: String,
    pub(super) admitted: Scene,
    pub(super) refused: Scene,
}

/// One turn.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scene {
    /// Who asks, by the name before the `@`.
    pub(super) by: String,
    /// The campus that they work in; the whole school without it.
    #[serde(default)]
    pub(super) campus: Option<String>,
    /// Who approves what needs somebody else's approval.
    #[serde(default)]
    pub(super) approved_by: Option<String>,
    /// What they say.
    pub(super) asks: String,
    /// What the agents do about it.
    pub(super) steps: Vec<Step>,
    /// What the person reads, among other things.
    pub(super) reads: Vec<String>,
    /// What is true in the database afterwards, and was not before.
    #[serde(default)]
    pub(super) effect: Option<String>,
}

/// `[agent, tool, arguments]` or `[agent, what it says]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Step {
    Call(String, String, Value),
    Say(String, String),
}

impl Step {
    fn agent(&self) -> &str {
        match self {
            Self::Call(agent, ..) | Self::Say(agent, _) => agent,
        }
    }
}

impl Scene {
    /// The calls, as agent and tool.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&str, &str)> {
        self.steps.iter().filter_map(|step| match step {
            Step::Call(agent, tool, _) => Some((agent.as_str(), tool.as_str())),
            Step::Say(..) => None,
        })
    }
}

/// What is played now, and what was wrong with the script itself.
#[derive(Debug, Default)]
pub(super) struct Stagehand {
    scene: Mutex<Option<Scene>>,
    faults: Mutex<Vec<String>>,
}

impl Stagehand {
    pub(super) fn play(&self, scene: &Scene) {
        *self.scene.lock().unwrap_or_else(PoisonError::into_inner) = Some(scene.clone());
    }

    pub(super) fn take_faults(&self) -> Vec<String> {
        std::mem::take(&mut self.faults.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the model says next.
    pub(super) fn reply(&self, request: &Value) -> Reply {
        let scene = self.scene.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let said = scene
            .ok_or_else(|| "nothing is played".to_owned())
            .and_then(|scene| next(&scene, request));
        said.unwrap_or_else(|fault| {
            self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
            Reply::text("The script is wrong.")
        })
    }
}

fn next(scene: &Scene, request: &Value) -> Result<Reply, String> {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let system = messages
        .first()
        .and_then(|message| message["content"].as_str())
        .unwrap_or_default();
    let agent = system.strip_prefix("You are ").and_then(|rest| rest.split(',').next());
    let agent = agent.ok_or_else(|| format!("nobody knows who is told this: {system}"))?;
    let since = messages
        .iter()
        .rposition(|message| message["role"] == "user")
        .unwrap_or_default();
    let (results, last) = results(&messages[since..]);
    if let Some(error) = last.as_ref().and_then(|last| last["error"].as_str()) {
        return Ok(Reply::text(format!("That could not be done: {error}")));
    }
    let done = messages[since..]
        .iter()
        .filter(|message| message["role"] == "assistant")
        .count();
    match scene.steps.iter().filter(|step| step.agent() == agent).nth(done) {
        Some(Step::Call(_, tool, arguments)) => Ok(Reply::call(tool, resolve(arguments, &results)?.to_string())),
        Some(Step::Say(_, text)) => Ok(Reply::text(as_text(&resolve(&text.as_str().into(), &results)?))),
        // what a colleague found is passed on as it is
        None => match results.get("task").and_then(|task| task["answer"].as_str()) {
            Some(answer) => Ok(Reply::text(answer)),
            None => Err(format!("{agent} has no step {}", done + 1)),
        },
    }
}

/// What came of the calls: the data by tool, and the whole of the last result.
fn results(messages: &[Value]) -> (Results, Option<Value>) {
    let calls = messages
        .iter()
        .filter_map(|message| message["tool_calls"].as_array())
        .flatten();
    let names: Vec<_> = calls
        .map(|call| (&call["id"], call["function"]["name"].as_str().unwrap_or_default()))
        .collect();
    let mut results = Results::new();
    let mut last = None;
    for message in messages.iter().filter(|message| message["role"] == "tool") {
        let content: Value = serde_json::from_str(message["content"].as_str().unwrap_or_default()).unwrap_or_default();
        if let Some((_, name)) = names.iter().find(|(id, _)| **id == message["tool_call_id"]) {
            results.insert((*name).to_owned(), content["data"].clone());
        }
        last = Some(content);
    }
    (results, last)
}
