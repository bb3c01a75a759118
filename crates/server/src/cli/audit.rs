//! `server audit tail`: the newest rows of the audit log, and with `--follow` those to come, as they are committed.

use crate::{
    config::RoleUrls,
    db::{
        Database, Tenant, account,
        operator::{self, TrailRow},
    },
};
use anyhow::Context;
use std::{collections::BTreeSet, time::Duration};
use uuid::Uuid;

/// How many printed rows are remembered, so that none is printed twice where listing and listening overlap.
const REMEMBERED: usize = 10_000;
/// How many rows to look through after a lost connection.
const CATCH_UP: u16 = 1000;
/// How long to wait before listening again.
const AWAY: Duration = Duration::from_secs(1);

pub(super) struct Tail {
    pub(super) follow: bool,
    pub(super) school: Option<String>,
    pub(super) json: bool,
    pub(super) rows: u16,
}

pub(super) async fn tail(roles: &RoleUrls, wanted: Tail) -> anyhow::Result<()> {
    let database = super::connect(roles)?;
    let tenant = match &wanted.school {
        None => Tenant::Unscoped,
        Some(slug) => Tenant::School(
            account::school(&database, slug)
                .await?
                .with_context(|| format!("there is no school {slug}"))?,
        ),
    };
    let printed = BTreeSet::new();
    if wanted.follow {
        tokio::select! {
            followed = follow(&database, tenant, printed, &wanted) => followed?,
            _ = tokio::signal::ctrl_c() => {}
        }
    } else {
        print_newest(&database, tenant, &mut { printed }, &wanted).await?;
    }
    database.close().await;
    Ok(())
}

async fn print_newest(
    database: &Database,
    tenant: Tenant,
    printed: &mut BTreeSet<Uuid>,
    wanted: &Tail,
) -> anyhow::Result<()> {
    // after a lost connection, what came meanwhile is among the newest as well
    let rows = if printed.is_empty() { wanted.rows } else { CATCH_UP };
    for row in operator::newest(database, tenant, rows.into()).await? {
        if printed.insert(row.id) {
            show(&row, wanted.json)?;
        }
    }
    Ok(())
}

/// Prints rows for ever, through as many connections as it takes.
async fn follow(database: &Database, tenant: Tenant, mut printed: BTreeSet<Uuid>, wanted: &Tail) -> anyhow::Result<()> {
    let mut announcements = operator::listen(database).await?;
    loop {
        print_newest(database, tenant, &mut printed, wanted).await?;
        let error = loop {
            match announcements.next().await {
                Ok(announced) if tenant == Tenant::Unscoped || tenant == Tenant::School(announced.school_id) => {
                    if let Some(row) = operator::one(database, tenant, announced.id).await?
                        && printed.insert(row.id)
                    {
                        show(&row, wanted.json)?;
                    }
                }
                Ok(_) => {}
                Err(error) => break error,
            }
            if printed.len() > REMEMBERED {
                printed.pop_first();
            }
        };
        tracing::warn!(%error, "the database is away; listening again");
        announcements = loop {
            tokio::time::sleep(AWAY).await;
            match operator::listen(database).await {
                Ok(listening) => break listening,
                Err(error) => tracing::warn!(%error, "the database is still away"),
            }
        };
    }
}

fn show(row: &TrailRow, json: bool) -> anyhow::Result<()> {
    if json {
        return super::print(&serde_json::to_string(row)?);
    }
    let resource = row.resource_id.map(|id| id.to_string()).unwrap_or_default();
    super::print(&format!(
        "{}  {:<10} {:<28} {:<7} {:<12} {resource}  {} by {} {}",
        row.created_at.format("%Y-%m-%d %H:%M:%S%.3fZ"),
        row.school,
        row.actor,
        row.action,
        row.resource_type,
        row.event,
        row.door,
        row.arguments,
    ))
}
