//! What a caller may do, built anew for each call from the rows as they are now.
//!
//! The rules have the semantics of the seeds' CASL: the last rule that matches decides, and nothing is allowed that no rule
//! allows. casbin decides; the rules are kept beside it, for scope sentences, data rules and ceilings. A question about the type
//! alone ([`Ability::can`]) admits a conditional allow, so whoever touches rows asks about the row or its campus as well.

mod judge;

pub(crate) use self::judge::{Judge, Policy};
use crate::error::ToolError;
use contract::{Action, Resource};
use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use uuid::Uuid;

/// Whether a rule allows or forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It allows.
    Allow,
    /// It forbids.
    Deny,
}

/// The rows that a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Condition {
    /// All of them.
    Always,
    /// Those of one campus.
    Campus(Uuid),
    /// Those of no campus.
    NoCampus,
}

/// One rule. Rules are ordered, and the last that matches decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// What is done; [`Action::Manage`] stands for everything.
    pub action: Action,
    /// To what; [`Resource::Any`] stands for everything.
    pub resource: Resource,
    /// Whether it allows.
    pub verdict: Verdict,
    /// To which rows.
    pub condition: Condition,
}

impl Rule {
    pub(crate) fn is_about(&self, action: Action, resource: Resource) -> bool {
        (self.action == action || self.action == Action::Manage)
            && (self.resource == resource || self.resource == Resource::Any)
    }
}

/// The rows that a caller may reach: a rule for SQL, so that the database filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CampusRule {
    /// All rows, on whatever campus or none.
    All,
    /// Only rows of these campuses and, where it says so, rows of no campus.
    Only {
        /// The campuses.
        campuses: Vec<Uuid>,
        /// Whether rows without a campus are among them.
        and_none: bool,
    },
}

impl CampusRule {
    /// The campuses as an SQL argument: `None` for no limit.
    #[must_use]
    pub fn campuses(&self) -> Option<&[Uuid]> {
        match self {
            Self::All => None,
            Self::Only { campuses, .. } => Some(campuses),
        }
    }

    /// Whether rows without a campus are included.
    #[must_use]
    pub const fn and_none(&self) -> bool {
        match self {
            Self::All => true,
            Self::Only { and_none, .. } => *and_none,
        }
    }

    /// Whether a row of this campus, or of none, is included.
    #[must_use]
    pub fn includes(&self, campus: Option<Uuid>) -> bool {
        match (self, campus) {
            (Self::All, _) => true,
            (Self::Only { campuses, .. }, Some(campus)) => campuses.contains(&campus),
            (Self::Only { and_none, .. }, None) => *and_none,
        }
    }

    /// The rows of this rule that belong to one campus.
    #[must_use]
    pub fn within(&self, campus: Uuid) -> Self {
        let campuses = if self.includes(Some(campus)) {
            vec![campus]
        } else {
            Vec::new()
        };
        Self::Only {
            campuses,
            and_none: false,
        }
    }

    /// Whether no row can be included.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        match self {
            Self::All => false,
            Self::Only { campuses, and_none } => campuses.is_empty() && !*and_none,
        }
    }
}

/// Resources that a call asks about. Rules about anything else say nothing in it, so they are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topics(u32);

impl Topics {
    /// None, beyond what rules about everything say.
    pub const NONE: Self = Self(0);
    /// All of them: for whoever gives rules to others, or shows them.
    pub const ALL: Self = Self(u32::MAX);

    /// One resource. Of everything, for what stands for everything.
    #[must_use]
    pub const fn of(resource: Resource) -> Self {
        if matches!(resource, Resource::Any) {
            Self::ALL
        } else {
            Self(1 << resource as u32)
        }
    }

    /// These and others.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    const fn include(self, resource: Resource) -> bool {
        self.0 & (1 << resource as u32) != 0
    }

    /// The words that rules about them are stored under; what stands for everything is always among them.
    pub(crate) fn words(self) -> impl Iterator<Item = &'static str> {
        let among = move |resource: &&Resource| **resource == Resource::Any || self.include(**resource);
        Resource::ALL.iter().filter(among).map(|resource| resource.as_str())
    }
}

/// What a caller may do. Made only inside a tenant frame.
#[derive(Debug)]
pub struct Ability {
    rules: Vec<Rule>,
    topics: Topics,
    asked: Asked,
}

impl Ability {
    /// Of all the rules that somebody holds.
    pub(crate) const fn new(rules: Vec<Rule>) -> Self {
        Self::within(Topics::ALL, rules)
    }

    /// Of the rules about some resources. A question about another one is an error, not a no.
    pub(crate) const fn within(topics: Topics, rules: Vec<Rule>) -> Self {
        Self {
            rules,
            topics,
            asked: Asked::new(),
        }
    }

    /// The rules, in their order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether the caller may do this to some row of the type.
    ///
    /// # Errors
    ///
    /// When the rule engine fails; to be taken as a no.
    pub fn can(&self, action: Action, resource: Resource) -> Result<bool, ToolError> {
        self.about(action, resource)?.decide()
    }

    /// Whether the caller may do this to a row of this campus, or of none.
    ///
    /// # Errors
    ///
    /// When the rule engine fails; to be taken as a no.
    pub fn can_on(&self, action: Action, resource: Resource, campus: Option<Uuid>) -> Result<bool, ToolError> {
        self.about(action, resource)?.decide_row(campus)
    }

