//! Native code in the program's image: used without compiling, and only while it is unmodified.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use scupper_common::clock::Clock;
use scupper_engine::PlanAnswer;
use scupper_policy::{CompileError, LoadFault, Network, Policies, Runtime, RuntimeOptions, Secrets};

use crate::support::{FakeCluster, fault, guest, plan, spec};

/// A directory with the native code of a guest, as `deploy/rootfs` makes it, and the file.
fn shipped() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_scupper"))
        .arg("precompile")
        .arg("--out")
        .arg(dir.path())
        .arg(guest("echo"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let file = PathBuf::from(String::from_utf8(ran.stdout).unwrap().trim());
    (dir, file)
}

/// Loads the guest where compiling is impossible.
async fn load(dir: &Path) -> Result<Policies, (LoadFault, String)> {
    let cache = tempfile::tempdir().unwrap();
    let runtime = Runtime::new(RuntimeOptions {
        cache: cache.path().join("native"),
        shipped: Some(dir.to_owned()),
        compiler: "/nonexistent/compiler".into(),
        clock: Clock::System,
        network: Network::default(),
        secrets: Secrets::default(),
    })
    .unwrap();
    Policies::load(&runtime, &[spec("echo")], Arc::new(FakeCluster::default()))
        .await
        .map_err(fault)
}

async fn is_not_used(dir: &Path) {
    let refused = load(dir).await;
    assert!(
        matches!(refused, Err((LoadFault::Compile(CompileError::Start { .. }), _))),
        "it was used"
    );
}

#[tokio::test]
async fn a_policy_of_the_image_is_not_compiled() {
    let (dir, _) = shipped();
    let policies = load(dir.path()).await.unwrap();
    assert!(matches!(plan(&policies, 2).await, PlanAnswer::Plan(_)));
}

#[tokio::test]
async fn modified_code_is_not_used() {
    let (dir, file) = shipped();
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for tampered in [flipped.as_slice(), &whole[..whole.len() - 1], b""] {
        fs::remove_file(&file).unwrap();
        fs::write(&file, tampered).unwrap();
        is_not_used(dir.path()).await;
    }
}

#[tokio::test]
async fn a_directory_that_others_can_write_to_is_not_used() {
    let (dir, file) = shipped();
    for (path, mode, again) in [(dir.path(), 0o777, 0o755), (&file, 0o646, 0o444)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        is_not_used(dir.path()).await;
        fs::set_permissions(path, fs::Permissions::from_mode(again)).unwrap();
    }
    load(dir.path()).await.unwrap();
}

#[tokio::test]
async fn without_the_directory_a_policy_is_compiled() {
    is_not_used(Path::new("/nonexistent/native")).await;
}
