//! Runs the program as an author does.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// It succeeded; returns its output.
    #[track_caller]
    pub(crate) fn good(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:#?}");
        &self.stdout
    }

    /// It ended with this code; returns its output and its errors.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:#?}");
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// An empty folder with the same path each time, so that the next run finds the builds in it.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs `scupper policy …` in a folder to its end.
pub(crate) fn policy(folder: &Path, args: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper-dev"));
    command.arg("policy").args(args);
    run(folder, command)
}

/// Runs `scupper replay …` in a folder to its end, as `scupper` forwards it.
pub(crate) fn replay(folder: &Path, args: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper-dev"));
    command.arg("replay").args(args);
    run(folder, command)
}

/// Runs a command in a folder to its end.
pub(crate) fn run(folder: &Path, mut command: Command) -> Run {
    let output = command
        .current_dir(folder)
        .env_remove("SCUPPER_LOG")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// A folder of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned()
}
