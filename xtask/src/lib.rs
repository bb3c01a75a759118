//! What `cargo xtask` and the tests share: a database and a broker to work with.
//!
//! The commands themselves are the binary's ([`services`] is all that others may use). Nothing here knows the server
//! or the worker, so that it builds in seconds and can tell about the rest while that is being built.

pub mod environment;
pub mod services;
