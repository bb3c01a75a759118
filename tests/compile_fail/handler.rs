//! Every registered tool has a handler, whose posture is of its effect.

#![allow(unused)]
mod tools;

use contract::tool::{Read, Write};
use contract::{Action, Resource, tools::RpcAgentTools};
use server::{
    error::ToolError,
    posture::{Posture, casl},
    tools::{Bind, Call, ToolHandler},
};

const fn bound<Registry: Bind>() {}

impl ToolHandler for tools::ListPets {
    type Output = ();
    const POSTURE: Posture<Read, Self::Output> = casl(Action::List, Resource::Staff);

    async fn run(self, _call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        Ok(())
    }
}

const REAL: () = bound::<RpcAgentTools>();
const HANDLED: () = bound::<(tools::ListPets, ())>();

#[cfg(refused)]
mod refused {
    use super::*;

    const UNHANDLED: () = bound::<(tools::ListPets, (tools::CreatePet, ()))>(); //~ the registered tool `CreatePet` has no handler

    impl ToolHandler for tools::ListPetsAgain {
        type Output = ();
        const POSTURE: Posture<Write, Self::Output> = todo!(); //~ incompatible type for trait

        async fn run(self, _call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
            Ok(())
        }
    }
}

fn main() {}
