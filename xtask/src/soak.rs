//! `cargo xtask soak`: turns with a scripted model while servers, workers, the broker and the database are killed under them.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::cargo::{cargo, run};

/// What is to be done.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many turns
    #[arg(long, default_value_t = 500)]
    turns: u64,
    /// After how many seconds no more turns are begun; 0 for as long as it takes
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// What chance comes from; another each time where it is left out
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs it. Its services are of its own, since it loses them.
pub(crate) fn soak(options: &Options) -> anyhow::Result<()> {
    let numbers = [options.turns, options.seconds, options.seed.unwrap_or_else(some_seed)];
    let mut test = cargo(&["test", "--quiet", "--package", "e2e", "--test", "soak", "--"]);
    test.args(numbers.map(|number| number.to_string()));
    run(test)
}

#[expect(clippy::disallowed_methods, reason = "a seed that is another each time")]
fn some_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(since.subsec_micros())
}
