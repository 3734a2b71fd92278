//! The parent of the compiler's child: passes it a sealed component, seals its output, and ends it at its time limit.
//! Neither the component nor the native code ever lies in the driver's own memory.
//!
//! The child shares the driver's container, and a container above its memory limit dies as a whole. So the child may
//! only use the memory that the container has available, and a mark on disk names the component being compiled: a
//! component that killed the driver all the same is not compiled again automatically.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::{io, thread};

use scupper_common::text::one_line;
use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::attempt::{Attempt, Marked};
use crate::compile_error::{ChildReport, CompileFault, REPORT_BYTES, split_unconfined};
use crate::engine_config::Processor;
use crate::files::sealed::Draft;
use crate::limits::{Allotment, CompileLimit, CompileLimits};
use crate::memory_room::{MemoryRoom, memory_room};
use crate::native::Native;
use crate::wasm_file::WasmFile;

/// The running program as the compiler. An upgrade may replace or delete its file meanwhile; the kernel starts the code
/// that runs here all the same, so that parent and child always have the same version.
pub fn own_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// Compiles one policy at a time: the largest needs 450 MB while it is compiled.
pub struct Compiler {
    program: PathBuf,
    turn: Semaphore,
    limits: CompileLimits,
}

/// Where to mark the component being compiled.
pub struct Mark<'a> {
    /// The directory of compiled policies.
    pub dir: &'a Path,
    /// Identifies the component and the engine.
    pub key: &'a str,
    /// The UID of the driver's pod; empty outside of pods.
    pub pod: &'a str,
}

/// The confinement mechanisms that the kernel lacks, as reported by a child.
static LACKING: OnceLock<String> = OnceLock::new();

/// The mechanisms that the kernel lacks to confine a component that has taken over the compiler. `None`: it lacks none,
/// or nothing has been compiled yet.
pub fn compiler_lacks() -> Option<&'static str> {
    LACKING.get().map(String::as_str)
}

/// Why a policy could not be compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The child did not start.
    #[error("cannot start the compiler {}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Communication with the child failed.
    #[error("cannot exchange data with the compiler")]
    Talk(#[source] io::Error),
    /// The child's output could not be sealed.
    #[error("cannot keep the native code in memory")]
    Take(#[source] io::Error),
    /// It reached a limit.
    #[error("{0}")]
    Limit(CompileLimit),
    /// A driver died while compiling this component.
    #[error(
        "the driver was killed while it compiled this policy, most likely at the memory limit of its container, and does \
         not try again by itself. It tries again when that limit (`resources.limits.memory`) or the policy has changed, \
         in a new pod (`kubectl delete pod`), or when {} is deleted",
        mark.display()
    )]
    Killed {
        /// The mark of that attempt.
        mark: PathBuf,
    },
    /// The compiler refused it, or ended abnormally.
    #[error("the compiler {status}{}", after(report))]
    Refused {
        /// How it ended.
        status: String,
        /// Its report.
        report: String,
    },
}

impl Compiler {
    /// With the program whose subcommand `compile-policy` compiles.
    pub fn new(program: &Path, limits: CompileLimits) -> Self {
        Self {
            program: program.to_owned(),
            turn: Semaphore::new(1),
            limits,
        }
    }

