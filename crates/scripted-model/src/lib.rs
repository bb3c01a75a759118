//! A model for demonstrations and tests: an HTTP server that speaks the public chat-completions protocol.
//!
//! With [`Script::rules`] it understands a few sentences about a school (`rules`) and says in every answer that it is a
//! demo. With [`Script::queue`] or [`Script::function`] a test says what it answers, word for word, fault for fault,
//! and reads back what it was asked. It is never a stand-in for a model's judgement.

pub mod cli;
mod config;
mod protocol;
mod rules;
mod script;
mod server;

pub use protocol::MODEL_NAME;
pub use script::{Reply, Script};
pub use server::ScriptedModel;
