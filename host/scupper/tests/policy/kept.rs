//! Compiled policies on disk: compiled once, by the child, and never trusted after any modification.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scupper_engine::PlanAnswer;
use scupper_policy::{CompileError, LoadFault, Policies};
use scupper_policy_spec::PolicySpec;

use crate::support::{FakeCluster, chain, fault, plan, runtime_in, runtime_with, spec};

/// A program that compiles nothing.
const NO_COMPILER: &str = "/nonexistent/compiler";

/// A directory with the permissions that the driver requires.
fn private_dir() -> tempfile::TempDir {
    tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir()
        .unwrap()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

async fn load_from(dir: &Path, compiler: Option<&str>) -> Result<Policies, (LoadFault, String)> {
    let runtime = match compiler {
        Some(compiler) => runtime_with(dir, Path::new(compiler)),
        None => runtime_in(dir),
    };
    Policies::load(&runtime, &[spec("echo")], Arc::new(FakeCluster::default()))
        .await
        .map_err(fault)
}

#[tokio::test]
async fn is_compiled_once() {
    let dir = private_dir();
    let cache = dir.path().join("a");
    load_from(&cache, None).await.unwrap();
    let [file] = files(&cache).try_into().unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o400);
    assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o7777, 0o700);
    let policies = load_from(&cache, Some(NO_COMPILER)).await.unwrap();
    assert!(matches!(plan(&policies, 2).await, PlanAnswer::Plan(_)));
}

#[tokio::test]
async fn a_changed_file_is_deleted_and_compiled_again() {
    let dir = private_dir();
    load_from(dir.path(), None).await.unwrap();
    let [file] = files(dir.path()).try_into().unwrap();
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for tampered in [flipped.as_slice(), &whole[..whole.len() - 1], b"", b"\x7fELF"] {
        fs::remove_file(&file).unwrap();
        fs::write(&file, tampered).unwrap();
        let refused = load_from(dir.path(), Some(NO_COMPILER)).await;
        assert!(
            matches!(refused, Err((LoadFault::Compile(CompileError::Start { .. }), _))),
            "a tampered file was loaded"
        );
        assert_eq!(files(dir.path()), [] as [PathBuf; 0]);
        load_from(dir.path(), None).await.unwrap();
        assert_eq!(fs::read(&file).unwrap(), whole);
    }
}

#[tokio::test]
async fn foreign_code_under_a_right_name_is_not_followed() {
    let dir = private_dir();
    load_from(dir.path(), None).await.unwrap();
    let [file] = files(dir.path()).try_into().unwrap();
    let elsewhere = private_dir();
    let kept = elsewhere.path().join("kept.cwasm");
    fs::rename(&file, &kept).unwrap();
    symlink(&kept, &file).unwrap();
    let refused = load_from(dir.path(), Some(NO_COMPILER)).await;
    assert!(
        matches!(refused, Err((LoadFault::Compile(_), _))),
        "a symbolic link was followed"
    );
    assert!(kept.exists() && !file.exists());
}

#[tokio::test]
async fn code_of_another_engine_is_compiled_again() {
    let dir = private_dir();
    load_from(dir.path(), None).await.unwrap();
    let [file] = files(dir.path()).try_into().unwrap();
    // Correct by name and by digest, and yet not our code: as after an update that forgot to change the fingerprint.
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    let other = b"code of another engine";
    let mut parts: Vec<&str> = name.trim_end_matches(".cwasm").split('-').collect();
    let digest = sha256(other);
    parts.pop();
    parts.push(&digest);
    fs::remove_file(&file).unwrap();
    fs::write(dir.path().join(format!("{}.cwasm", parts.join("-"))), other).unwrap();
    load_from(dir.path(), None).await.unwrap();
    assert_eq!(files(dir.path()), [file]);
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};

    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[tokio::test]
async fn a_directory_that_others_can_write_to_is_refused() {
    let dir = private_dir();
    let open = dir.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o770)).unwrap();
    let Err((LoadFault::Cache(_), text)) = load_from(&open, None).await else {
        panic!("it was used")
    };
    assert!(
        text.contains("mode 0770") && text.contains("chmod 0700"),
        "{text}"
    );
    let private = dir.path().join("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
    for link in [dir.path().join("link"), dir.path().join("link/")] {
        if !dir.path().join("link").exists() {
            symlink(&private, dir.path().join("link")).unwrap();
        }
        let refused = load_from(&link, None).await;
        assert!(
            matches!(refused, Err((LoadFault::Cache(_), _))),
            "a symbolic link was used"
        );
    }
}

#[tokio::test]
async fn only_so_many_files_are_kept() {
    let dir = private_dir();
    for number in 0..100 {
        let old = dir.path().join(format!("{number:064}-0-0.cwasm"));
        fs::write(&old, b"old").unwrap();
        let hour = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        fs::File::open(&old).unwrap().set_modified(hour).unwrap();
    }
    let left_behind = dir.path().join(".1-1.part");
    fs::write(&left_behind, b"half").unwrap();
    let day = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
    fs::File::open(&left_behind).unwrap().set_modified(day).unwrap();
    load_from(dir.path(), None).await.unwrap();
    assert_eq!(files(dir.path()).len(), 64);
    assert!(!left_behind.exists());
    load_from(dir.path(), Some(NO_COMPILER)).await.unwrap();
}

#[tokio::test]
async fn a_compiler_that_refuses_is_quoted() {
    let dir = private_dir();
    let refuses = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../policy-compile/tests/compilers/refuses"
    );
    let Err((fault, text)) = load_from(dir.path(), Some(refuses)).await else {
        panic!("it compiled")
    };
    assert!(
        matches!(fault, LoadFault::Compile(CompileError::Refused { .. })),
        "{text}"
    );
    // One line, without our folder and our environment.
    assert!(
        text.ends_with(r"the compiler refused it: no\u{1b}[2J\nway in / with nothing"),
        "{text}"
    );
}

#[tokio::test]
async fn invalid_code_is_not_loaded_even_from_the_compiler() {
    let dir = private_dir();
    let Err((fault, text)) = load_from(dir.path(), Some("/bin/echo")).await else {
        panic!("it was loaded")
    };
    assert!(matches!(fault, LoadFault::Native(_)), "{text}");
    assert_eq!(files(dir.path()), [] as [PathBuf; 0]);
}

#[tokio::test]
async fn a_policy_is_known_by_its_bytes_not_by_its_file() {
    let dir = private_dir();
    let copy = dir.path().join("copy.wasm");
    fs::copy(spec("echo").file, &copy).unwrap();
    let cache = dir.path().join("cache");
    let specs = [
        spec("echo"),
        PolicySpec {
            name: "q".to_owned(),
            file: copy,
            ..PolicySpec::default()
        },
    ];
    let loaded = Policies::load(&runtime_in(&cache), &specs, Arc::new(FakeCluster::default())).await;
    let policies = loaded.unwrap_or_else(|error| panic!("{}", chain(&error)));
    let [one, two] = policies.descriptions().try_into().unwrap();
    assert_eq!(one.digest, two.digest);
    assert_eq!(files(&cache).len(), 1);
    assert_eq!(
        fs::metadata(&cache).unwrap().uid(),
        rustix::process::geteuid().as_raw()
    );
}
