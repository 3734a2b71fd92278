//! `make demo` and `make demo-slurm`: a drain through a simulated Slurm, and through a real one.

use crate::{built, narrated, play, skip};

#[test]
fn a_drain_waits_for_jobs_and_the_node_returns_to_service() {
    let policy = built(&["slurm"]);
    let text = play(&["--slurm", policy.to_str().unwrap()]);
    for ended in ["Drained in ", "Uncordoned in "] {
        assert_eq!(text.matches(ended).count(), 1, "{text}");
    }
    narrated("demo", &text);
}

#[test]
fn a_real_slurm_is_drained_and_the_node_returns_to_service() {
    if skip::left_out("real-slurm") {
        return;
    }
    let policy = built(&["slurm"]);
    let testbed = concat!(env!("CARGO_MANIFEST_DIR"), "/../testbeds/slurm/slurm-testbed");
    let text = play(&["--slurm", policy.to_str().unwrap(), "--slurm-testbed", testbed]);
    for once in [
        "Drained in ",
        "Uncordoned in ",
        "            slurm-worker-0 is drained: scupper: ",
    ] {
        assert_eq!(text.matches(once).count(), 1, "{text}");
    }
    let (_, last) = text.rsplit_once("$ sinfo").unwrap();
    assert!(last.contains("            slurm-worker-0 is idle"), "{text}");
    // How far the jobs are when the drain begins depends on the machine, the version on what is installed.
    let is_of_slurm =
        |line: &&str| line.contains("(Slurm: ") || line.trim_start().starts_with("slurm-worker-0 is ");
    let others: Vec<_> = text.lines().filter(|line| !is_of_slurm(line)).collect();
    let (_, told) = others.split_first().unwrap();
    narrated("demo-slurm", &told.join("\n"));
}
