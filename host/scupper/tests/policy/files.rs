//! Files that are not policies, and policies that do not fit: each is refused at its step, with a message that names
//! the remedy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use scupper_policy::{LoadError, LoadFault, Policies, SourceError};
use scupper_policy_spec::PolicySpec;

use crate::support::{core_module, fault, grant, guest, load_spec, refused, scratch, spec};

/// Loads a file as the policy `p`, and returns the error.
async fn refused_file(file: &Path) -> (LoadFault, String) {
    let spec = PolicySpec {
        name: "p".to_owned(),
        file: file.to_owned(),
        ..PolicySpec::default()
    };
    refused_spec(spec).await
}

async fn refused_spec(spec: PolicySpec) -> (LoadFault, String) {
    let loaded: Result<Policies, LoadError> = load_spec(spec).await;
    let Err(error) = loaded else {
        panic!("it was loaded")
    };
    fault(error)
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let file = scratch().join(name);
    std::fs::write(&file, bytes).unwrap();
    file
}

macro_rules! assert_source {
    ($reported:expr, $fault:pat, $($word:expr),+) => {
        let (fault, text) = $reported;
        assert!(matches!(fault, LoadFault::Source($fault)), "{text}");
        $(assert!(text.contains($word), "`{}` is missing in: {text}", $word);)+
    };
}

#[tokio::test]
async fn a_missing_file() {
    let reported = refused_file(Path::new("/nonexistent/p.wasm")).await;
    assert_source!(
        reported,
        SourceError::Read(_),
        "policy `p` from /nonexistent/p.wasm is not loaded",
        "No such file"
    );
}

#[tokio::test]
async fn a_directory_and_a_pipe() {
    assert_source!(
        refused_file(scratch()).await,
        SourceError::NotAFile,
        "not a regular file"
    );
    let pipe = scratch().join("pipe.wasm");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    assert_source!(
        refused_file(&pipe).await,
        SourceError::NotAFile,
        "not a regular file"
    );
}

#[tokio::test]
async fn a_file_that_is_too_large() {
    let large = scratch().join("large.wasm");
    std::fs::File::create(&large)
        .unwrap()
        .set_len((32 << 20) + 1)
        .unwrap();
    assert_source!(
        refused_file(&large).await,
        SourceError::TooLarge,
        "more than 32 MiB"
    );
}

#[tokio::test]
async fn something_else() {
    for (name, bytes) in [
        ("empty.wasm", b"".as_slice()),
        ("text.wasm", b"#!/bin/sh"),
        ("short.wasm", b"\0as"),
    ] {
        assert_source!(
            refused_file(&file(name, bytes)).await,
            SourceError::NotWasm,
            "not a WebAssembly file"
        );
    }
    let future = file("future.wasm", b"\0asm\x99\0\x09\0");
    assert_source!(
        refused_file(&future).await,
        SourceError::Invalid(_),
        "unknown version"
    );
}

#[tokio::test]
async fn native_code_is_never_loaded_from_outside() {
    let elf = refused_file(Path::new(env!("CARGO_BIN_EXE_scupper"))).await;
    // A debug build of our own program may be too large to read.
    assert!(
        matches!(
            elf.0,
            LoadFault::Source(SourceError::Native | SourceError::TooLarge)
        ),
        "{}",
        elf.1
    );
    let elf = file("elf.wasm", b"\x7fELF\x02\x01\x01");
    assert_source!(
        refused_file(&elf).await,
        SourceError::Native,
        "native code",
        ".wasm component"
    );
}

#[tokio::test]
async fn a_core_module() {
    let reported = refused_file(&core_module("echo")).await;
    assert_source!(
        reported,
        SourceError::CoreModule,
        "core module",
        "scupper policy build",
        "wasm-tools component new"
    );
}

#[tokio::test]
async fn half_a_component() {
    let whole = std::fs::read(guest("echo")).unwrap();
    let half = file("half.wasm", &whole[..whole.len() / 2]);
    assert_source!(
        refused_file(&half).await,
        SourceError::Invalid(_),
        "not valid WebAssembly"
    );
}

#[tokio::test]
async fn a_component_with_any_byte_changed_is_refused_or_loaded() {
    let whole = std::fs::read(guest("echo")).unwrap();
    // The header and the types around the modules; deep inside, a changed constant still makes a policy.
    for place in (0..whole.len()).step_by(whole.len() / 24) {
        let mut changed = whole.clone();
        changed[place] ^= 0x55;
        let file = file("changed.wasm", &changed);
        let spec = PolicySpec {
            name: "p".to_owned(),
            file,
            ..PolicySpec::default()
        };
        match load_spec(spec).await {
            Ok(policies) => assert_eq!(policies.infos().len(), 1),
            Err(error) => assert!(
                !matches!(*error.fault, LoadFault::BrokenOff),
                "byte {place}: {error}"
            ),
        }
    }
}

