//! `cargo xtask interop`: a real Nest client is served by our server, and our worker's service by a real Nest server. Takes the folder
//! of the built peer; prints what it checked, and fails at the first difference.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a script that fails at the first surprise"
)]

mod nest;
mod our_server;
mod our_worker;

use std::path::PathBuf;

#[tokio::main]
async fn main() {
    let peer = PathBuf::from(std::env::args().nth(1).expect("the folder of the built Nest peer"));
    our_server::answers_a_nest_client(&peer).await;
    our_worker::is_answered_by_a_nest_server(&peer).await;
    println!("a Nest peer can stand on either side");
}

/// Says what was just checked.
fn checked(what: &str) {
    println!("ok         {what}");
}
