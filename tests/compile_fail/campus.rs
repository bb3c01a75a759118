//! A campus or a year that a model names is read through the call's scope, or not at all.

#![allow(unused)]
use contract::{
    AgentCallScope,
    argument::{RequestedCampus, RequestedYear},
    context::AgentRunMode,
};
use uuid::Uuid;

fn pinned(scope: AgentCallScope, requested: RequestedCampus) -> Option<Uuid> {
    scope.campus(Some(requested))
}

fn bound(campus: Uuid, requested: RequestedYear) -> Uuid {
    requested.of(campus).campus_academic_year_id
}

fn on(campus_id: Uuid) -> AgentCallScope {
    AgentCallScope::Campus { campus_id }
}

#[cfg(refused)]
mod refused {
    use super::*;

    fn field(requested: RequestedCampus) -> Uuid {
        requested.0 //~ RequestedCampus` is private
    }

    fn year(requested: RequestedYear) -> Uuid {
        requested.0 //~ RequestedYear` is private
    }

    fn conversion(requested: RequestedCampus) -> Uuid {
        requested.into() //~ RequestedCampus>` is not satisfied
    }

    fn through_json(requested: RequestedCampus) -> serde_json::Value {
        serde_json::to_value(requested).unwrap() //~ RequestedCampus: serde::Serialize` is not satisfied
    }

    fn as_text(requested: RequestedCampus) -> String {
        requested.to_string() //~ doesn't implement `std::fmt::Display`
    }

    fn no_campus() -> AgentCallScope {
        AgentCallScope::Campus {} //~ missing field `campus_id`
    }

    fn no_campus_for_this_turn() -> AgentRunMode {
        AgentRunMode::Campus {} //~ missing field `campus`
    }

    fn perhaps_a_campus(campus_id: Option<Uuid>) -> AgentCallScope {
        AgentCallScope::Campus { campus_id } //~ mismatched types
    }
}

fn main() {}
