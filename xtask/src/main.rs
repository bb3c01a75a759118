//! `cargo xtask`: the stack on this machine, the tests as CI runs them, and what keeps committed data true.

mod bench;
mod cargo;
mod interop;
mod mutants;
mod peers;
mod prepare;
mod programs;
mod real_model;
mod scratch;
mod signals;
mod soak;
mod stack;
mod steps;
mod test;
mod up;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use real_model::Afterwards;
use xtask::services::Install;

/// Runs and tests this project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Starts the whole stack here, and stops it at Ctrl-C
    Up {
        #[command(flatten)]
        services: ServiceArguments,
    },
    /// Starts a database and a broker only, prints their URLs, and stops them at Ctrl-C
    Services {
        #[command(flatten)]
        services: ServiceArguments,
    },
    /// Runs what CI runs: format, lints, documentation, offline query data, all tests
    Test {
        #[command(flatten)]
        services: ServiceArguments,
        /// Passed on to `cargo test`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Writes the offline query data of `sqlx`'s macros to `.sqlx`
    Prepare {
        #[command(flatten)]
        services: ServiceArguments,
        /// Only compares, and fails where `.sqlx` is not what would be written
        #[arg(long)]
        check: bool,
    },
    /// Removes each gate in turn, in a copy, and shows that the test named for it fails
    Mutants {
        #[command(flatten)]
        services: ServiceArguments,
        /// Only the mutations whose name contains this
        filter: Option<String>,
    },
    /// Measures the hop against the peers, and writes the table to target/bench
    Bench {
        /// The folder of the peers; without it, ours is measured alone
        #[arg(long, value_name = "DIR")]
        peers: Option<PathBuf>,
        #[command(flatten)]
        options: bench::Options,
    },
    /// Shows that a Nest client is served by our server, and our worker by a Nest server
    Interop {
        #[command(flatten)]
        services: ServiceArguments,
        /// The folder of the peers
        #[arg(long, value_name = "DIR")]
        peers: PathBuf,
    },
    /// Kills servers, workers, the broker and the database under turns, and shows that nothing is lost and nothing done twice
    Soak {
        #[command(flatten)]
        options: soak::Options,
    },
    /// Shows that the stack works with a real, small language model, which is installed in target/real-model
    RealModel {
        #[command(flatten)]
        services: ServiceArguments,
        /// Leaves the stack running afterwards, until Ctrl-C
        #[arg(long)]
        keep: bool,
    },
}

#[derive(clap::Args)]
struct ServiceArguments {
    /// Installs PostgreSQL and RabbitMQ with apt-get first, where one is missing
    #[arg(long)]
    install: bool,
}

impl ServiceArguments {
    fn install(&self) -> Install {
        if self.install { Install::Allowed } else { Install::Never }
    }
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Task::Up { services } => up::up(services.install()),
        Task::Services { services } => up::services_only(services.install()),
        Task::Test { services, arguments } => test::test(services.install(), &arguments),
        Task::Prepare { services, check: true } => prepare::check(services.install()),
        Task::Prepare { services, check: false } => prepare::write(services.install()),
        Task::Mutants { services, filter } => mutants::run_all(services.install(), filter.as_deref()),
        Task::Bench { peers, options } => bench::bench(peers.as_deref(), &options),
        Task::Interop { services, peers } => interop::interop(services.install(), &peers),
        Task::Soak { options } => soak::soak(&options),
        Task::RealModel { services, keep } => {
            let afterwards = if keep { Afterwards::Keep } else { Afterwards::Stop };
            real_model::real_model(services.install(), afterwards)
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
