//! The promise between worker and server: whatever both processes must agree on, and nothing else.
//!
//! Read in this order: who is asking and where ([`context`], [`identity`]), what crosses the broker and under
//! which names ([`envelope`], [`turn`], [`topology`]),
//! what a tool is ([`permission`], [`event`], [`tool`]), which tools there are ([`tools`]), and who is offered them
//! ([`agent_map`]). Nothing here is async, does I/O or decides what a caller may do: that is the server's alone.

pub mod agent_map;
pub mod argument;
pub mod context;
mod digest;
pub mod envelope;
pub mod event;
pub mod identity;
pub mod permission;
pub mod schema;
pub mod tool;
pub mod tools;
pub mod topology;
pub mod turn;

pub use context::{AgentRunMode, AgentRuntimeContext};
pub use envelope::{AgentToolRequest, AgentToolResult};
pub use event::Event;
pub use identity::{AgentCallScope, AgentIdentity, UserType};
pub use permission::{Action, Resource};
pub use tool::{AgentTool, Placement, RpcTool, ToolDefinition, ToolRole, ToolScope};
pub use tools::{RPC_AGENT_TOOLS, tools_for_mode, tools_for_role};
