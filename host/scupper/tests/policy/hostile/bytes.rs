//! Rows 14 and 15: components made to compile for ever, and files of other kinds.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use scupper_policy::{CompileError, CompileLimits, LoadFault, Policies, SourceError};
use scupper_policy_spec::PolicySpec;
use wasm_encoder::{BlockType, Function, ValType};

use super::beside;
use super::modules::HandMade;
use crate::support::{FakeCluster, fault, load_spec, runtime_in, runtime_with, scratch, spec};

/// A function that computes with this many instructions.
fn long(turns: i32) -> Function {
    let mut function = Function::new([(1, ValType::I32)]);
    let mut code = function.instructions();
    for turn in 0..turns {
        code.local_get(0)
            .i32_const(turn)
            .i32_mul()
            .local_get(1)
            .i32_xor()
            .local_set(1);
    }
    code.local_get(1).end();
    function
}

/// A function with this many nested blocks.
fn deep(blocks: u32) -> Function {
    let mut function = Function::new([]);
    let mut code = function.instructions();
    for _ in 0..blocks {
        code.block(BlockType::Empty).local_get(0).br_if(0);
    }
    for _ in 0..blocks {
        code.end();
    }
    code.local_get(0).end();
    function
}

/// A function that keeps this many values at once.
fn wide(locals: u32) -> Function {
    let mut function = Function::new([(locals, ValType::I64)]);
    let mut code = function.instructions();
    for local in 1..=locals {
        code.local_get(0).i64_extend_i32_u().local_set(local);
    }
    code.i64_const(0);
    for local in 1..=locals {
        code.local_get(local).i64_add();
    }
    code.i32_wrap_i64().end();
    function
}

/// A function with nested loops around a use of each of its values: the compiler records each value for each loop.
fn nested(loops: u32, locals: u32) -> Function {
    let mut function = Function::new([(locals, ValType::I64)]);
    let mut code = function.instructions();
    for _ in 0..loops {
        code.loop_(BlockType::Empty);
    }
    for local in 1..=locals {
        code.local_get(local).i64_const(1).i64_add().local_set(local);
    }
    for _ in 0..loops {
        code.local_get(0).br_if(0).end();
    }
    code.local_get(0).end();
    function
}

/// The file of a policy of half a megabyte that takes gigabytes and minutes to compile.
pub(crate) fn bomb(name: &str) -> PathBuf {
    with_more(vec![nested(2_000, 40_000)], name).file
}

/// A hand-made component with additional functions.
fn with_more(more: Vec<Function>, name: &str) -> PolicySpec {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mut made = HandMade::right();
    made.more = more;
    // A new component each time: a compiled one is not compiled again.
    made.word(1000, NUMBER.fetch_add(1, Ordering::Relaxed));
    PolicySpec {
        file: made.file(name),
        ..spec("echo")
    }
}

/// Compiles a policy within limits.
async fn compile(spec: PolicySpec, limits: CompileLimits) -> Result<Policies, (LoadFault, String)> {
    let compiler = env!("CARGO_BIN_EXE_scupper").as_ref();
    let runtime = runtime_with(&scratch().join("compiled"), compiler).compiling_within(limits);
    let cluster = Arc::new(FakeCluster::default());
    Policies::load(&runtime, &[spec], cluster).await.map_err(fault)
}

