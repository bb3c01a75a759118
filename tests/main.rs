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

mod announcements;
mod approvals;
mod architecture;
mod assessments;
mod attendance;
mod audit_entries;
mod authorization;
mod books;
mod call_admitted;
mod call_denied;
mod casl;
mod catalog;
mod ceilings;
mod chat;
mod compile_fail;
mod contract_hash;
mod conversations;
mod costs;
mod coverage;
mod deadlines;
mod departments;
mod doors;
mod evaluations;
mod every_tool;
mod every_write;
mod faulty_models;
mod gradebooks;
mod grading;
mod growth;
mod http;
mod http_page;
mod idempotency;
mod invitations;
mod kill_broker;
mod kill_database;
mod kill_server;
mod last_administrator;
mod leaks;
mod lesson_plans;
mod lesson_reviews;
mod malformed;
mod many_turns;
mod paging;
mod pool;
mod redelivery;
mod registry;
mod reports;
mod results;
mod resume;
mod scope_sentences;
mod scores;
mod shutdown;
mod soak;
mod staff;
mod stopping;
mod streams;
mod student_search;
mod students;
mod subjects;
mod teaching;
mod texts;
mod turns;
mod waiting;
mod working;
