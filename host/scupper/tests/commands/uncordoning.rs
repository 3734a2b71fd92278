//! Uncordon lifts our own cordon, and a foreign one only with `--force`.

use scupper_simulator::api::objects;

use crate::rig::Rig;

#[test]
fn our_own_cordon_is_lifted_and_nothing_stays_behind() {
    let rig = Rig::new();
    assert_eq!(rig.run(&["drain", "worker-1", "worker-2"]).code, Some(0));
    assert!(rig.is_cordoned("worker-1") && rig.is_cordoned("worker-2"));
    let run = rig.run(&["uncordon", "--selector", "pool=a"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stdout.contains("the cordon is lifted"), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1") && !rig.is_cordoned("worker-2"));
    assert_eq!(rig.mark("worker-1"), None);
}

#[test]
fn a_foreign_cordon_is_lifted_only_by_force() {
    let rig = Rig::new();
    rig.apply(objects::node("worker-4").cordoned());
    let run = rig.run(&["uncordon", "worker-4"]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    let advice = "nothing has changed; to lift it: scupper uncordon worker-4 --force (from here, with hooks only from --config or --policy)";
    assert!(run.stderr.contains(advice), "{run:#?}");
    assert!(rig.is_cordoned("worker-4"));
    let run = rig.run(&["uncordon", "worker-4", "--force"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(!rig.is_cordoned("worker-4"));
    assert_eq!(rig.mark("worker-4"), None);
}

#[test]
fn a_node_without_a_cordon_is_fine() {
    let rig = Rig::new();
    let run = rig.run(&["uncordon", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1"));
}
