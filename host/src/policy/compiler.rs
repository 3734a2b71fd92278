//! The parent of the compiler's child: gives it a sealed component, seals what it has written, and ends it when its time
//! is over. Neither the component nor the native code ever lies in the driver's own memory.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::compile_limits::{CompileLimit, CompileLimits};
use super::complaint::{COMPLAINT_BYTES, Complaint};
use super::error::LoadFault;
use super::native::Native;
use super::sealed::Draft;
use super::source::Source;
use super::text::one_line;

/// Compiles one policy at a time: the largest needs 450 MB while it is compiled.
pub(super) struct Compiler {
    program: PathBuf,
    turn: Semaphore,
    limits: CompileLimits,
}

/// Why a policy could not be compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The child could not be started.
    #[error("start the compiler {}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The child could not be spoken to.
    #[error("talk to the compiler")]
    Talk(#[source] io::Error),
    /// Its output could not be taken over.
    #[error("take over the native code")]
    Take(#[source] io::Error),
    /// It reached a limit.
    #[error("{0}")]
    Limit(CompileLimit),
    /// The compiler refused it, or ended otherwise.
    #[error("the compiler {status}: {complaint}")]
    Refused {
        /// How it ended.
        status: String,
        /// What it said.
        complaint: String,
    },
}

impl Compiler {
    pub(super) fn new(program: &Path, limits: CompileLimits) -> Self {
        Self {
            program: program.to_owned(),
            turn: Semaphore::new(1),
            limits,
        }
    }

    /// Scans and compiles in a child process, which is gone when this returns. `wasi`: the component may import the
    /// harmless part of the system.
    pub(super) async fn compile(&self, source: &Source, wasi: bool) -> Result<Native, LoadFault> {
        // The semaphore is never closed.
        let _turn = self.turn.acquire().await;
        let draft = Draft::new("native").map_err(CompileError::Take)?;
        let mut child = self.start(source, &draft, wasi)?;
        let Ok(ended) = timeout(self.limits.wall, end(&mut child)).await else {
            // It may have ended by itself; killing it twice is no harm. Waiting reaps it.
            let _killed = child.kill().await.is_ok();
            return Err(CompileError::Limit(CompileLimit::Wall(self.limits.wall)).into());
        };
        let (status, complaint) = ended.map_err(CompileError::Talk)?;
        if !status.success() {
            return Err(refused(status, &complaint, &self.limits));
        }
        let native_bytes = self.limits.native_bytes;
        let sealed = spawn_blocking(move || draft.seal(native_bytes)).await;
        let sealed = sealed.map_err(|_panicked| LoadFault::BrokenOff)?;
        let code = sealed.map_err(CompileError::Take)?;
        Ok(Native::from_child(code.ok_or(CompileError::Limit(
            CompileLimit::Native(native_bytes),
        ))?))
    }

    fn start(&self, source: &Source, native: &Draft, wasi: bool) -> Result<Child, CompileError> {
        let input = source.bytes().open().map_err(CompileError::Talk)?;
        let output = native.file().map_err(CompileError::Take)?;
        Command::new(&self.program)
            .arg("compile-policy")
            .args(wasi.then_some("--wasi"))
            .args(self.limits.arguments())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| CompileError::Start {
                program: self.program.clone(),
                source,
            })
    }
}

/// Takes what it complains of, and waits for its end.
async fn end(child: &mut Child) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut complaint = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        stderr.take(COMPLAINT_BYTES).read_to_end(&mut complaint).await?;
    }
    Ok((child.wait().await?, complaint))
}

/// Why there is no native code, by what the child has said. A child that was ended has not said it to the end.
fn refused(status: ExitStatus, complaint: &[u8], limits: &CompileLimits) -> LoadFault {
    if let Some(limit) = limits.reached(status, complaint) {
        return CompileError::Limit(limit).into();
    }
    let said = match Complaint::read(complaint) {
        Some(Complaint::Source(error)) => return LoadFault::Source(error.in_one_line()),
        Some(Complaint::TooLarge) => {
            return CompileError::Limit(CompileLimit::Native(limits.native_bytes)).into();
        }
        Some(Complaint::Other(text)) => text,
        None => String::from_utf8_lossy(complaint).into_owned(),
    };
    LoadFault::Compile(CompileError::Refused {
        status: ended(status),
        complaint: one_line(said.trim(), 1024),
    })
}

fn ended(status: ExitStatus) -> String {
    match status.signal() {
        // By the kernel, where the container has no more memory for it.
        Some(9) => "was killed, most likely because the container's memory limit was reached".to_owned(),
        Some(signal) => format!("was ended by signal {signal}"),
        None => "refused it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::SourceError;

    /// A program of the tests that stands in for the compiler.
    fn program(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/policy/compilers")
            .join(name)
    }

    /// Whether a process has this among its arguments.
    fn runs(argument: &str) -> bool {
        std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
            let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            arguments
                .split(|byte| *byte == 0)
                .any(|other| other == argument.as_bytes())
        })
    }

    async fn until_ended() {
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while runs("86399.25") {
            assert!(std::time::Instant::now() < deadline, "the compiler goes on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn source() -> Source {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"wasm").unwrap();
        Source::read(file.path()).unwrap()
    }

    #[tokio::test]
    async fn a_compiler_that_hangs_is_ended() {
        let compiler = Compiler {
            limits: CompileLimits {
                wall: Duration::from_millis(300),
                ..CompileLimits::default()
            },
            ..Compiler::new(&program("hangs"), CompileLimits::default())
        };
        let compiled = compiler.compile(&source(), false).await;
        let Err(fault) = compiled else {
            panic!("it was compiled")
        };
        assert_eq!(told(&fault), "compiling it took longer than 0.3 s");
        until_ended().await;
    }

    #[tokio::test]
    async fn a_compiler_whose_caller_is_gone_is_ended() {
        let compiler = Compiler::new(&program("hangs"), CompileLimits::default());
        let source = source();
        let given_up = timeout(Duration::from_millis(300), compiler.compile(&source, false)).await;
        assert!(given_up.is_err());
        until_ended().await;
    }

    #[test]
    fn what_the_child_says_comes_back_as_it_was_meant() {
        let failed = ExitStatus::from_raw(1 << 8);
        let fault = |said: &str| refused(failed, said.as_bytes(), &CompileLimits::default());
        assert!(matches!(
            fault(r#"{"source":"core-module"}"#),
            LoadFault::Source(SourceError::CoreModule)
        ));
        assert!(matches!(
            fault("\"too-large\"\n"),
            LoadFault::Compile(CompileError::Limit(CompileLimit::Native(_)))
        ));
        for said in [r#"{"other":"no\nway"}"#, "no\nway"] {
            assert_eq!(told(&fault(said)), r"the compiler refused it: no\nway");
        }
    }

    #[test]
    fn a_child_that_is_not_itself_any_more_moves_no_cursor() {
        let failed = ExitStatus::from_raw(1 << 8);
        let long = format!(
            r#"{{"source":{{"imports":{{"imports":"\u001b[2J{}"}}}}}}"#,
            "x".repeat(3000)
        );
        let LoadFault::Source(SourceError::Imports { imports }) =
            refused(failed, long.as_bytes(), &CompileLimits::default())
        else {
            panic!("{long}")
        };
        assert!(
            imports.starts_with(r"\u{1b}[2J") && imports.len() <= 1024,
            "{imports}"
        );
    }

    fn told(fault: &LoadFault) -> String {
        let LoadFault::Compile(error) = fault else {
            panic!("{fault}")
        };
        error.to_string()
    }
}
