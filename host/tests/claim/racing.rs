//! Two drivers of one name on one node that do not know of each other: only one claim comes about.

use crate::driver::Driver;
use crate::node::Node;
use crate::rig::{DRIVER, NODE};

#[tokio::test]
async fn of_two_drivers_one_claims() {
    let node = Node::start().await;
    node.pods(&["a", "b"]);
    let folder = tempfile::tempdir().unwrap();
    let mut drivers = Vec::new();
    for number in 0..2 {
        let root = folder.path().join(format!("kubelet-{number}"));
        for directory in ["plugins", "plugins_registry"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        let arguments = [
            ("--driver-name", DRIVER),
            ("--node-name", NODE),
            ("--claim", "self"),
            ("--kubelet-root", root.to_str().unwrap()),
            ("--kubeconfig", node.kubeconfig().to_str().unwrap()),
        ]
        .iter()
        .flat_map(|(flag, value)| [flag.to_string(), value.to_string()])
        .collect::<Vec<_>>();
        drivers.push(Driver::spawn(folder.path(), number, &arguments));
    }
    node.until("both claim", || {
        drivers.iter().all(|driver| driver.log().contains("leads=true"))
    })
    .await;
    for round in 0..5 {
        let event = format!("drain-{round}");
        let mark = node.api.mark();
        node.event(&event, crate::rig::UNCORDON);
        assert_eq!(node.end_of(&event).await, "Succeeded");
        assert_eq!(node.statuses(&event), ["Pending", "Claimed", "Succeeded"]);
        let status = format!("/{event}/status");
        let written = node.event_writes(mark).into_iter();
        let written = written.filter(|it| it.path.ends_with(&status) && it.status == Some(200));
        // One claim and one end, whoever wrote them.
        assert_eq!(written.count(), 2, "{:#?}", node.event_writes(mark));
    }
}
