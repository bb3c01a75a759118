//! A registry contradicts itself nowhere: not in one tool, and not between two.

#![allow(unused)]
mod tools;

mod accepted {
    use crate::tools;
    contract::rpc_agent_tools![tools::ListPets, tools::CreatePet];
}

#[cfg(refused)]
mod refused {
    use crate::tools;
    use contract::{RpcTool, tool::assert_distinct};

    mod one_event_twice {
        use crate::tools;
        contract::rpc_agent_tools![tools::ListPets, tools::CreatePet, tools::ListPetsAgain]; //~ two tools share one event
    }

    const ONE_NAME_TWICE: () = assert_distinct(&[RpcTool::of::<tools::ListPets>(), renamed()]); //~ two tools share one name
    const fn renamed() -> RpcTool {
        let mut tool = RpcTool::of::<tools::CreatePet>();
        tool.definition.name = "list_pets";
        tool
    }

    const EFFECT: RpcTool = RpcTool::of::<tools::WriteThatLists>(); //~ the effect contradicts the verb
    const NO_EFFECT: RpcTool = RpcTool::of::<tools::ReadThatCreates>(); //~ the effect contradicts the verb
    const NAME: RpcTool = RpcTool::of::<tools::Misnamed>(); //~ a tool's name is its event
    const DESCRIPTION: RpcTool = RpcTool::of::<tools::Undescribed>(); //~ a tool needs a description
    const APPROVAL: RpcTool = RpcTool::of::<tools::ApprovedRead>(); //~ only a write can need approval
}

fn main() {}
