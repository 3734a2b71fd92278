//! The program: its hidden role as the policies' compiler, or its command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else is set up: the compiler limits itself to four open files.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|role| role == "compile-policy")
    {
        return scupper::policy::compile_child();
    }
    ExitCode::SUCCESS
}
