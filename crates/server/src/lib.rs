//! The server: the only process with a database, and the only gate.
//!
//! One call, file by file, in the order in which it runs:
//!
//! [`rpc`] takes a packet off the broker and hands it to [`execute`], which runs the steps: [`grant`] proves who calls, [`tools`]
//! checks the arguments, [`tenant`] opens the frame in [`db`], [`standing`] reads the caller's facts and builds the
//! [`ability`], [`posture`] asks the gate, `idempotency` claims the key, `approval` waits for a person where one must say yes, a handler in [`tools`] does the work, `audit` writes the
//! one row, `scope_context` says what the result covers, and [`error`] decides what a model may read of a failure.
//!
//! [`dispatch`] mints what a call rests on, [`conversation`] keeps threads and turns, [`decision`] takes what people say about calls that wait, `http` lets people in to them, [`cli`] is the operator's way in, [`config`] reads the environment.

pub mod ability;
mod approval;
mod audit;
pub mod cli;
mod clock;
pub mod config;
pub mod conversation;
pub mod db;
pub mod decision;
pub mod dispatch;
pub mod error;
pub mod execute;
pub mod grant;
#[cfg(feature = "test-hooks")]
pub mod hooks;
#[cfg(not(feature = "test-hooks"))]
mod hooks;
mod http;
mod idempotency;
pub mod posture;
pub mod rpc;
mod scope_context;
pub mod standing;
pub mod tenant;
pub mod tools;
