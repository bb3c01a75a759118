//! Arranging and comparing: rules that a test gives somebody, grants that no turn was minted for, and the whole database at a glance.

use crate::{Person, Stage, fixtures::School};
use serde_json::Value;
use server::grant::TurnGrant;
use sqlx::AssertSqlSafe;
use std::collections::BTreeMap;
use uuid::Uuid;

/// A rule to be given: action, resource, effect and condition.
pub type GivenRule<'a> = (&'a str, &'a str, &'a str, Option<Value>);

/// Every table with the number and the digest of its rows.
pub type Snapshot = BTreeMap<String, String>;

impl Stage {
    /// All tables of the database, to be compared with what they were before.
    pub async fn snapshot(&self) -> Snapshot {
        let mut owner = self.owner().await;
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'",
        )
        .fetch_all(&mut owner)
        .await
        .expect("the catalog can be read");
        let digests: Vec<String> = tables
            .iter()
            .map(|table| {
                format!(
                    "SELECT '{table}', count(*) || ' rows, ' || coalesce(md5(string_agg(t::text, E'\\n' ORDER BY t::text)), '') \
                     FROM public.{table} t"
                )
            })
            .collect();
        let rows: Vec<(String, String)> = sqlx::query_as(AssertSqlSafe(digests.join(" UNION ALL ")))
            .fetch_all(&mut owner)
            .await
            .expect("the tables can be read");
        assert!(rows.len() > 20, "the tables are there");
        rows.into_iter().collect()
    }

    /// The same person with another grant: one that was never minted for a turn, but is signed with the server's key.
    #[must_use]
    pub fn regranted(&self, person: &Person, change: impl FnOnce(&mut TurnGrant)) -> Person {
        let mut grant = TurnGrant {
            identity: person.identity.clone(),
            scope: person.scope,
            turn_id: Uuid::now_v7(),
            door: person.caller.door(),
            expires_at_ms: crate::stage::now_ms() + 600_000,
        };
        change(&mut grant);
        let grants = &self.config().grants;
        let token = grants.mint(&grant).expect("a grant is JSON");
        let caller = grants.admit(grant.identity.clone(), grant.scope, Some(&token));
        Person {
            turn_id: grant.turn_id,
            identity: grant.identity,
            scope: grant.scope,
            context: person.context.clone(),
            grant: token,
            caller: caller.expect("the grant verifies"),
        }
    }

    /// Gives somebody a role that nobody else has, of this rank and with these rules in their order.
    pub async fn give_rules(&self, school: &School, who: &str, rank: i32, rules: &[GivenRule<'_>]) {
        let mut owner = self.owner().await;
        let role = Uuid::now_v7();
        sqlx::query("INSERT INTO roles (school_id, id, name, rank) VALUES ($1, $2, $3, $4)")
            .bind(school.id())
            .bind(role)
            .bind(format!("{who}, rank {rank}"))
            .bind(rank)
            .execute(&mut owner)
            .await
            .expect("the role is stored");
        for (position, (action, resource, effect, condition)) in (0..).zip(rules) {
            sqlx::query(
                "INSERT INTO role_permissions (school_id, role_id, position, action, resource, effect, condition)
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .bind(school.id())
            .bind(role)
            .bind::<i32>(position)
            .bind(*action)
            .bind(*resource)
            .bind(*effect)
            .bind(condition)
            .execute(&mut owner)
            .await
            .expect("the rule is stored");
        }
        sqlx::query("INSERT INTO user_roles (school_id, staff_id, role_id) VALUES ($1, $2, $3)")
            .bind(school.id())
            .bind(school.staff(who))
            .bind(role)
            .execute(&mut owner)
            .await
            .expect("the role is given");
    }
}