    /// Scans and compiles in a child process, which has ended when this returns. `wasi`: the component may import the
    /// harmless part of WASI.
    pub async fn compile(
        &self,
        source: &WasmFile,
        (wasi, processor): (bool, Processor),
        mark: Option<Mark<'_>>,
    ) -> Result<Native, CompileFault> {
        // The semaphore is never closed.
        let _turn = self.turn.acquire().await;
        // Measured only now: the previous compilation has released its memory.
        let room = spawn_blocking(memory_room).await;
        let room = room.map_err(|_panicked| CompileFault::BrokenOff)?;
        let allotment = self.limits.within(room, source.bytes().length());
        let allotment = allotment.map_err(CompileError::Limit)?;
        let _attempt = match mark {
            Some(mark) => begin(&mark, room).await?,
            None => None,
        };
        let draft = Draft::new("native").map_err(CompileError::Take)?;
        let mut started = self.start(source, &draft, (wasi, processor), &allotment).await?;
        let Ok(ended) = timeout(self.limits.wall, end(&mut started.child)).await else {
            // It may have ended already; killing it twice is harmless. Waiting reaps it.
            let _killed = started.child.kill().await.is_ok();
            return Err(CompileError::Limit(CompileLimit::Wall(self.limits.wall)).into());
        };
        let (status, said) = ended.map_err(CompileError::Talk)?;
        let (lacking, report) = split_unconfined(&said);
        lacking.into_iter().for_each(lacks);
        if !status.success() {
            return Err(refused(status, report, &allotment));
        }
        let native_bytes = allotment.limits.native_bytes;
        let sealed = spawn_blocking(move || draft.seal(native_bytes)).await;
        let sealed = sealed.map_err(|_panicked| CompileFault::BrokenOff)?;
        let code = sealed.map_err(CompileError::Take)?;
        Ok(Native::from_child(
            code.ok_or_else(|| CompileError::Limit(allotment.native()))?,
        ))
    }

    async fn start(
        &self,
        source: &WasmFile,
        native: &Draft,
        (wasi, processor): (bool, Processor),
        allotment: &Allotment,
    ) -> Result<Started, CompileError> {
        let input = source.bytes().open().map_err(CompileError::Talk)?;
        let output = native.file().map_err(CompileError::Take)?;
        let mut command = Command::new(&self.program);
        command
            .arg("compile-policy")
            .args(wasi.then_some("--wasi"))
            .args((processor == Processor::Any).then_some("--any-processor"))
            .args(allotment.arguments())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Started::of(command).await.map_err(|source| CompileError::Start {
            program: self.program.clone(),
            source,
        })
    }
}

/// A child, and the thread that started it.
///
/// The child asks the kernel to be killed with its parent, and to the kernel the parent is a thread. A thread of the
/// async runtime may end while the driver lives, so each child has a thread that lives as long as the child.
struct Started {
    child: Child,
    _until: mpsc::Sender<()>,
}

impl Started {
    async fn of(mut command: Command) -> io::Result<Self> {
        let (until, ended) = mpsc::channel::<()>();
        let (answer, started) = oneshot::channel();
        let runtime = Handle::current();
        thread::Builder::new()
            .name("compiler".to_owned())
            .spawn(move || {
                let _runtime = runtime.enter();
                if answer.send(command.spawn()).is_ok() {
                    // No message is ever sent: this returns when the sender is dropped.
                    let _over = ended.recv().is_err();
                }
            })?;
        let child = started
            .await
            .map_err(|_panicked| io::Error::other("its thread ended"))??;
        Ok(Self { child, _until: until })
    }
}

/// Marks the component. `None`: another process is compiling it.
async fn begin(mark: &Mark<'_>, room: Option<MemoryRoom>) -> Result<Option<Attempt>, CompileFault> {
    let (dir, key, pod) = (mark.dir.to_owned(), mark.key.to_owned(), mark.pod.to_owned());
    let limit = room.map(|room| room.limit);
    let marked = spawn_blocking(move || Attempt::begin(&dir, &key, &pod, limit)).await;
    match marked.map_err(|_panicked| CompileFault::BrokenOff)?? {
        Marked::Begun(attempt) => Ok(Some(attempt)),
        Marked::Elsewhere => Ok(None),
        Marked::DiedOf(mark) => Err(CompileError::Killed { mark }.into()),
    }
}

/// Logs the missing mechanisms once.
fn lacks(lacking: String) {
    if LACKING.set(lacking.clone()).is_ok() {
        tracing::warn!(target: "scupper::policy", "this kernel cannot fully sandbox the policy compiler: it lacks {lacking}; policies are compiled anyway");
    }
}

