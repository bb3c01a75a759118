//! What the tests stand on: a real PostgreSQL and a real RabbitMQ, found or started once a process; for each test a database of
//! its own, cloned from a migrated and seeded template, and names of its own on the broker.
//!
//! A test arranges with a [`Stage`], acts in one public way (the pipeline, the broker, a process), and reads the database only to
//! assert.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "a harness fails the test that uses it, at once and with a message"
)]

pub mod arrange;
pub mod broker;
pub mod fixtures;
pub mod growth;
pub mod process;
pub mod raw;
pub mod soak;
pub mod stage;
pub mod world;
pub mod writers;

pub use stage::{Person, Stage};
