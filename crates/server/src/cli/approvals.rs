//! `server approvals`: what waits for somebody, and a decision in their name. The calls are run here; a running server tells their turns.

use crate::{
    config::Config,
    conversation::Person,
    decision::{ApprovalView, Became, Decisions, Ruling},
    execute::Pipeline,
    grant::Door,
};
use clap::{Args, Subcommand};
use serde_json::Value;
use std::{process::ExitCode, sync::Arc};
use uuid::Uuid;

/// The most of a preview in a list, in characters.
const MAX_SUMMARY_CHARS: usize = 300;

/// What is wanted.
#[derive(Debug, Subcommand)]
pub(super) enum ApprovalsCommand {
    /// Print what waits.
    List {
        #[command(flatten)]
        person: Decider,
        /// A JSON object a line, whole.
        #[arg(long)]
        json: bool,
    },
    /// Print one approval as JSON, whatever has become of it.
    Show {
        /// The approval.
        id: Uuid,
        #[command(flatten)]
        person: Decider,
    },
    /// Say yes, and have the call carried out.
    Approve {
        /// The approval.
        id: Uuid,
        #[command(flatten)]
        person: Decider,
    },
    /// Say no.
    Reject {
        /// The approval.
        id: Uuid,
        #[command(flatten)]
        person: Decider,
        /// Why; the model reads it.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Have it asked about with other arguments.
    Edit {
        /// The approval.
        id: Uuid,
        #[command(flatten)]
        person: Decider,
        /// What the tool is to be called with instead, as JSON.
        #[arg(long, value_name = "JSON", value_parser = super::json)]
        args: Value,
    },
}

/// In whose name.
#[derive(Debug, Args)]
pub(super) struct Decider {
    /// The person's e-mail address.
    #[arg(long = "as", value_name = "E-MAIL")]
    email: String,
}

impl From<Decider> for Person {
    fn from(decider: Decider) -> Self {
        Self { email: decider.email }
    }
}

pub(super) async fn approvals(config: Config, command: ApprovalsCommand) -> anyhow::Result<ExitCode> {
    let database = super::connect(&config.roles)?;
    let decisions = Decisions::new(Arc::new(Pipeline::new(database.clone(), config.grants)?));
    let done = run(&decisions, command).await;
    database.close().await;
    done
}

async fn run(decisions: &Decisions, command: ApprovalsCommand) -> anyhow::Result<ExitCode> {
    match command {
        ApprovalsCommand::List { person, json } => {
            for approval in decisions.waiting(&person.into(), Door::Operator).await? {
                super::print(&if json {
                    super::harmless_json(&serde_json::to_string(&approval)?)
                } else {
                    line(&approval)
                })?;
            }
        }
        ApprovalsCommand::Show { id, person } => {
            let approval = decisions.one(&person.into(), Door::Operator, id).await?;
            super::print(&super::harmless_json(&serde_json::to_string_pretty(&approval)?))?;
        }
        ApprovalsCommand::Approve { id, person } => {
            return decide(decisions, person, id, Ruling::approve()).await;
        }
        ApprovalsCommand::Reject { id, person, reason } => {
            return decide(decisions, person, id, Ruling::reject(reason)?).await;
        }
        ApprovalsCommand::Edit { id, person, args } => {
            return decide(decisions, person, id, Ruling::edit(args)).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn decide(decisions: &Decisions, person: Decider, id: Uuid, ruling: Ruling) -> anyhow::Result<ExitCode> {
    let settled = decisions.decide(&person.into(), Door::Operator, id, ruling).await?;
    super::print(&super::harmless_json(&serde_json::to_string_pretty(&settled)?))?;
    Ok(match settled.became {
        Became::Executed | Became::Rejected | Became::Replaced => ExitCode::SUCCESS,
        Became::Failed | Became::AskedAnew | Became::Executing => ExitCode::FAILURE,
    })
}

fn line(approval: &ApprovalView) -> String {
    let whose = if approval.may_decide { "yours" } else { "another's" };
    let line = format!(
        "{}  {}  until {}  {}  {}  for {}: {}  would: {}",
        approval.id,
        approval.created_at.format("%Y-%m-%d %H:%M"),
        approval.expires_at.format("%Y-%m-%d %H:%M"),
        approval.tool,
        whose,
        approval.requester,
        approval.arguments,
        summary(&approval.preview)
    );
    super::harmless(&line)
}

/// What a preview says in plain words, as much as a line has room for; `show` prints all of it.
fn summary(preview: &Value) -> String {
    let members = preview.as_object().into_iter().flatten();
    let plain = members.filter_map(|(name, value)| match value {
        Value::String(text) if text.parse::<Uuid>().is_err() => Some(format!("{name}: {text}")),
        Value::Bool(_) | Value::Number(_) => Some(format!("{name}: {value}")),
        Value::Array(items) => Some(format!("{name}: {} of them", items.len())),
        Value::String(_) | Value::Null | Value::Object(_) => None,
    });
    let text = plain.collect::<Vec<_>>().join(", ");
    if text.chars().nth(MAX_SUMMARY_CHARS).is_none() {
        return text;
    }
    let kept: String = text.chars().take(MAX_SUMMARY_CHARS).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_summary_is_plain_and_short() {
        let id = Uuid::nil();
        let preview = json!({"id": id, "members": 3, "name": "Drama", "heads": [{"name": "A"}], "campusId": null});
        assert_eq!(summary(&preview), "heads: 1 of them, members: 3, name: Drama");
        assert_eq!(summary(&json!([preview])), "");
        let long = summary(&json!({"a": "é".repeat(MAX_SUMMARY_CHARS)}));
        assert_eq!(long.chars().count(), MAX_SUMMARY_CHARS + 1);
    }
}
