//! The parent of the compiler's child: gives it wasm, takes native code, and ends it when its time is over.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::limits::{COMPILE_WALL, NATIVE_BYTES};
use super::native::Native;
use super::text::one_line;

/// Bytes of the child's complaint that are read.
const COMPLAINT_BYTES: u64 = 4096;

/// Compiles one policy at a time: the largest needs 450 MB while it is compiled.
pub(super) struct Compiler {
    program: PathBuf,
    turn: Semaphore,
    wall: Duration,
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
    /// It took too long.
    #[error("compiling took longer than {} s", COMPILE_WALL.as_secs())]
    Timeout,
    /// The result is too long.
    #[error("it became more than {} MiB of native code", NATIVE_BYTES >> 20)]
    TooLarge,
    /// The compiler refused it, or hit one of its limits.
    #[error("the compiler {status}: {complaint}")]
    Refused {
        /// How it ended.
        status: String,
        /// What it said.
        complaint: String,
    },
}

impl Compiler {
    pub(super) fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            turn: Semaphore::new(1),
            wall: COMPILE_WALL,
        }
    }

    /// Compiles in a child process, which is gone when this returns.
    pub(super) async fn compile(&self, wasm: &[u8]) -> Result<Native, CompileError> {
        // The semaphore is never closed.
        let _turn = self.turn.acquire().await;
        let mut child = self.start()?;
        let talked = timeout(self.wall, talk(&mut child, wasm)).await;
        if !matches!(talked, Ok(Ok(_))) {
            // It may have ended by itself; killing it twice is no harm. Waiting reaps it.
            let _killed = child.start_kill().is_ok();
        }
        let status = child.wait().await.map_err(CompileError::Talk)?;
        let (native, complaint) = talked
            .map_err(|_elapsed| CompileError::Timeout)?
            .map_err(CompileError::Talk)?;
        if native.len() as u64 > NATIVE_BYTES {
            return Err(CompileError::TooLarge);
        }
        if !status.success() {
            let complaint = one_line(String::from_utf8_lossy(&complaint).trim(), 1024);
            return Err(CompileError::Refused {
                status: ended(status),
                complaint,
            });
        }
        Ok(Native::from_child(native))
    }

    fn start(&self) -> Result<Child, CompileError> {
        Command::new(&self.program)
            .arg("compile-policy")
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| CompileError::Start {
                program: self.program.clone(),
                source,
            })
    }
}

/// Gives the child its input and takes what it says, all at once: whoever waits for the other would wait forever.
async fn talk(child: &mut Child, wasm: &[u8]) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let stdin = child.stdin.take();
    let give = async {
        let Some(mut stdin) = stdin else { return Ok(()) };
        match stdin.write_all(wasm).await {
            // The child ended before it read everything; its status and its complaint tell why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    };
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let (given, native, complaint) = tokio::join!(
        give,
        take(stdout, NATIVE_BYTES + 1),
        take(stderr, COMPLAINT_BYTES)
    );
    given?;
    Ok((native?, complaint?))
}

async fn take(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(most).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

fn ended(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("was ended by signal {signal}, most likely by a limit of its time or memory"),
        None => "refused it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[tokio::test]
    async fn a_compiler_that_hangs_is_ended() {
        let compiler = Compiler {
            wall: Duration::from_millis(300),
            ..Compiler::new(&program("hangs"))
        };
        // More than a pipe holds, so that giving and taking both wait.
        let wasm = vec![0; 1 << 20];
        let compiled = compiler.compile(&wasm).await;
        assert!(matches!(compiled, Err(CompileError::Timeout)));
        until_ended().await;
    }

    #[tokio::test]
    async fn a_compiler_whose_caller_is_gone_is_ended() {
        let compiler = Compiler::new(&program("hangs"));
        let given_up = timeout(Duration::from_millis(300), compiler.compile(b"wasm")).await;
        assert!(given_up.is_err());
        until_ended().await;
    }
}
