//! `server authz explain`: which rules match, and the verdict, without running the tool.

use super::Person;
use crate::{
    ability::{CampusRule, Condition, Rule, Topics, Verdict},
    config::Config,
    db::Access,
    dispatch::{self, DispatchError},
    error::ToolError,
    grant::{Door, GrantKey},
    posture::Auth,
    standing::Standing,
    tenant::in_tenant_scope,
    tools::Handlers,
};
use anyhow::Context;
use contract::tools::{tool_for_event, tool_for_name};
use serde_json::Value;
use std::{process::ExitCode, time::Duration};

const LIMIT: Duration = Duration::from_secs(10);

pub(super) async fn explain(
    config: Config,
    person: Person,
    tool: &str,
    args: Option<Value>,
) -> anyhow::Result<ExitCode> {
    let tool = tool_for_name(tool)
        .or_else(|| tool_for_event(tool))
        .with_context(|| format!("there is no tool {tool}; `server tools` lists them"))?;
    let handlers = Handlers::of_registry()?;
    let handler = handlers
        .get(tool.definition.event.as_str())
        .context("the tool has no handler")?;
    super::print(&format!(
        "tool     {} ({})",
        tool.definition.name,
        super::registry::posture(&tool.definition, &handlers)
    ))?;
    if let Some(args) = args
        && let Err(error) = handler.arguments(args)
    {
        return verdict(false, &error.to_string());
    }
    let database = super::connect(&config.roles)?;
    let standing = standing(&database, &config.grants, person).await;
    database.close().await;
    let standing = match standing {
        Ok(standing) => standing,
        Err(DispatchError::Refused(why)) => return verdict(false, &why.to_string()),
        Err(error) => return Err(error.into()),
    };
    super::print(&format!(
        "person   {} ({})",
        standing.actor.email,
        standing.actor.user_type.as_str()
    ))?;
    match handler.auth {
        Auth::Casl { action, resource } => {
            for (at, rule) in standing.ability.rules().iter().enumerate() {
                if rule.is_about(action, resource) {
                    super::print(&format!("rule {:<3} {}", at + 1, describe(rule, &standing)))?;
                }
            }
            let rows = standing.ability.campuses(action, resource, standing.campus_ids())?;
            super::print(&format!("rows     {}", describe_rows(&rows, &standing)))?;
            match handler.auth.admit(&standing) {
                Ok(_) => verdict(
                    true,
                    "the last rule that matches allows it; rows outside the above answer as unknown",
                ),
                Err(error) => verdict(false, &error.to_string()),
            }
        }
        Auth::Relationship { scope_note } => {
            super::print(&format!("note     {scope_note}"))?;
            verdict(
                true,
                "there is no permission to hold: the handler asserts the relationship with each row",
            )
        }
    }
}

async fn standing(
    database: &crate::db::Database,
    grants: &GrantKey,
    person: Person,
) -> Result<Standing, DispatchError> {
    let minted = dispatch::mint(database, grants, person.wants(Door::Operator, LIMIT)).await?;
    let mut frame = in_tenant_scope(database, &minted.caller, Access::Read, LIMIT, Topics::ALL).await?;
    let standing = Standing::rebuild(&mut frame, &minted.caller);
    frame.tx.rollback().await.map_err(ToolError::from)?;
    Ok(standing?)
}

fn verdict(admitted: bool, why: &str) -> anyhow::Result<ExitCode> {
    super::print(&format!(
        "verdict  {}: {why}",
        if admitted { "admitted" } else { "refused" }
    ))?;
    Ok(if admitted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe(rule: &Rule, standing: &Standing) -> String {
    let verb = match rule.verdict {
        Verdict::Allow => "allows",
        Verdict::Deny => "forbids",
    };
    let rows = match rule.condition {
        Condition::Always => "everywhere".to_owned(),
        Condition::Campus(campus) => format!("on campus {}", standing.campus_name(campus).unwrap_or("unknown")),
        Condition::NoCampus => "on no campus".to_owned(),
    };
    format!("{verb} {} {} {rows}", rule.action, rule.resource)
}

fn describe_rows(rows: &CampusRule, standing: &Standing) -> String {
    match rows {
        CampusRule::All => "all".to_owned(),
        CampusRule::Only { campuses, and_none } => {
            let mut names: Vec<&str> = campuses.iter().filter_map(|&id| standing.campus_name(id)).collect();
            if *and_none {
                names.push("those of no campus");
            }
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        }
    }
}