pub(super) async fn row_14_compile_bombs() {
    let bombs: [(&str, Vec<Function>); 5] = [
        ("long", vec![long(400_000)]),
        ("deep", vec![deep(20_000)]),
        ("wide", vec![wide(8_000)]),
        ("many", vec![long(1); 40_000]),
        // Within the limits it is a policy like any other.
        ("some", vec![long(1); 400]),
    ];
    // Whatever it takes, a bomb hits its limits, so they are low here: waiting a minute would show nothing more.
    let limits = CompileLimits {
        cpu_seconds: 1,
        ..CompileLimits::default()
    };
    for (name, more) in bombs {
        let spec = with_more(more, name);
        let (loaded, steps) = beside(1, async || compile(spec.clone(), limits).await).await;
        match loaded.as_slice() {
            [Ok(policies)] => assert_eq!(policies.infos().len(), 1),
            // Beyond the limits the child dies.
            [Err((LoadFault::Compile(_) | LoadFault::Source(_), _))] if name != "some" => {}
            [Err((_, text))] => panic!("{name}: {text}"),
            _ => panic!("{name}: no answer"),
        }
        assert!(steps >= 20, "{name}: the neighbour took {steps} steps");
    }
}

#[tokio::test]
async fn row_14_the_message_names_the_limit() {
    // On a busy machine its wall-clock limit expires first.
    let usual = CompileLimits {
        wall: Duration::from_secs(600),
        ..CompileLimits::default()
    };
    let short = Duration::from_millis(300);
    let rows = [
        (
            vec![long(400_000)],
            CompileLimits {
                cpu_seconds: 1,
                ..usual
            },
            "compiling it took more than 1 s of CPU time",
        ),
        (
            vec![long(400_000)],
            CompileLimits {
                address_space: 512 << 20,
                ..usual
            },
            "compiling it took more than 512 MiB of memory",
        ),
        (
            vec![long(1); 10_000],
            CompileLimits {
                native_bytes: 1 << 20,
                ..usual
            },
            "it became more than 1 MiB of native code",
        ),
        (
            vec![long(400_000)],
            CompileLimits { wall: short, ..usual },
            "compiling it took longer than 0.3 s",
        ),
    ];
    for (number, (more, limits, reported)) in rows.into_iter().enumerate() {
        let spec = with_more(more, &format!("limit-{number}"));
        let Err((fault, text)) = compile(spec, limits).await else {
            panic!("it was loaded, and not: {reported}")
        };
        assert!(
            matches!(fault, LoadFault::Compile(CompileError::Limit(_))) && text.ends_with(reported),
            "{text}"
        );
    }
}

pub(super) async fn row_15_native_code_in_disguise() {
    for (name, bytes) in [
        ("elf.wasm", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".as_slice()),
        ("cwasm.wasm", b"\x7fELF\x02\x01\x01\x5a"),
    ] {
        let file = scratch().join(name);
        std::fs::write(&file, bytes).unwrap();
        let spec = PolicySpec { file, ..spec("echo") };
        let (loaded, _) = beside(1, async || load_spec(spec.clone()).await.map_err(fault)).await;
        assert!(
            matches!(
                loaded.as_slice(),
                [Err((LoadFault::Source(SourceError::Native), _))]
            ),
            "{name} was not refused"
        );
    }
}

/// The tests of the code cache cover other attacks on it.
pub(super) async fn row_15_a_cache_that_somebody_changed() {
    let dir = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir()
        .unwrap();
    let load = async |compiler: Option<&str>| {
        let runtime = match compiler {
            Some(compiler) => runtime_with(dir.path(), compiler.as_ref()),
            None => runtime_in(dir.path()),
        };
        Policies::load(&runtime, &[spec("echo")], Arc::new(FakeCluster::default()))
            .await
            .map_err(fault)
    };
    load(None).await.unwrap_or_else(|(_, text)| panic!("{text}"));
    let kept = std::fs::read_dir(dir.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut changed = std::fs::read(&kept).unwrap();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    std::fs::remove_file(&kept).unwrap();
    std::fs::write(&kept, changed).unwrap();
    let (loaded, _) = beside(1, async || load(Some("/nonexistent/compiler")).await).await;
    assert!(
        matches!(
            loaded.as_slice(),
            [Err((LoadFault::Compile(CompileError::Start { .. }), _))]
        ),
        "changed code was loaded"
    );
    assert!(!kept.exists(), "changed code was kept");
}
