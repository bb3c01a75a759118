//! The demo model's process; all of it is in the library.

fn main() -> std::process::ExitCode {
    scripted_model::cli::main()
}
