//! The policy edge with real guests: each is a small component, compiled by the driver's own child process.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod calls;
mod compiling;
mod containers;
mod events;
mod fact_failures;
mod fact_numbers;
mod fact_peers;
mod fact_requests;
mod fact_resources;
mod fact_volumes;
mod facts;
mod files;
#[path = "../support/guests.rs"]
mod guests;
mod hostile;
mod http;
mod kept;
mod leaving;
mod logs;
mod shadows;
mod shipped;
mod support;
mod surroundings;
mod wasi;

use std::collections::BTreeSet;

/// Every guest has a test, and the manifest lists every guest's file.
#[test]
fn every_guest_has_a_test() {
    let tests = [
        include_str!("calls.rs"),
        include_str!("events.rs"),
        include_str!("facts.rs"),
        include_str!("files.rs"),
        include_str!("hostile/endings.rs"),
        include_str!("hostile/plans.rs"),
        include_str!("hostile/reach.rs"),
        include_str!("hostile/space.rs"),
        include_str!("hostile/time.rs"),
        include_str!("hostile/words.rs"),
        include_str!("http/rig.rs"),
        include_str!("kept.rs"),
        include_str!("surroundings.rs"),
        include_str!("../reload/sessions.rs"),
        include_str!("../reload/candidates.rs"),
        include_str!("../claim/takeover.rs"),
        include_str!("../commands/checking.rs"),
        include_str!("../reload/resuming.rs"),
        include_str!("../requests.rs"),
        include_str!("../commands/undoing.rs"),
        include_str!("wasi.rs"),
        include_str!("../../../scupper-dev/tests/author/looking.rs"),
    ];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guests");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "lib")
        .collect();
    assert_eq!(files, support::guests().into_iter().collect());
    for guest in files {
        let quoted = format!("\"{guest}\"");
        assert!(
            tests.iter().any(|test| test.contains(&quoted)),
            "no test mentions {quoted}"
        );
    }
}
