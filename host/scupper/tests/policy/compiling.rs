//! The compiler's child: it limits itself, and reports errors in its input.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::guest;

/// Ends its process when the test ends.
struct Compiler(Child);

impl Compiler {
    fn start() -> Self {
        Self::with(&[])
    }

    fn with(arguments: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_scupper"))
            .arg("compile-policy")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Passes it its input, and returns its success, the length of its output and its error.
    fn give(mut self, wasm: &[u8]) -> (bool, usize, String) {
        // It may stop reading early.
        let _all = self.0.stdin.take().unwrap().write_all(wasm).is_ok();
        let (mut native, mut complaint) = (Vec::new(), String::new());
        self.0.stdout.take().unwrap().read_to_end(&mut native).unwrap();
        self.0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut complaint)
            .unwrap();
        (self.0.wait().unwrap().success(), native.len(), complaint)
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        let _ended = self.0.kill().is_ok();
        let _reaped = self.0.wait().is_ok();
    }
}

#[test]
fn it_limits_itself_before_it_reads() {
    let compiler = Compiler::start();
    let file = format!("/proc/{}/limits", compiler.0.id());
    let wanted = [
        // The kernel gives the reason at the first limit, and kills at the second. A release's are 59 and 60.
        ("Max cpu time", "299 300"),
        // The maximum size of native code; its output is the only file.
        ("Max file size", "268435456"),
        ("Max core file size", "0"),
        ("Max open files", "4"),
        ("Max address space", "4294967296"),
    ];
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let limits = fs::read_to_string(&file).unwrap();
        let holds = |(name, bound): &(&str, &str)| {
            let values = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            let mut values = values.split_whitespace();
            let (soft, hard) = bound.split_once(' ').unwrap_or((bound, bound));
            (values.next(), values.next()) == (Some(soft), Some(hard))
        };
        if wanted.iter().all(holds) {
            return;
        }
        assert!(Instant::now() < deadline, "{limits}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn it_gives_up_files_and_the_network_before_it_reads() {
    let compiler = Compiler::start();
    let tasks = format!("/proc/{}/task", compiler.0.id());
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let statuses: Vec<String> = fs::read_dir(&tasks)
            .unwrap()
            .filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok())
            .collect();
        // A permanent filter, in each of its threads.
        let confined = |status: &String| {
            ["Seccomp:\t2", "NoNewPrivs:\t1"]
                .iter()
                .all(|line| status.contains(line))
        };
        if statuses.iter().all(confined) {
            return;
        }
        assert!(Instant::now() < deadline, "{}", statuses.concat());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn it_ends_by_itself_when_its_time_is_over() {
    let mut compiler = Compiler::with(&["--wall-seconds=1"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    // Its input does not end.
    while compiler.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it waits for ever");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (succeeded, native, complaint) = compiler.give(b"");
    assert!(!succeeded && native == 0, "{complaint}");
    assert_eq!(complaint.trim(), r#"{"other":"it took longer than 1 s"}"#);
}

#[test]
fn it_does_not_begin_when_its_driver_is_dead() {
    // A process that exists and did not start it.
    let (succeeded, _, complaint) = Compiler::with(&["--parent=1"]).give(b"");
    assert!(
        !succeeded && complaint.contains("the driver that started it is dead"),
        "{complaint}"
    );
}

#[test]
fn it_takes_no_more_memory_than_it_was_given() {
    let bomb = fs::read(crate::hostile::bytes::bomb("memory")).unwrap();
    let (succeeded, native, complaint) = Compiler::with(&["--memory=100000000"]).give(&bomb);
    assert!(
        !succeeded && native == 0 && complaint.contains("memory allocation of"),
        "{complaint}"
    );
}

#[test]
fn it_refuses_a_file_that_is_not_a_component_in_one_line() {
    for wasm in [
        b"".as_slice(),
        b"nonsense",
        b"\0asm\x01\0\0\0",
        b"\0asm\x0d\0\x01\0\xff",
    ] {
        let (succeeded, native, complaint) = Compiler::start().give(wasm);
        assert!(
            !succeeded
                && native == 0
                && complaint.starts_with("{\"source\":")
                && complaint.lines().count() == 1,
            "{wasm:?}: {complaint}"
        );
    }
}

#[test]
fn it_refuses_oversized_files() {
    let (succeeded, native, complaint) = Compiler::start().give(&vec![0; (32 << 20) + 1]);
    assert!(!succeeded && native == 0, "{complaint}");
    assert_eq!(complaint.trim(), r#"{"source":"too-large"}"#);
}

#[test]
fn it_compiles_a_component() {
    let wasm = fs::read(guest("echo")).unwrap();
    let (succeeded, native, complaint) = Compiler::start().give(&wasm);
    assert!(succeeded && native > wasm.len(), "{native} bytes; {complaint}");
}

#[test]
fn a_program_whose_file_was_deleted_still_compiles() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = dir.path().join("scupper");
    fs::hard_link(env!("CARGO_BIN_EXE_scupper"), &program).unwrap();
    let mut precompile = Command::new(&program)
        .arg("precompile")
        .arg("--out")
        .arg(dir.path().join("native"))
        .args([guest("echo"), guest("asks"), guest("emits"), guest("waves")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut compiled = BufReader::new(precompile.stdout.take().unwrap()).lines();
    compiled.next().unwrap().unwrap();
    fs::remove_file(&program).unwrap();
    let others = compiled.count();
    let ended = precompile.wait_with_output().unwrap();
    assert_eq!(others, 3, "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success());
}
