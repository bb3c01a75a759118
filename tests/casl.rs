//! Decisions by the library whose semantics the rules have, and ours, question by question.

use contract::{Action, Resource};
use serde::Deserialize;
use serde_json::Value;
use server::{
    ability::{Condition, Rule, Verdict},
    hooks::{self, PlainRule},
};
use uuid::Uuid;

const CORPUS: &str = include_str!("data/casl_equality.jsonl");

#[derive(Deserialize)]
struct RuleSet {
    id: String,
    rules: Vec<CaslRule>,
    checks: Vec<Check>,
}

#[derive(Deserialize)]
struct CaslRule {
    action: OneOrMany,
    subject: OneOrMany,
    conditions: Option<Value>,
    #[serde(default)]
    inverted: bool,
}

#[derive(Deserialize)]
struct Check {
    action: String,
    r#type: String,
    object: Option<Value>,
    expect: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn each(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

impl CaslRule {
    fn verdict(&self) -> Verdict {
        if self.inverted { Verdict::Deny } else { Verdict::Allow }
    }

    fn pairs(&self) -> impl Iterator<Item = (&String, &String)> {
        let subjects = self.subject.each();
        self.action
            .each()
            .iter()
            .flat_map(move |action| subjects.iter().map(move |subject| (action, subject)))
    }
}

fn corpus() -> Vec<RuleSet> {
    CORPUS.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_decision_by_equalities_agrees() {
    let mut decisions = 0;
    for set in corpus() {
        let rules: Vec<PlainRule> = set
            .rules
            .iter()
            .flat_map(|rule| {
                rule.pairs().map(|(action, subject)| PlainRule {
                    action: action.to_uppercase(),
                    resource: subject.to_uppercase(),
                    condition: rule.conditions.clone(),
                    verdict: rule.verdict(),
                })
            })
            .collect();
        for check in &set.checks {
            let (action, resource) = (check.action.to_uppercase(), check.r#type.to_uppercase());
            let ours = hooks::decide(&rules, &action, &resource, check.object.as_ref()).unwrap();
            assert_eq!(ours, check.expect, "{}: {action} {resource} {:?}", set.id, check.object);
            decisions += 1;
        }
    }
    assert_eq!(decisions, 180);
}

fn campus(name: &Value) -> Option<Uuid> {
    let number = name.as_str()?.strip_prefix('c')?;
    Some(Uuid::from_u128(number.parse().unwrap()))
}

/// The corpus knows a resource and an action that a school does not have.
fn resource(subject: &str) -> Resource {
    match subject {
        "GRADE" => Resource::Gradebook,
        "UNKNOWN" => Resource::Report,
        "all" => Resource::Any,
        known => Resource::parse(known).unwrap(),
    }
}

fn action(action: &str) -> Option<Action> {
    Action::parse(&action.to_uppercase())
}

fn condition(conditions: Option<&Value>) -> Option<Condition> {
    let Some(conditions) = conditions else {
        return Some(Condition::Always);
    };
    let members = conditions.as_object().unwrap();
    match members.get("campusId") {
        Some(name) if members.len() == 1 => campus(name).map(Condition::Campus),
        _ => None,
    }
}

/// The same through the rules that a school can store: conditions on the campus alone.
#[test]
fn every_decision_by_campus_agrees() {
    let (mut sets, mut decisions) = (0, 0);
    for set in corpus() {
        let typed = set.rules.iter().flat_map(|rule| {
            rule.pairs().map(|(name, subject)| {
                Some(Rule {
                    action: action(name).unwrap(),
                    resource: resource(subject),
                    verdict: rule.verdict(),
                    condition: condition(rule.conditions.as_ref())?,
                })
            })
        });
        let Some(rules) = typed.collect::<Option<Vec<Rule>>>() else {
            continue;
        };
        sets += 1;
        let ability = hooks::ability(rules);
        for check in &set.checks {
            let Some(action) = action(&check.action) else { continue };
            let resource = resource(&check.r#type);
            let ours = match &check.object {
                None => ability.can(action, resource),
                Some(object) => ability.can_on(action, resource, object.get("campusId").and_then(campus)),
            };
            assert_eq!(
                ours.unwrap(),
                check.expect,
                "{}: {action} {resource} {:?}",
                set.id,
                check.object
            );
            decisions += 1;
        }
    }
    assert_eq!((sets, decisions), (27, 153));
}

/// fault 52: the rows for SQL are those that are allowed one by one
#[test]
fn every_row_that_is_listed_is_allowed() {
    let campuses: Vec<Uuid> = (1..=3).map(Uuid::from_u128).collect();
    for set in corpus() {
        let rules = set.rules.iter().flat_map(|rule| {
            rule.pairs().filter_map(|(name, subject)| {
                Some(Rule {
                    action: action(name)?,
                    resource: resource(subject),
                    verdict: rule.verdict(),
                    condition: condition(rule.conditions.as_ref())?,
                })
            })
        });
        let ability = hooks::ability(rules.collect());
        for &action in Action::ALL {
            for &resource in Resource::ALL {
                let rows = ability.campuses(action, resource, &campuses).unwrap();
                for campus in campuses.iter().copied().map(Some).chain([None]) {
                    let allowed = ability.can_on(action, resource, campus).unwrap();
                    assert_eq!(
                        rows.includes(campus),
                        allowed,
                        "{}: {action} {resource} {campus:?}",
                        set.id
                    );
                }
            }
        }
    }
}
