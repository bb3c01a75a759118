//! A tool is the supervisor's, everybody's, or some specialists': never shared and some roles' at once, and never nobody's.

#![allow(unused)]
use contract::{Placement, ToolRole};

const SHARED: Placement = Placement::Shared;
const SPECIALISTS: Placement = Placement::roles(&[ToolRole::Dos, ToolRole::ClassTeacher]);

#[cfg(refused)]
mod refused {
    use contract::{Placement, ToolRole, tool::Roles};

    const NO_ROLES: Placement = Placement::roles(&[]); //~ a tool with roles names at least one
    const BARE_ROLES: Placement = Placement::Roles(Roles(&[])); //~ private fields
    const SHARED_WITH_ROLES: Placement = Placement::Shared(&[ToolRole::Dos]); //~ expected function, found
    const BOTH: Placement = Placement::Shared | Placement::roles(&[ToolRole::Dos]); //~ no implementation for
}

fn main() {}
