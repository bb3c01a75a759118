//! What a call rests on is made by the step that proves it, and by nobody else.

#![allow(unused)]
use contract::{AgentCallScope, AgentIdentity};
use server::{
    error::ToolError,
    grant::{Caller, GrantKey},
    posture::{Admitted, Auth},
    standing::Standing,
    tools::Call,
};

fn caller(
    key: &GrantKey,
    identity: AgentIdentity,
    scope: AgentCallScope,
    grant: Option<&str>,
) -> Result<Caller, server::grant::GrantError> {
    key.admit(identity, scope, grant)
}

fn authority(call: &Call<'_>) -> Auth {
    call.auth()
}

#[cfg(refused)]
mod refused {
    use super::*;

    fn another_caller(proven: &mut Caller, identity: AgentIdentity) {
        proven.identity = identity; //~ Caller` is private
    }

    fn admitted_without_a_gate(auth: Auth, standing: &Standing) -> Admitted {
        auth.admit(standing).unwrap() //~ method `admit` is private
    }

    fn call_by_hand<'a>(standing: &'a Standing, scope: AgentCallScope, admitted: Admitted) -> Call<'a> {
        Call::new(standing, scope, admitted, todo!()) //~ associated function `new` is private
    }

    fn repinned(call: &mut Call<'_>) {
        call.scope = AgentCallScope::School {}; //~ Call` is private
    }

    fn transaction(call: &mut Call<'_>) {
        call.tx(); //~ method `tx` is private
    }

    fn frame() {
        server::tenant::in_tenant_scope; //~ function `in_tenant_scope` is private
    }

    fn standing_without_a_caller() {
        Standing::rebuild; //~ associated function `rebuild` is private
    }
}

fn main() {}
