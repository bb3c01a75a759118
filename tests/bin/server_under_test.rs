//! The server with its test hooks, for tests that end a whole process. `PAUSE_BEFORE_REPLY_MS` opens the gap between a write's
//! commit and its reply, in which such a test kills it; `ABORT_ON_KEY` makes it end itself at each call whose key ends so.

use std::{process::ExitCode, time::Duration};

#[expect(
    clippy::disallowed_methods,
    reason = "the hooks' own variables, which no configuration of the server knows"
)]
fn main() -> ExitCode {
    if let Some(ms) = std::env::var("PAUSE_BEFORE_REPLY_MS")
        .ok()
        .and_then(|ms| ms.parse().ok())
    {
        server::hooks::pause_between_effect_and_reply(Duration::from_millis(ms));
    }
    if let Ok(end_of_key) = std::env::var("ABORT_ON_KEY") {
        server::hooks::abort_on(end_of_key);
    }
    server::cli::main()
}
