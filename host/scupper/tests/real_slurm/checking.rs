//! The policy's findings before the first drain.

use crate::rig::Rig;
use crate::testbed::{NODE, Testbed};

/// The node as Slurm's own client shows it, without fields that change by themselves.
fn shown(testbed: &Testbed) -> String {
    let shown = testbed.client(&["scontrol", "show", "node", NODE]);
    let lasting = |line: &&str| {
        !["CPULoad", "FreeMem", "LastBusyTime"]
            .iter()
            .any(|word| line.contains(word))
    };
    shown.lines().filter(lasting).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_check_finds_the_problems_of_a_drain_and_changes_nothing() {
    let Some(testbed) = Testbed::up("checked", &[]) else {
        return;
    };
    let before = shown(&testbed);
    let rig = Rig::load(&testbed, &[("ladder", "15m requeue, 1m cancel")]).await;
    let found = rig.check().await;
    for line in [
        "ok token: Slurm accepts it",
        "ok API version: slurmrestd serves v0.0.42",
        "ok node name: slurm-worker-0 is idle in Slurm",
        "ok rights: the token's user may change nodes",
        "ok ladder: begins 15m before the deadline; drains with less time are refused",
        "warning ladder: this slurmrestd has no v0.0.45, so it cannot requeue a job",
    ] {
        assert!(found.iter().any(|known| known == line), "{line}: {found:#?}");
    }
    assert!(!found.iter().any(|line| line.starts_with("error")), "{found:#?}");

    let token = testbed.folder().join("own-token");
    for (bad, line) in [
        (
            testbed.token("alice", 600),
            "error rights: the token's user may not change nodes",
        ),
        (
            "no.token.at-all".to_owned(),
            "error token: Slurm rejects the token",
        ),
    ] {
        std::fs::write(&token, bad).unwrap();
        let found = Rig::load_with(&testbed, &token, &[]).await.check().await;
        assert!(
            found.iter().any(|known| known.starts_with(line)),
            "{line}: {found:#?}"
        );
    }
    let rig = Rig::load(&testbed, &[("slurm-node-table", "worker-1=gpu-99")]).await;
    let line = "error node name: gpu-99 is not among Slurm's 2 nodes".to_owned();
    assert!(rig.check().await.contains(&line));
    assert_eq!(shown(&testbed), before);
}
