//! Points at which a test can stop a call. Without the feature `test-hooks`, which only the tests turn on, they are nothing.

/// After a write's commit, before its reply: where a killed server has done what its caller does not know.
#[cfg(not(feature = "test-hooks"))]
pub(crate) fn between_effect_and_reply() -> std::future::Ready<()> {
    std::future::ready(())
}

/// After a decision was claimed, before the call is run: where a killed server has promised what it has not done.
#[cfg(not(feature = "test-hooks"))]
pub(crate) fn between_claim_and_run(_approval: uuid::Uuid) -> std::future::Ready<()> {
    std::future::ready(())
}

/// In the frame of an admitted call, where its handler begins.
#[cfg(not(feature = "test-hooks"))]
pub(crate) const fn in_handler(_key: &str) {}

#[cfg(feature = "test-hooks")]
pub use decide::{PlainRule, ability, decide};
#[cfg(feature = "test-hooks")]
pub(crate) use panic::in_handler;
#[cfg(feature = "test-hooks")]
pub use panic::{abort_on, panic_on};
#[cfg(feature = "test-hooks")]
pub(crate) use pause::{between_claim_and_run, between_effect_and_reply};
#[cfg(feature = "test-hooks")]
pub use pause::{halt_after_claim, pause_between_effect_and_reply};

#[cfg(feature = "test-hooks")]
mod pause {
    use std::{
        sync::{
            Mutex, PoisonError,
            atomic::{AtomicU64, Ordering},
        },
        time::Duration,
    };
    use uuid::Uuid;

    static HALTED: Mutex<Vec<Uuid>> = Mutex::new(Vec::new());

    /// Makes whoever next decides this never come to running it, as if its process had ended there.
    pub fn halt_after_claim(approval: Uuid) {
        HALTED.lock().unwrap_or_else(PoisonError::into_inner).push(approval);
    }

    pub(crate) async fn between_claim_and_run(approval: Uuid) {
        let is_halted = {
            let mut halted = HALTED.lock().unwrap_or_else(PoisonError::into_inner);
            let at = halted.iter().position(|due| *due == approval);
            at.map(|at| halted.swap_remove(at)).is_some()
        };
        if is_halted {
            std::future::pending::<()>().await;
        }
    }

    static PAUSE_MS: AtomicU64 = AtomicU64::new(0);

    /// Makes every write of this process wait between its commit and its reply, so that a kill finds some there.
    pub fn pause_between_effect_and_reply(pause: Duration) {
        PAUSE_MS.store(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) async fn between_effect_and_reply() {
        let ms = PAUSE_MS.load(Ordering::Relaxed);
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }
}

#[cfg(feature = "test-hooks")]
mod panic {
    use std::sync::{Mutex, PoisonError};

    static KEYS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    static KILLER: Mutex<Option<String>> = Mutex::new(None);

    /// Makes every call whose key ends like this end the process where its handler begins.
    pub fn abort_on(end_of_key: String) {
        *KILLER.lock().unwrap_or_else(PoisonError::into_inner) = Some(end_of_key);
    }

    /// Makes the handler of the next call with this key panic.
    pub fn panic_on(key: String) {
        KEYS.lock().unwrap_or_else(PoisonError::into_inner).push(key);
    }

    #[expect(clippy::panic, reason = "that is what this is for")]
    pub(crate) fn in_handler(key: &str) {
        let killer = KILLER.lock().unwrap_or_else(PoisonError::into_inner);
        if killer.as_ref().is_some_and(|end| key.ends_with(end.as_str())) {
            std::process::abort();
        }
        drop(killer);
        let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        let at = keys.iter().position(|due| due == key);
        if at.map(|at| keys.swap_remove(at)).is_some() {
            drop(keys);
            std::panic::panic_any("a handler's secret detail");
        }
    }
}

#[cfg(feature = "test-hooks")]
mod decide {
    use crate::{
        ability::{Ability, Judge, Policy, Rule, Verdict},
        error::ToolError,
    };
    use serde_json::Value;

    /// A rule in plain words, with equalities that the rows of a school do not have.
    #[derive(Debug, Clone)]
    pub struct PlainRule {
        /// What is done.
        pub action: String,
        /// To what.
        pub resource: String,
        /// What the row's members must equal; none for no condition.
        pub condition: Option<Value>,
        /// Whether it allows.
        pub verdict: Verdict,
    }

    /// Decides as a call's gate does: of rules in their order, about the type alone or about an object.
    ///
    /// # Errors
    ///
    /// When the rule engine fails.
    pub fn decide(
        rules: &[PlainRule],
        action: &str,
        resource: &str,
        object: Option<&Value>,
    ) -> Result<bool, ToolError> {
        let policies = rules.iter().rev().map(|rule| Policy {
            action: rule.action.clone(),
            resource: rule.resource.clone(),
            condition: rule.condition.as_ref().map(Value::to_string).unwrap_or_default(),
            verdict: rule.verdict,
        });
        Judge::new(policies, action, resource)?.decide_on(object)
    }

    /// The ability of whoever has these rules.
    #[must_use]
    pub const fn ability(rules: Vec<Rule>) -> Ability {
        Ability::new(rules)
    }
}
