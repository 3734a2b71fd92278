//! Two drivers of one name on one node that do not know of each other: only one claim succeeds.

use crate::node::Node;

#[tokio::test]
async fn of_two_drivers_one_claims() {
    let node = Node::start().await;
    node.pods(&["a", "b"]);
    let folder = tempfile::tempdir().unwrap();
    let drivers: Vec<_> = (0..2)
        .map(|number| node.stranger(folder.path(), number))
        .collect();
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
        // One claim and one end, whichever driver wrote them.
        assert_eq!(written.count(), 2, "{:#?}", node.event_writes(mark));
    }
}
