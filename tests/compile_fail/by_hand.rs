//! What a step hands on is not written down or taken apart by hand. (The compiler looks at this only once all else is in order.)

#![allow(unused)]
use contract::{Action, AgentIdentity, Resource, argument::RequestedCampus, tool::Write};
use server::{
    grant::Caller,
    posture::{Admitted, AuditSubject, Auth, Posture, casl},
};

const GATE: Auth = Auth::Casl {
    action: Action::List,
    resource: Resource::Staff,
};

fn subject(subject: &AuditSubject) -> AuditSubject {
    AuditSubject { ..*subject }
}

const WRITE: Posture<Write, AuditSubject> =
    casl(Action::Create, Resource::Staff).audited(Action::Create, "STAFF", subject);

#[cfg(refused)]
mod refused {
    use super::*;

    fn caller(proven: Caller, identity: AgentIdentity) -> Caller {
        Caller {
            identity, //~ Caller` are private
            ..proven
        }
    }

    fn campus(requested: RequestedCampus) -> uuid::Uuid {
        let RequestedCampus { 0: id } = requested; //~ RequestedCampus` is private
        id
    }

    fn admitted() -> Admitted {
        Admitted { auth: GATE } //~ Admitted` is private
    }

    fn unaudited() -> Posture<Write, ()> {
        Posture {
            auth: GATE, //~ fields `auth`, `audit` and `effect` of struct
            audit: None,
            effect: std::marker::PhantomData,
        }
    }
}

fn main() {}
