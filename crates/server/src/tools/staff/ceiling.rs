//! Nobody gives more than they hold: by giving a role, by taking one away that forbade something, or by moving somebody.

use super::Call;
use crate::{
    ability::{Rule, Verdict},
    db::{
        facts::RuleRow,
        staff::{self, Administered, Role, StaffMember},
    },
    error::ToolError,
    standing::rule_of,
};
use uuid::Uuid;

const ROLE_TOO_HIGH: ToolError = ToolError::Forbidden("that role allows more than you may do yourself");

/// The rules of a role, as a member of staff holds them or would, where they are within what the actor holds.
pub(super) async fn may_give(
    call: &mut Call<'_>,
    member: &StaffMember,
    role: &Role,
    campus: Option<Uuid>,
) -> Result<Vec<Rule>, ToolError> {
    let rules = staff::rules_of_role(call.tx(), member, role, campus).await?;
    let rules: Vec<Rule> = rules
        .iter()
        .filter_map(|rule| rule_of(rule, member.campus_id))
        .collect();
    if holds_all(call, &rules)? {
        Ok(rules)
    } else {
        Err(ROLE_TOO_HIGH)
    }
}

/// A role is taken away by whoever could give it. One that forbids something gives something when it goes: whatever else the person
/// holds. Answers with its rules.
pub(super) async fn may_take(
    call: &mut Call<'_>,
    member: &StaffMember,
    role: &Role,
    campus: Option<Uuid>,
) -> Result<Vec<Rule>, ToolError> {
    let rules = may_give(call, member, role, campus).await?;
    if !forbids(&rules) {
        return Ok(rules);
    }
    let held = staff::rules_of_member(call.tx(), member).await?;
    let held: Vec<Rule> = held.iter().filter_map(|rule| rule_of(rule, member.campus_id)).collect();
    if holds_all(call, &held)? {
        Ok(rules)
    } else {
        Err(ToolError::Forbidden(
            "without that role the person's others would allow more than you may do yourself",
        ))
    }
}

/// Whether any rule forbids.
pub(super) fn forbids(rules: &[Rule]) -> bool {
    rules.iter().any(|rule| rule.verdict == Verdict::Deny)
}

/// How the school is administered before a change, while no other call can change it.
pub(super) async fn administered(call: &mut Call<'_>, school: Uuid) -> Result<Administered, ToolError> {
    staff::hold_administrators(call.tx(), school).await?;
    Ok(staff::administered(call.tx(), school).await?)
}

/// Refuses a change after which the school has lost its last administrator; what was done is then undone.
pub(super) async fn still_administered(
    call: &mut Call<'_>,
    school: Uuid,
    before: Administered,
) -> Result<(), ToolError> {
    if staff::administered(call.tx(), school).await? < before {
        return Err(ToolError::Conflict(
            "That is the last administrator of the school. Make somebody else one first.".to_owned(),
        ));
    }
    Ok(())
}

/// Rules of a person's own campus follow them to another one, so moving somebody can grant something, as giving a role does.
pub(super) async fn may_move(call: &mut Call<'_>, member: &StaffMember, campus: Uuid) -> Result<(), ToolError> {
    let rules = staff::rules_of_member(call.tx(), member).await?;
    if holds_all(call, &gained(&rules, member.campus_id, campus))? {
        Ok(())
    } else {
        Err(ToolError::Forbidden(
            "that person's roles would allow more there than you may do yourself",
        ))
    }
}

/// The rules that a move may give somebody: those that change with it, or all of them where it lifts one that forbids.
fn gained(rules: &[RuleRow], from: Option<Uuid>, to: Uuid) -> Vec<Rule> {
    let moves: Vec<_> = rules
        .iter()
        .map(|rule| (rule_of(rule, from), rule_of(rule, Some(to))))
        .collect();
    let lifts = moves
        .iter()
        .any(|(before, after)| before != after && before.is_some_and(|rule| rule.verdict == Verdict::Deny));
    moves
        .into_iter()
        .filter(|(before, after)| lifts || before != after)
        .filter_map(|(_, after)| after)
        .collect()
}

/// Nobody gives more than they hold.
fn holds_all(call: &Call<'_>, rules: &[Rule]) -> Result<bool, ToolError> {
    Ok(call.ability().uncovered(rules, call.standing().campus_ids())?.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ability::Condition;
    use contract::Resource;
    use serde_json::{Value, json};

    const HERE: Uuid = Uuid::from_u128(1);
    const THERE: Uuid = Uuid::from_u128(2);

    fn rule(resource: &str, allows: bool, condition: Option<Value>, held: Option<Uuid>) -> RuleRow {
        RuleRow {
            a: "LIST".into(),
            r: resource.into(),
            y: allows,
            c: condition,
            h: held,
        }
    }

    fn own() -> Value {
        json!({"campusId": "$own"})
    }

    fn resources(rules: &[Rule]) -> Vec<Resource> {
        rules.iter().map(|rule| rule.resource).collect()
    }

    /// fault 7
    #[test]
    fn a_move_gives_what_is_of_ones_own_campus() {
        let rules = [
            rule("STAFF", true, Some(own()), None),
            rule("SUBJECT", true, None, None),
            rule("STREAM", true, Some(json!({"campusId": HERE})), None),
            rule("ROLE", true, Some(own()), Some(HERE)),
        ];
        let gained = gained(&rules, Some(HERE), THERE);
        assert_eq!(resources(&gained), [Resource::Staff]);
        assert_eq!(gained[0].condition, Condition::Campus(THERE));
    }

    #[test]
    fn a_first_campus_gives_what_none_did() {
        let rules = [rule("STAFF", true, Some(own()), None)];
        assert_eq!(resources(&gained(&rules, None, THERE)), [Resource::Staff]);
        assert!(
            gained(&rules, Some(THERE), THERE).is_empty(),
            "and staying gives nothing"
        );
    }

    #[test]
    fn a_denial_left_behind_uncovers_everything_else() {
        let rules = [rule("STAFF", true, None, None), rule("STAFF", false, Some(own()), None)];
        let gained = gained(&rules, Some(HERE), THERE);
        assert!(
            gained
                .iter()
                .any(|rule| rule.verdict == Verdict::Allow && rule.condition == Condition::Always)
        );
    }
}
