//! The worker, for tests that end a whole process.

use std::process::ExitCode;

fn main() -> ExitCode {
    worker::cli::main()
}
