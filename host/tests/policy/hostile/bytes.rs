//! Rows 14 and 15: components that are made to be compiled for ever, and files that are something else.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use scupper::policy::{CompileError, LoadFault, Policies, PolicySpec, SourceError};
use wasm_encoder::{BlockType, Function, ValType};

use super::beside;
use super::modules::HandMade;
use crate::support::{FakeCluster, fault, load_spec, runtime_in, runtime_with, scratch, spec};

/// A function that computes for so many instructions.
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

/// A function with so many blocks inside each other.
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

/// A function that keeps so many values at once.
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

pub(super) async fn row_14_compile_bombs() {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let bombs: [(&str, Vec<Function>); 4] = [
        ("long", vec![long(60_000)]),
        ("deep", vec![deep(20_000)]),
        ("wide", vec![wide(8_000)]),
        ("many", vec![long(1); 40_000]),
    ];
    for (name, more) in bombs {
        let mut made = HandMade::right();
        made.more = more;
        // Another component each time: one that was compiled before is not compiled again.
        made.word(1000, NUMBER.fetch_add(1, Ordering::Relaxed));
        let spec = PolicySpec {
            file: made.file(name),
            ..spec("echo")
        };
        let (loaded, steps) = beside(1, async || load_spec(spec.clone()).await.map_err(fault)).await;
        // Within its bounds it is a policy like any other; beyond them the child is what dies.
        match loaded.as_slice() {
            [Ok(policies)] => assert_eq!(policies.infos().len(), 1),
            [Err((LoadFault::Compile(_) | LoadFault::Source(_), _))] => {}
            [Err((_, text))] => panic!("{name}: {text}"),
            _ => panic!("{name}: no answer"),
        }
        assert!(steps >= 20, "{name}: the neighbour took {steps} steps");
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

/// What else can be done to the cache stands in the tests of what is kept.
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
