//! The engine that decides one question: casbin, over the few rules that can matter to it.

use super::{Condition, Rule, Verdict};
use crate::error::ToolError;
use casbin::{CoreApi, DefaultModel, Enforcer, Model, function_map::OperatorFunction, rhai::Dynamic};
use futures_util::FutureExt;
use serde_json::{Map, Value, json};
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{LazyLock, Mutex, PoisonError},
};
use uuid::Uuid;

/// Rules are inserted in reverse, so casbin's first match is the last rule.
const MODEL: &str = r#"
[request_definition]
r = act, res, obj
[policy_definition]
p = act, res, cond, eft
[policy_effect]
e = priority(p.eft) || deny
[matchers]
m = (p.res == r.res || p.res == "ALL") && (p.act == r.act || p.act == "MANAGE") && (p.cond == "" || holds(p.cond, p.eft, r.obj))
"#;

/// The model, parsed once; `None` only if the text above is broken, which [`self_test`] reports at start-up.
static PARSED: LazyLock<Option<DefaultModel>> =
    LazyLock::new(|| DefaultModel::from_str(MODEL).now_or_never().and_then(Result::ok));

/// A rule as casbin reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) action: String,
    pub(crate) resource: String,
    /// A JSON object of equalities; empty for none.
    pub(crate) condition: String,
    pub(crate) verdict: Verdict,
}

impl Policy {
    pub(super) fn of(rule: &Rule) -> Self {
        let condition = match rule.condition {
            Condition::Always => String::new(),
            Condition::Campus(campus) => json!({"campusId": campus}).to_string(),
            Condition::NoCampus => json!({"campusId": null}).to_string(),
        };
        Self {
            action: rule.action.as_str().to_owned(),
            resource: rule.resource.as_str().to_owned(),
            condition,
            verdict: rule.verdict,
        }
    }

    fn into_row(self) -> Vec<String> {
        let effect = match self.verdict {
            Verdict::Allow => "allow",
            Verdict::Deny => "deny",
        };
        vec![self.action, self.resource, self.condition, effect.to_owned()]
    }
}

/// A casbin engine over the rules of one question.
pub(crate) struct Judge {
    /// Absent where there is no rule: casbin would evaluate the matcher once even then.
    engine: Option<Enforcer>,
    action: String,
    resource: String,
    /// What was answered about rows of a campus, or of none.
    rows: Mutex<HashMap<Option<Uuid>, bool>>,
}

impl Judge {
    /// `policies` in order of precedence, the deciding one first.
    pub(crate) fn new(policies: impl Iterator<Item = Policy>, action: &str, resource: &str) -> Result<Self, ToolError> {
        let mut distinct: Vec<Policy> = Vec::new();
        for policy in policies {
            // casbin moves a repeated row to the back, which would change the order
            if !distinct.contains(&policy) {
                distinct.push(policy);
            }
        }
        let engine = if distinct.is_empty() {
            None
        } else {
            Some(engine(distinct)?)
        };
        Ok(Self {
            engine,
            action: action.to_owned(),
            resource: resource.to_owned(),
            rows: Mutex::new(HashMap::new()),
        })
    }

    /// Asks about the type.
    pub(super) fn decide(&self) -> Result<bool, ToolError> {
        self.decide_on(None)
    }

    /// Asks about a row of this campus, or of none.
    pub(super) fn decide_row(&self, campus: Option<Uuid>) -> Result<bool, ToolError> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        match rows.entry(campus) {
            Entry::Occupied(answer) => Ok(*answer.get()),
            Entry::Vacant(answer) => Ok(*answer.insert(self.decide_on(Some(&json!({"campusId": campus})))?)),
        }
    }

    pub(crate) fn decide_on(&self, object: Option<&Value>) -> Result<bool, ToolError> {
        let Some(engine) = &self.engine else { return Ok(false) };
        let object = object.map(Value::to_string).unwrap_or_default();
        engine
            .enforce((self.action.as_str(), self.resource.as_str(), object))
            .map_err(rules)
    }
}

fn engine(policies: Vec<Policy>) -> Result<Enforcer, ToolError> {
    let mut model = PARSED
        .clone()
        .ok_or_else(|| ToolError::Rules("the model does not parse".into()))?;
    for policy in policies {
        if !model.add_policy("p", "p", policy.into_row()) {
            return Err(ToolError::Rules("a rule was not taken".into()));
        }
    }
    let made = Enforcer::new_raw(model, ()).now_or_never();
    let mut engine = made
        .ok_or_else(|| ToolError::Rules("the engine waits".into()))?
        .map_err(rules)?;
    engine.add_function("holds", OperatorFunction::Arg3(holds));
    Ok(engine)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn rules(error: casbin::Error) -> ToolError {
    ToolError::Rules(error.to_string())
}

/// Whether a condition holds. Of the type alone, an allow's does and a deny's does not; of a row, each member must equal the row's.
fn holds(condition: Dynamic, effect: Dynamic, object: Dynamic) -> Dynamic {
    let text = |value: Dynamic| value.into_immutable_string().unwrap_or_default();
    let (condition, effect, object) = (text(condition), text(effect), text(object));
    let holds = if object.is_empty() {
        effect.as_str() == "allow"
    } else {
        let parse = |text: &str| serde_json::from_str::<Map<String, Value>>(text).ok();
        match (parse(&condition), parse(&object)) {
            (Some(condition), Some(object)) => condition.iter().all(|(key, value)| object.get(key) == Some(value)),
            // an unreadable condition allows nothing and forbids everything
            _ => effect.as_str() != "allow",
        }
    };
    holds.into()
}
