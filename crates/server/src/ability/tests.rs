//! What the rules of a person come to.

use super::*;

const HERE: Uuid = Uuid::from_u128(1);
const THERE: Uuid = Uuid::from_u128(2);
const SCHOOL: &[Uuid] = &[HERE, THERE];

fn rule(verdict: Verdict, action: Action, resource: Resource, condition: Condition) -> Rule {
    Rule {
        action,
        resource,
        verdict,
        condition,
    }
}

fn ability(rules: &[(Verdict, Condition)]) -> Ability {
    Ability::new(
        rules
            .iter()
            .map(|&(v, c)| rule(v, Action::List, Resource::Staff, c))
            .collect(),
    )
}

use Condition::{Always, Campus};
use Verdict::{Allow, Deny};

#[test]
fn no_rule_allows_nothing() {
    let nobody = Ability::new(Vec::new());
    assert!(!nobody.can(Action::List, Resource::Staff).unwrap());
    assert!(
        nobody
            .campuses(Action::List, Resource::Staff, SCHOOL)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_conditional_allow_admits_the_type_but_not_the_row() {
    let ability = ability(&[(Allow, Campus(HERE))]);
    assert!(ability.can(Action::List, Resource::Staff).unwrap());
    assert!(ability.can_on(Action::List, Resource::Staff, Some(HERE)).unwrap());
    assert!(!ability.can_on(Action::List, Resource::Staff, Some(THERE)).unwrap());
    assert!(!ability.can_on(Action::List, Resource::Staff, None).unwrap());
}

/// fault 52: the list is what can be read one by one, and a repeated rule keeps its place
#[test]
fn allow_deny_allow_ends_in_allow() {
    let again = ability(&[(Allow, Always), (Deny, Campus(HERE)), (Allow, Always)]);
    assert!(again.can_on(Action::List, Resource::Staff, Some(HERE)).unwrap());
    let denied = ability(&[(Allow, Always), (Deny, Campus(HERE))]);
    let rows = denied.campuses(Action::List, Resource::Staff, SCHOOL).unwrap();
    assert_eq!(
        rows,
        CampusRule::Only {
            campuses: vec![THERE],
            and_none: true
        }
    );
    for &campus in SCHOOL {
        assert_eq!(
            rows.includes(Some(campus)),
            denied.can_on(Action::List, Resource::Staff, Some(campus)).unwrap()
        );
    }
}

#[test]
fn manage_and_any_stand_for_everything() {
    let all = Ability::new(vec![rule(Allow, Action::Manage, Resource::Any, Always)]);
    for &action in Action::ALL {
        for &resource in Resource::ALL {
            assert!(all.can(action, resource).unwrap(), "{action} {resource}");
        }
    }
    let one = ability(&[(Allow, Always)]);
    assert!(
        !one.can(Action::Manage, Resource::Staff).unwrap(),
        "one action is not all of them"
    );
    assert!(!one.can(Action::List, Resource::Any).unwrap());
}

/// fault 7
#[test]
fn nobody_covers_more_than_they_hold() {
    let everything = rule(Allow, Action::Manage, Resource::Any, Always);
    let head = Ability::new(vec![rule(Allow, Action::Manage, Resource::Any, Campus(HERE))]);
    assert!(
        head.covers(&rule(Allow, Action::Create, Resource::Department, Campus(HERE)), SCHOOL)
            .unwrap()
    );
    assert!(
        !head
            .covers(
                &rule(Allow, Action::Create, Resource::Department, Campus(THERE)),
                SCHOOL
            )
            .unwrap()
    );
    assert!(
        !head
            .covers(&rule(Allow, Action::Create, Resource::Department, Always), SCHOOL)
            .unwrap()
    );
    assert!(!head.covers(&everything, SCHOOL).unwrap());
    let clerk = Ability::new(vec![rule(Allow, Action::Read, Resource::Any, Always)]);
    assert!(
        !clerk
            .covers(&rule(Allow, Action::Manage, Resource::Staff, Always), SCHOOL)
            .unwrap()
    );
    assert!(
        clerk
            .covers(&rule(Allow, Action::Read, Resource::Staff, Always), SCHOOL)
            .unwrap()
    );
    // what forbids takes something away, so it needs the right to manage roles where it reaches
    assert!(
        !clerk
            .covers(&rule(Deny, Action::Read, Resource::Staff, Always), SCHOOL)
            .unwrap()
    );
    assert!(
        head.covers(&rule(Deny, Action::Read, Resource::Staff, Campus(HERE)), SCHOOL)
            .unwrap()
    );
    assert!(
        !head
            .covers(&rule(Deny, Action::Read, Resource::Staff, Always), SCHOOL)
            .unwrap()
    );
    let admin = Ability::new(vec![everything]);
    assert!(admin.covers(&everything, SCHOOL).unwrap());
    let almost = Ability::new(vec![everything, rule(Deny, Action::Delete, Resource::Report, Always)]);
    assert!(!almost.covers(&everything, SCHOOL).unwrap());
}

#[test]
fn the_model_works() {
    self_test().unwrap();
}

#[test]
fn a_question_about_rules_that_were_not_read_is_an_error() {
    let everything = rule(Allow, Action::Manage, Resource::Any, Always);
    let ability = Ability::within(Topics::of(Resource::Staff), vec![everything]);
    assert!(ability.can(Action::List, Resource::Staff).unwrap());
    assert!(ability.can(Action::List, Resource::Any).unwrap());
    for error in [
        ability.can(Action::List, Resource::Campus).unwrap_err(),
        ability.can_on(Action::List, Resource::Campus, None).unwrap_err(),
        ability.campuses(Action::List, Resource::Campus, SCHOOL).unwrap_err(),
        ability.covers(&everything, SCHOOL).unwrap_err(),
    ] {
        assert!(matches!(error, ToolError::Rules(_)), "{error}");
    }
    assert!(
        Ability::within(Topics::ALL, vec![everything])
            .covers(&everything, SCHOOL)
            .unwrap()
    );
}

#[test]
fn rules_about_everything_are_always_read() {
    let words = |topics: Topics| topics.words().collect::<Vec<_>>();
    assert_eq!(words(Topics::NONE), ["ALL"]);
    assert_eq!(
        words(Topics::of(Resource::Staff).and(Topics::of(Resource::Campus))),
        ["CAMPUS", "STAFF", "ALL"]
    );
    let all: Vec<_> = Resource::ALL.iter().map(|resource| resource.as_str()).collect();
    assert_eq!(words(Topics::ALL), all);
    assert_eq!(Topics::of(Resource::Any), Topics::ALL);
}
