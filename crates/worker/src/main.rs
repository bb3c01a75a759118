//! The worker's process; all of it is in the library.

fn main() -> std::process::ExitCode {
    worker::cli::main()
}