    /// The rows that the caller may do this to, given the school's campuses.
    ///
    /// # Errors
    ///
    /// When the rule engine fails; to be taken as no rows.
    pub fn campuses(&self, action: Action, resource: Resource, school: &[Uuid]) -> Result<CampusRule, ToolError> {
        let judge = self.about(action, resource)?;
        if self
            .rules
            .iter()
            .all(|rule| rule.condition == Condition::Always || !rule.is_about(action, resource))
        {
            return Ok(if judge.decide()? {
                CampusRule::All
            } else {
                CampusRule::Only {
                    campuses: Vec::new(),
                    and_none: false,
                }
            });
        }
        let mut campuses = Vec::with_capacity(school.len());
        for &campus in school {
            if judge.decide_row(Some(campus))? {
                campuses.push(campus);
            }
        }
        Ok(CampusRule::Only {
            campuses,
            and_none: judge.decide_row(None)?,
        })
    }

    /// Whether the caller holds all that a rule would give; see [`Ability::uncovered`].
    ///
    /// # Errors
    ///
    /// When the rule engine fails; to be taken as a no.
    pub fn covers(&self, rule: &Rule, school: &[Uuid]) -> Result<bool, ToolError> {
        Ok(self.uncovered(std::slice::from_ref(rule), school)?.is_none())
    }

    /// The first of some rules that would give more than the caller holds: nobody grants more than they have. A rule that forbids
    /// gives nothing, but takes something away; so it needs the right to manage roles wherever it reaches.
    ///
    /// Each question is asked once, however many rules ask it: a list of rules costs no more than the whole of rights.
    ///
    /// # Errors
    ///
    /// When the rule engine fails; to be taken as a no.
    pub fn uncovered<'r>(&self, rules: &'r [Rule], school: &[Uuid]) -> Result<Option<&'r Rule>, ToolError> {
        let mut answers = HashMap::new();
        for rule in rules {
            let (actions, resources) = match rule.verdict {
                Verdict::Allow => (
                    expand(rule.action, Action::Manage, Action::ALL),
                    expand(rule.resource, Resource::Any, Resource::ALL),
                ),
                Verdict::Deny => (&[Action::Manage][..], &[Resource::Role][..]),
            };
            for question in pairs(actions, resources) {
                let held = match answers.entry((question, rule.condition)) {
                    Entry::Occupied(answer) => *answer.get(),
                    Entry::Vacant(answer) => *answer.insert(self.holds(question, rule.condition, school)?),
                };
                if !held {
                    return Ok(Some(rule));
                }
            }
        }
        Ok(None)
    }

    fn holds(
        &self,
        (action, resource): (Action, Resource),
        condition: Condition,
        school: &[Uuid],
    ) -> Result<bool, ToolError> {
        match condition {
            Condition::Campus(campus) => self.can_on(action, resource, Some(campus)),
            Condition::NoCampus => self.can_on(action, resource, None),
            Condition::Always => Ok(match self.campuses(action, resource, school)? {
                CampusRule::All => true,
                CampusRule::Only { campuses, and_none } => and_none && campuses.len() == school.len(),
            }),
        }
    }

    /// An engine with just the rules that can matter to a question, which is what makes a fresh one cheap.
    fn about(&self, action: Action, resource: Resource) -> Result<Arc<Judge>, ToolError> {
        if resource != Resource::Any && !self.topics.include(resource) {
            return Err(ToolError::Rules(format!(
                "the rules about {resource} were not read; the tool must name it in `asks`"
            )));
        }
        self.asked.judge((action, resource), || {
            let relevant = self.rules.iter().rev().filter(|rule| rule.is_about(action, resource));
            Judge::new(relevant.map(Policy::of), action.as_str(), resource.as_str())
        })
    }
}

/// The engines of the questions that this call asked, so that none is made twice. They end with the ability, and so with the call.
struct Asked(Mutex<Vec<(Question, Arc<Judge>)>>);

type Question = (Action, Resource);

impl Asked {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn judge(
        &self,
        question: Question,
        make: impl FnOnce() -> Result<Judge, ToolError>,
    ) -> Result<Arc<Judge>, ToolError> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, judge)) = asked.iter().find(|(other, _)| *other == question) {
            return Ok(Arc::clone(judge));
        }
        let judge = Arc::new(make()?);
        asked.push((question, Arc::clone(&judge)));
        Ok(judge)
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}

/// Every action with every resource.
fn pairs<'a>(actions: &'a [Action], resources: &'a [Resource]) -> impl Iterator<Item = (Action, Resource)> + 'a {
    actions
        .iter()
        .flat_map(|&action| resources.iter().map(move |&resource| (action, resource)))
}

/// The one value, or all the values that the general one stands for (itself included).
fn expand<T: Copy + PartialEq>(value: T, general: T, all: &'static [T]) -> &'static [T] {
    if value == general {
        all
    } else {
        all.iter()
            .position(|other| *other == value)
            .and_then(|at| all.get(at..=at))
            .unwrap_or_default()
    }
}

/// Decides a known case, so that a broken model ends the process at start-up instead of denying every call.
///
/// # Errors
///
/// When the engine does not work as its rules say.
pub fn self_test() -> Result<(), ToolError> {
    let rule = |verdict, condition| Rule {
        action: Action::Manage,
        resource: Resource::Any,
        verdict,
        condition,
    };
    let (here, there) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let ability = Ability::new(vec![
        rule(Verdict::Allow, Condition::Always),
        rule(Verdict::Deny, Condition::Campus(there)),
    ]);
    let expected = CampusRule::Only {
        campuses: vec![here],
        and_none: true,
    };
    if ability.campuses(Action::List, Resource::Staff, &[here, there])? == expected {
        Ok(())
    } else {
        Err(ToolError::Rules("the self-test decided wrongly".into()))
    }
}

#[cfg(test)]
mod tests;
