//! `make demo`: a drain through a simulated Slurm.

use crate::{built, narrated, play};

#[test]
fn a_drain_waits_for_jobs_and_the_node_returns_to_service() {
    let policy = built(&["slurm"]);
    let text = play(&["--slurm", policy.to_str().unwrap()]);
    for ended in ["Drained in ", "Uncordoned in "] {
        assert_eq!(text.matches(ended).count(), 1, "{text}");
    }
    narrated("demo", &text);
}
