//! Step 13: the sentence that says what a result covers, so that a model does not describe a campus's rows as the school's.

use crate::{ability::CampusRule, posture::Auth, standing::Standing};
use contract::UserType;
use std::fmt::Write as _;

/// What a handler applied to the rows it returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// Nothing was said; the gate's own rule speaks.
    Unsaid,
    /// Rows of these campuses.
    Campuses(CampusRule),
}

/// What a handler says about its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Covered {
    /// Which rows it looked for.
    pub(crate) rows: Coverage,
    /// How many of those that were asked for its page has no room for.
    pub(crate) left_out: usize,
}

/// The sentence for a result. `cut` is the number of rows that were left out of a reply for its size, beside those of a page.
pub(crate) fn describe_scope_context(auth: Auth, standing: &Standing, covered: &Covered, cut: usize) -> String {
    let mut sentence = match (auth, &covered.rows) {
        (Auth::Casl { .. }, Coverage::Campuses(rule)) => describe_campuses(rule, standing),
        (Auth::Relationship { scope_note }, Coverage::Campuses(rule)) => {
            format!("{scope_note} {}", describe_campuses(rule, standing))
        }
        (Auth::Relationship { scope_note }, Coverage::Unsaid) => scope_note.to_owned(),
        (Auth::Casl { action, resource }, Coverage::Unsaid) => {
            match standing.ability.campuses(action, resource, standing.campus_ids()) {
                Ok(rule) => describe_campuses(&rule, standing),
                Err(_) => "These results cover only what this person may see.".to_owned(),
            }
        }
    };
    let cut = cut + covered.left_out;
    if cut > 0 {
        let rows = if cut == 1 { "row was" } else { "rows were" };
        // writing to a String does not fail
        let _ = write!(
            sentence,
            " {cut} more {rows} left out because the result was too large; ask for less at a time."
        );
    }
    sentence
}

fn describe_campuses(rule: &CampusRule, standing: &Standing) -> String {
    match rule {
        CampusRule::All if standing.actor.user_type == UserType::PlatformAdmin => {
            "These results cover every school on the platform.".to_owned()
        }
        CampusRule::All => "These results cover the whole school.".to_owned(),
        CampusRule::Only { campuses, and_none } => {
            let names: Vec<&str> = campuses.iter().filter_map(|&id| standing.campus_name(id)).collect();
            match (names.as_slice(), and_none) {
                ([], false) if campuses.is_empty() => "These results cover no campus.".to_owned(),
                ([], true) => "These results cover only what belongs to no campus.".to_owned(),
                ([], false) => "These results cover one campus only, not the whole school.".to_owned(),
                (names, true) if names.len() == standing.campus_ids().len() => {
                    "These results cover the whole school.".to_owned()
                }
                ([only], false) => format!("These results cover only the campus {only}, not the whole school."),
                (names, false) => {
                    format!(
                        "These results cover only the campuses {}, not the whole school.",
                        names.join(", ")
                    )
                }
                (names, true) => format!(
                    "These results cover only {} and what belongs to no campus, not the whole school.",
                    names.join(", ")
                ),
            }
        }
    }
}
