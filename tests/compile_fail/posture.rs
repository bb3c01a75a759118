//! A posture fits its tool: a gate for `casl`, an audit descriptor for a write, none for a read.

#![allow(unused)]
use contract::{
    Action, Resource,
    tool::{Read, Write},
};
use server::posture::{AuditSubject, Posture, casl, relationship};
use uuid::Uuid;

type Output = ();

const LIST: Posture<Read, Output> = casl(Action::List, Resource::Staff);
const OWN: Posture<Read, Output> = relationship();
const CREATE: Posture<Write, Output> = casl(Action::Create, Resource::Staff).audited(Action::Create, "STAFF", subject);
const OWN_WRITE: Posture<Write, Output> = relationship().audited(Action::Create, "STAFF", subject);

fn subject((): &Output) -> AuditSubject {
    AuditSubject {
        school_id: Uuid::nil(),
        campus_id: None,
        resource_id: Uuid::nil(),
    }
}

#[cfg(refused)]
mod refused {
    use super::*;
    use server::posture::Auth;

    const NO_GATE: Posture<Read, Output> = casl(); //~ takes 2 arguments but 0 arguments were supplied
    const HALF_A_GATE: Posture<Read, Output> = casl(Action::List); //~ takes 2 arguments but 1 argument was supplied
    const BARE_GATE: Auth = Auth::Casl { action: Action::List }; //~ missing field `resource`
    const WRITE_WITHOUT_AUDIT: Posture<Write, Output> = casl(Action::Create, Resource::Staff); //~ mismatched types
    const OWN_WRITE_WITHOUT_AUDIT: Posture<Write, Output> = relationship(); //~ mismatched types
    const READ_WITH_AUDIT: Posture<Read, Output> =
        casl(Action::List, Resource::Staff).audited(Action::List, "STAFF", subject); //~ mismatched types
    const AUDITED_TWICE: Posture<Write, Output> = CREATE.audited(Action::Create, "STAFF", subject); //~ no method named `audited` found
}

fn main() {}
