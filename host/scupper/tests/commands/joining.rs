//! A drain that the node's driver carries out already is followed, not requested again.

use crate::kubelet_node::{Agent, asks};
use crate::rig::{Rig, Running};

/// Its limit is not that of the command that joins.
#[test]
fn whoever_joins_a_drain_sees_its_end() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let mut first = rig.start(&asks("drain", &[]));
    first.prints("waits    shop/db");
    let mut joined = rig.start(&asks("drain", &["--timeout", "1s", "--output", "json"]));
    joined.prints(r#""kind":"joined""#);
    joined.prints(r#""kind":"podWaits""#);
    rig.api
        .store()
        .delete("poddisruptionbudgets.policy", "shop", "keep-db")
        .unwrap();
    let [first, joined] = [first, joined].map(Running::ended);
    for run in [&first, &joined] {
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert!(run.stdout.contains("Drained"), "{run:#?}");
    }
    let next = "the node stays cordoned; to give it back: scupper uncordon worker-1";
    assert!(first.stdout.contains(next), "{first:#?}");
}
