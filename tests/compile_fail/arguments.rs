//! A tool's arguments are an object: its type is a struct with named fields.

#![allow(unused)]
mod tools;

mod accepted {
    use crate::tools;
    contract::rpc_agent_tools![tools::ListPets, tools::CreatePet];
}

#[cfg(refused)]
mod refused {
    use crate::tools;

    mod of_alternatives {
        use crate::tools;
        contract::rpc_agent_tools![tools::EitherPet]; //~ expected struct, variant or union type, found enum `EitherPet`
    }

    mod of_one_value {
        use crate::tools;
        contract::rpc_agent_tools![tools::BarePet]; //~ the name `BarePet` is defined multiple times
    }

    mod of_nothing {
        use crate::tools;
        contract::rpc_agent_tools![tools::UnitPet]; //~ the name `UnitPet` is defined multiple times
    }
}

fn main() {}