#[tokio::test]
async fn other_world() {
    let reported = refused("other_world").await;
    assert_source!(
        reported,
        SourceError::NotAPolicy { .. },
        "scupper:drain/about",
        "it exports total"
    );
}

#[tokio::test]
async fn other_version() {
    let reported = refused("other_version").await;
    assert_source!(
        reported,
        SourceError::Version { .. },
        "is built for scupper:drain 0.9.0, and this driver has 0.1"
    );
}

#[tokio::test]
async fn other_types() {
    let (fault, text) = refused("other_types").await;
    assert!(
        matches!(fault, LoadFault::Types { what: "exports", .. }),
        "{text}"
    );
    assert!(text.contains("wit/"), "{text}");
}

#[tokio::test]
async fn idle() {
    assert_source!(
        refused("idle").await,
        SourceError::Idle,
        "scupper:drain/planner",
        "nothing to do"
    );
}

#[tokio::test]
async fn wants_wasi() {
    let reported = refused("wants_wasi").await;
    assert_source!(
        reported,
        SourceError::Wasi { .. },
        "wasi:cli/environment@0.2.6",
        "wasm32-unknown-unknown"
    );
}

#[tokio::test]
async fn wants_import() {
    let reported = refused("wants_import").await;
    assert_source!(
        reported,
        SourceError::Imports { .. },
        "scupper:drain/secrets@0.1.0"
    );
}

#[tokio::test]
async fn requested_capabilities_must_be_granted_and_the_error_names_the_flags() {
    let (fault, text) = refused("annotates").await;
    assert!(
        matches!(&fault, LoadFault::NotGranted(missing) if missing.len() == 2),
        "{text}"
    );
    assert!(
        text.contains(
            "add --grant p=node-annotations:drain.example.com/ --grant p=pod-annotations:drain.example.com/pod-"
        ),
        "{text}"
    );
    let mut narrow = spec("annotates");
    narrow.grants = vec![
        grant("node-annotations:drain.example.com/a"),
        grant("pod-annotations:drain.example.com/"),
    ];
    let (fault, text) = refused_spec(narrow).await;
    assert!(
        matches!(&fault, LoadFault::NotGranted(missing) if missing.len() == 1),
        "{text}"
    );
    assert!(
        text.ends_with("add --grant p=node-annotations:drain.example.com/"),
        "{text}"
    );
}

#[tokio::test]
async fn wants_reserved() {
    let (fault, text) = refused("wants_reserved").await;
    assert!(matches!(fault, LoadFault::Want { .. }), "{text}");
    assert!(
        text.contains("node-annotations:node.kubernetes.io/") && text.contains("never granted"),
        "{text}"
    );
    let mut generous = spec("echo");
    generous.grants = vec![grant("pod-annotations:scupper.dev/")];
    let (fault, text) = refused_spec(generous).await;
    assert!(matches!(fault, LoadFault::Grant { .. }), "{text}");
}

#[tokio::test]
async fn wants_too_much() {
    let (fault, text) = refused("wants_too_much").await;
    assert!(
        matches!(fault, LoadFault::TooManyWants { wants: 1000, .. }),
        "{text}"
    );
}

#[tokio::test]
async fn wants_unknown() {
    let (fault, text) = refused("wants_unknown").await;
    assert!(matches!(fault, LoadFault::Want { .. }), "{text}");
    assert!(
        text.contains("`secrets:token`") && text.contains("node-annotations"),
        "{text}"
    );
}

#[tokio::test]
async fn all_problems_of_a_configuration_are_reported_at_once() {
    let mut wrong = spec("configured");
    wrong.config = BTreeMap::from(
        [("mode", "loud"), ("moed", "slow")].map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    let (fault, text) = refused_spec(wrong).await;
    assert!(
        matches!(&fault, LoadFault::Config(problems) if problems.len() == 2),
        "{text}"
    );
    assert!(
        text.ends_with("`moed`: no such key; there is mode; `mode`: `loud` is neither fast nor slow"),
        "{text}"
    );
}

#[tokio::test]
async fn names_are_unique_and_plain() {
    for name in ["", "kubectl", "a b", "A", "a/b", &"a".repeat(41)] {
        let spec = PolicySpec {
            name: name.to_owned(),
            ..spec("echo")
        };
        let (fault, text) = refused_spec(spec).await;
        assert!(matches!(fault, LoadFault::Name(_)), "{text}");
    }
    let runtime = crate::support::runtime();
    let cluster = std::sync::Arc::new(crate::support::FakeCluster::default());
    let Err(error) = Policies::load(&runtime, &[spec("echo"), spec("steps")], cluster).await else {
        panic!("two policies of one name")
    };
    assert!(matches!(*error.fault, LoadFault::Twice));
}
