//! Row 17 of the threat table: a tag that flaps, a pipeline that pushes for ever.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use scupper_common::clock::Clock;
use scupper_policy_reload::{ReloadNotice, ReloadOptions, ReloadRules};

use crate::rig::{Rig, bytes, named, replace, runtime_with, step, still};

/// The same component with other bytes: an unused section.
fn push(guest: &[u8], number: u32) -> Vec<u8> {
    let mut component = guest.to_vec();
    component.extend([0, 6, 1, b'n']);
    component.extend(number.to_le_bytes());
    component
}

fn is_tried(notice: &&ReloadNotice) -> bool {
    matches!(
        notice,
        ReloadNotice::Activated { .. } | ReloadNotice::Rejected { .. }
    )
}

#[tokio::test]
async fn row_17_a_thousand_pushes_are_a_handful_of_candidates() {
    let options = ReloadOptions {
        rules: ReloadRules::default(),
        ..still()
    };
    let mut rig = Rig::of("revision_1", options).await;
    rig.until_active("1").await;
    let revisions = [bytes("revision_1"), bytes("revision_2"), b"broken".to_vec()];
    let session = rig.catalogue.session();
    let begun = std::time::Instant::now();
    for (number, revision) in (0..1000).zip(revisions.iter().cycle()) {
        replace(&rig.file(), &push(revision, number));
        rig.rescan().await;
        // A drain meanwhile gets an answer, from one revision or the other.
        if number % 100 == 0 {
            let answer = step(&session).await;
            assert!(["1", "2"].contains(&answer.as_str()), "{answer}");
        }
    }
    let reported = rig.reported();
    // Three at once, then after one second, two, four and so on, up to one a minute.
    let most = 10 + usize::try_from(begun.elapsed().as_secs() / 60).unwrap();
    let tried = reported.iter().filter(is_tried).count();
    assert!(
        (1..=most).contains(&tried),
        "{tried} candidates were tried: {reported:?}"
    );
    // The last candidate stays.
    replace(&rig.file(), &push(&revisions[1], 5000));
    rig.rescan().await;
    if rig.version() != "2" {
        rig.until_active("2").await;
    }
    assert_eq!(step(&rig.catalogue.session()).await, "2");
}

/// The compiler, delayed by two seconds for each candidate.
fn slow_compiler(dir: &Path) -> PathBuf {
    let file = dir.join("slow-compiler");
    let script = format!(
        "#!/bin/sh\nsleep 2\nexec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_scupper")
    );
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o700)).unwrap();
    file
}

#[tokio::test]
async fn compile_time_does_not_count_as_calm() {
    let hour = Duration::from_secs(3600);
    let options = ReloadOptions {
        rules: ReloadRules {
            burst: 2,
            // The interval between two candidates is shorter than this, and the compilation of one is longer.
            calm: Duration::from_secs(2),
            pause: hour,
            longest_pause: hour,
            ..ReloadRules::default()
        },
        ..still()
    };
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime_with(Clock::System, slow_compiler(dir.path()));
    let specs = vec![named("p", &dir.path().join("p.wasm"), &[])];
    replace(&dir.path().join("p.wasm"), &push(&bytes("revision_1"), 8_999));
    let mut rig = Rig::on(runtime, dir, specs, options).await.unwrap();
    rig.until_active("1").await;
    for number in 9_000..9_004 {
        replace(&rig.file(), &push(&bytes("revision_2"), number));
        rig.rescan().await;
    }
    let tried = rig.reported().iter().filter(is_tried).count();
    assert_eq!(tried, 1, "the first was tried, and then this one");
}
