//! `server audit tail`: the newest rows of the audit log, and with `--follow` those to come, as they are committed.

use crate::{
    config::RoleUrls,
    db::{
        Database, DbError, Tenant, account,
        operator::{self, Announcements, TrailRow},
    },
};
use anyhow::Context;
use std::{collections::BTreeSet, time::Duration};
use uuid::Uuid;

/// How many rows are remembered, so that none is printed twice where listing and listening overlap.
const REMEMBERED: usize = 10_000;
/// How many rows to read at once of those that may have been missed.
const CATCH_UP: u16 = 1000;
/// How far behind the newest id a row may be committed: calls end sooner, and clocks differ by less.
const LATE: Duration = Duration::from_mins(1);
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
    let mut trail = Trail {
        database: &database,
        tenant,
        json: wanted.json,
        seen: Seen::default(),
    };
    if wanted.follow {
        tokio::select! {
            followed = trail.follow(wanted.rows) => followed?,
            _ = tokio::signal::ctrl_c() => {}
        }
    } else {
        trail.print_newest(wanted.rows).await?;
    }
    database.close().await;
    Ok(())
}

/// Why following stopped.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    /// The database is away, and following goes on once it is back.
    #[error("{0}")]
    Away(#[from] DbError),
    /// Nobody reads what is printed.
    #[error("{0}")]
    Unprintable(#[from] anyhow::Error),
}

/// A tenant's log, and how much of it was printed.
struct Trail<'a> {
    database: &'a Database,
    tenant: Tenant,
    json: bool,
    seen: Seen,
}

