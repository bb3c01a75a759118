//! The whole system against a real broker and a real database, one file a theme.

#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::tests_outside_test_module,
    reason = "these are tests"
)]

mod call_admitted;
mod call_denied;
