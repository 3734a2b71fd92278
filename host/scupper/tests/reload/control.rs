//! Queries of a running driver, as `scupper policy list` and `rollback` send them.

use std::path::Path;
use std::process::Output;

use scupper_policy_reload::{Control, ReloadOptions, ask_list, ask_rollback};

use crate::rig::{LIMIT, Rig, still};

async fn scupper(args: &[&str], state: &Path) -> Output {
    let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_scupper"));
    program.args(["policy"]).args(args).arg("--state-dir").arg(state);
    let run = program
        .env_remove("SCUPPER_STATE_DIR")
        .kill_on_drop(true)
        .output();
    tokio::time::timeout(LIMIT, run).await.unwrap().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn lists_and_rolls_back() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let options = ReloadOptions {
        state: Some(state.clone()),
        ..still()
    };
    let rig = Rig::of("revision_1", options).await;
    rig.put("revision_2");
    rig.rescan().await;
    let control = Control::open(&state, rig.catalogue.clone()).await.unwrap();
    let control = tokio::spawn(control.run());
    assert!(
        Control::open(&state, rig.catalogue.clone()).await.is_err(),
        "one driver for a directory"
    );

    let list = ask_list(&state).await.unwrap();
    assert_eq!(list["generation"], 2);
    // This kernel has all confinement for the compiler.
    assert_eq!(list.get("compilerLacks"), Some(&serde_json::Value::Null));
    assert_eq!(list["policies"][0]["version"], "2");
    let reported = scupper(&["list"], &state).await;
    assert!(reported.status.success(), "{}", text(&reported.stderr));
    assert!(
        text(&reported.stdout).contains("Active"),
        "{}",
        text(&reported.stdout)
    );

    let reported = scupper(&["rollback", "p"], &state).await;
    assert!(text(&reported.stdout).contains("is active again"), "{reported:?}");
    assert_eq!(rig.version(), "1");
    let reported = scupper(&["rollback", "p"], &state).await;
    assert_eq!(reported.status.code(), Some(7));
    let refused = "policy `p` cannot be rolled back: no revision before";
    assert!(text(&reported.stderr).contains(refused), "{reported:?}");
    let reported = scupper(&["list"], &state).await;
    assert!(text(&reported.stdout).contains("RolledBack"), "{reported:?}");

    control.abort();
    assert!(control.await.unwrap_err().is_cancelled());
    assert!(ask_rollback(&state, "p").await.is_err());
    let reported = scupper(&["list"], &state).await;
    assert_eq!(reported.status.code(), Some(3));
    assert!(text(&reported.stderr).contains("is it running"), "{reported:?}");
    // A dead driver's socket does no harm.
    assert!(Control::open(&state, rig.catalogue.clone()).await.is_ok());
}