impl Trail<'_> {
    async fn print_newest(&mut self, rows: u16) -> anyhow::Result<()> {
        for row in operator::newest(self.database, self.tenant, rows.into()).await? {
            self.seen.is_new(row.id);
            show(&row, self.json)?;
        }
        Ok(())
    }

    /// Prints rows for ever, through as many connections as it takes.
    async fn follow(&mut self, rows: u16) -> anyhow::Result<()> {
        self.skip_what_is_there().await?;
        self.print_newest(rows).await?;
        loop {
            match self.listen().await {
                Stopped::Unprintable(error) => return Err(error),
                Stopped::Away(error) => tracing::warn!(%error, "the database is away; listening again"),
            }
            tokio::time::sleep(AWAY).await;
        }
    }

    /// Takes as seen what is there and near the newest, where catching up looks again.
    async fn skip_what_is_there(&mut self) -> anyhow::Result<()> {
        let newest = operator::newest(self.database, self.tenant, 1).await?;
        let Some(newest) = newest.first() else { return Ok(()) };
        self.seen.is_new(newest.id);
        let mut after = self.seen.catch_up_from();
        while let Some(last) = self.page(after, |_| Ok(())).await? {
            after = last;
        }
        Ok(())
    }

    /// Prints what comes, and first what came since it was last listened for, until the database is away.
    async fn listen(&mut self) -> Stopped {
        let listening = operator::listen(self.database).await;
        let mut announcements = match listening {
            Ok(announcements) => announcements,
            Err(error) => return error.into(),
        };
        if let Err(stopped) = self.catch_up().await {
            return stopped;
        }
        loop {
            if let Err(stopped) = self.print_next(&mut announcements).await {
                return stopped;
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), Stopped> {
        let (mut after, json) = (self.seen.catch_up_from(), self.json);
        while let Some(last) = self.page(after, |row| show(row, json)).await? {
            after = last;
        }
        Ok(())
    }

    /// Takes one page of rows as seen, handing on the new ones; the id to go on after, if more may follow.
    async fn page(
        &mut self,
        after: Uuid,
        new: impl Fn(&TrailRow) -> anyhow::Result<()>,
    ) -> Result<Option<Uuid>, Stopped> {
        let rows = operator::after(self.database, self.tenant, after, CATCH_UP.into()).await?;
        for row in &rows {
            if self.seen.is_new(row.id) {
                new(row)?;
            }
        }
        let full = rows.len() >= usize::from(CATCH_UP);
        Ok(rows.last().filter(|_| full).map(|row| row.id))
    }

    async fn print_next(&mut self, announcements: &mut Announcements) -> Result<(), Stopped> {
        let announced = announcements.next().await?;
        if self.tenant != Tenant::Unscoped && self.tenant != Tenant::School(announced.school_id) {
            return Ok(());
        }
        if let Some(row) = operator::one(self.database, self.tenant, announced.id).await?
            && self.seen.is_new(row.id)
        {
            show(&row, self.json)?;
        }
        Ok(())
    }
}

/// The rows that are not new: printed, or there before following began. The newest of them are remembered.
#[derive(Default)]
struct Seen(BTreeSet<Uuid>);

impl Seen {
    /// Whether a row was not seen before; from now on it was.
    fn is_new(&mut self, id: Uuid) -> bool {
        let new = self.0.insert(id);
        if self.0.len() > REMEMBERED {
            self.0.pop_first();
        }
        new
    }

    /// The id after which rows may have been missed: [`LATE`] before the newest, by the milliseconds that an id begins with. Where
    /// no row was seen there was none, and all are new.
    fn catch_up_from(&self) -> Uuid {
        let newest_ms = self.0.last().map_or(0, |id| id.as_u128() >> 80);
        Uuid::from_u128(newest_ms.saturating_sub(LATE.as_millis()) << 80)
    }
}

fn show(row: &TrailRow, json: bool) -> anyhow::Result<()> {
    super::print(&line(row, json)?)
}

fn line(row: &TrailRow, json: bool) -> anyhow::Result<String> {
    if json {
        return Ok(super::harmless_json(&serde_json::to_string(row)?));
    }
    let resource = row.resource_id.map(|id| id.to_string()).unwrap_or_default();
    let line = format!(
        "{}  {:<10} {:<28} {:<7} {:<12} {resource}  {} by {} {}",
        row.created_at.format("%Y-%m-%d %H:%M:%S%.3fZ"),
        row.school,
        row.actor,
        row.action,
        row.resource_type,
        row.event,
        row.door,
        row.arguments,
    );
    Ok(super::harmless(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_steers_a_terminal() {
        let row = TrailRow {
            id: Uuid::nil(),
            created_at: chrono::DateTime::UNIX_EPOCH,
            school: "hilltop".to_owned(),
            campus: None,
            actor: "a\u{9b}2J@b.example".to_owned(),
            actor_type: "STAFF".to_owned(),
            action: "CREATE".to_owned(),
            resource_type: "STAFF".to_owned(),
            resource_id: None,
            event: "invite.staff_member".to_owned(),
            door: "chat".to_owned(),
            turn_id: None,
            tool_call_id: None,
            arguments: serde_json::json!({"name": "\u{1b}[2J\u{85}\u{7f}"}),
        };
        let json = line(&row, true).unwrap();
        for shown in [&json, &line(&row, false).unwrap()] {
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
        }
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read, serde_json::to_value(&row).unwrap(), "JSON says the same");
    }

    fn id_at(ms: u128) -> Uuid {
        Uuid::from_u128(ms << 80 | 0x7abc << 64 | 0x8def)
    }

    #[test]
    fn a_row_is_new_once() {
        let mut seen = Seen::default();
        assert!(seen.is_new(id_at(1)) && !seen.is_new(id_at(1)) && seen.is_new(id_at(2)));
    }

    #[test]
    fn what_was_committed_late_is_caught_up_with() {
        let mut seen = Seen::default();
        assert_eq!(seen.catch_up_from(), Uuid::nil());
        seen.is_new(id_at(200_000));
        seen.is_new(id_at(150_000));
        let from = seen.catch_up_from();
        assert!(from > id_at(139_999) && from < id_at(140_000), "{from}");
    }

    #[test]
    fn the_newest_are_remembered() {
        let mut seen = Seen::default();
        for ms in 0..=REMEMBERED {
            seen.is_new(id_at(u128::try_from(ms).unwrap()));
        }
        assert_eq!(seen.0.len(), REMEMBERED);
        assert!(!seen.is_new(id_at(1)), "only the oldest is forgotten");
    }
}
