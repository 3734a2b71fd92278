//! The `scupper` program.

fn main() -> std::process::ExitCode {
    scupper::main()
}