/// Reads its standard error and waits for its end.
async fn end(child: &mut Child) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut report = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        stderr.take(REPORT_BYTES).read_to_end(&mut report).await?;
    }
    Ok((child.wait().await?, report))
}

/// Why there is no native code, from the child's report. The report of a killed child may be incomplete.
fn refused(status: ExitStatus, report: &[u8], allotment: &Allotment) -> CompileFault {
    if let Some(limit) = allotment.reached(status, report) {
        return CompileError::Limit(limit).into();
    }
    let said = match ChildReport::read(report) {
        Some(ChildReport::Source(error)) => return CompileFault::Source(error.in_one_line()),
        Some(ChildReport::TooLarge) => {
            return CompileError::Limit(allotment.native()).into();
        }
        Some(ChildReport::Other(text)) => text,
        None => String::from_utf8_lossy(report).into_owned(),
    };
    CompileFault::Compile(CompileError::Refused {
        status: ended(status),
        report: one_line(said.trim(), 1024),
    })
}

/// A report as the end of a sentence; a child that was killed leaves none.
fn after(report: &str) -> String {
    match report {
        "" => String::new(),
        report => format!(": {report}"),
    }
}

fn ended(status: ExitStatus) -> String {
    match status.signal() {
        // The kernel killed it because the container is out of memory.
        Some(9) => "was killed, most likely because the container's memory limit was reached".to_owned(),
        Some(signal) => format!("was ended by signal {signal}"),
        None => "refused it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::SourceError;

    /// A test program in place of the compiler.
    fn program(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/compilers")
            .join(name)
    }

    /// Whether a process with this argument is running.
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

    fn source() -> WasmFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"wasm").unwrap();
        WasmFile::read(file.path()).unwrap()
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
        let compiled = compiler.compile(&source(), (false, Processor::This), None).await;
        let Err(fault) = compiled else {
            panic!("it was compiled")
        };
        assert_eq!(reported(&fault), "compiling it took longer than 0.3 s");
        until_ended().await;
    }

    #[tokio::test]
    async fn a_compiler_whose_caller_is_gone_is_ended() {
        let compiler = Compiler::new(&program("hangs"), CompileLimits::default());
        let source = source();
        let given_up = timeout(
            Duration::from_millis(300),
            compiler.compile(&source, (false, Processor::This), None),
        )
        .await;
        assert!(given_up.is_err());
        until_ended().await;
    }

    fn usual() -> Allotment {
        CompileLimits::default().within(None, 0).unwrap()
    }

    #[test]
    fn the_childs_report_is_decoded_to_the_same_error() {
        let failed = ExitStatus::from_raw(1 << 8);
        let fault = |said: &str| refused(failed, said.as_bytes(), &usual());
        assert!(matches!(
            fault(r#"{"source":"core-module"}"#),
            CompileFault::Source(SourceError::CoreModule)
        ));
        assert!(matches!(
            fault("\"too-large\"\n"),
            CompileFault::Compile(CompileError::Limit(CompileLimit::Native(_)))
        ));
        for said in [r#"{"other":"no\nway"}"#, "no\nway"] {
            assert_eq!(reported(&fault(said)), r"the compiler refused it: no\nway");
        }
    }

    #[test]
    fn a_compromised_childs_report_moves_no_cursor() {
        let failed = ExitStatus::from_raw(1 << 8);
        let long = format!(
            r#"{{"source":{{"imports":{{"imports":"\u001b[2J{}"}}}}}}"#,
            "x".repeat(3000)
        );
        let CompileFault::Source(SourceError::Imports { imports }) =
            refused(failed, long.as_bytes(), &usual())
        else {
            panic!("{long}")
        };
        assert!(
            imports.starts_with(r"\u{1b}[2J") && imports.len() <= 1024,
            "{imports}"
        );
    }

    fn reported(fault: &CompileFault) -> String {
        let CompileFault::Compile(error) = fault else {
            panic!("{fault}")
        };
        error.to_string()
    }
}
