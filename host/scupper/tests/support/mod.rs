//! The real program, and a simulated cluster for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// It ended with this code, and its error names all of these.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, names: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        let errors: Vec<_> = self
            .stderr
            .lines()
            .filter(|line| line.starts_with("error: "))
            .collect();
        assert!(!errors.is_empty(), "no error is reported: {self:#?}");
        let reported = errors.join("\n");
        for name in names {
            assert!(
                reported.contains(name),
                "the error does not name {name}: {reported}"
            );
        }
    }
}

/// Runs the program to its end; one that does not end within `limit` is killed and has no code.
pub(crate) fn scupper(args: &[&str], limit: Duration) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command.args(args);
    run(command, limit)
}

/// Runs a command to its end; one that does not end within `limit` is killed and has no code.
pub(crate) fn run(mut command: Command, limit: Duration) -> Run {
    for name in [
        "KUBECONFIG",
        "NODE_NAME",
        "POD_NAME",
        "POD_NAMESPACE",
        "POD_UID",
        "SCUPPER_LOG",
        "SCUPPER_CACHE_DIR",
    ] {
        command.env_remove(name);
    }
    let dir = tempfile::tempdir().unwrap();
    let (out, err) = (dir.path().join("out"), dir.path().join("err"));
    let file = |path: &Path| std::fs::File::create(path).unwrap();
    command
        .env("HOME", dir.path())
        .stdin(Stdio::null())
        .stdout(file(&out))
        .stderr(file(&err));
    let mut child = command.spawn().unwrap();
    let begin = Instant::now();
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if begin.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    Run {
        code,
        stdout: read(&out),
        stderr: read(&err),
    }
}

/// The folder of the policies as components, built once for all tests of a process.
pub(crate) fn policies() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let workspace = xtask::workspace::Workspace::read().unwrap();
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("policies");
        xtask::policies::build(&workspace, &[], Some(&out)).unwrap();
        out
    })
}
