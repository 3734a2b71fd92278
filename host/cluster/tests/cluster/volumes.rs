//! The volumes that are attached to a node: those of other nodes do not count, and each has the claim of its
//! PersistentVolume.

use scupper_engine::{Answer, AttachedVolume, Event, Task, VolumeClaim};
use serde_json::{Value, json};

use crate::script::{Feed, Script, cluster, not_found};

const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

fn attachment(name: &str, node: &str, volume: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "7"},
        "spec": {"attacher": "csi.example.com", "nodeName": node, "source": {"persistentVolumeName": volume}},
        "status": {"attached": true},
    })
}

fn volume(attachment: &str, volume: &str, claim: Option<&str>) -> AttachedVolume {
    AttachedVolume {
        attachment: attachment.to_owned(),
        volume: volume.to_owned(),
        claim: claim.map(|name| VolumeClaim {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        }),
        attacher: "csi.example.com".to_owned(),
        problem: String::new(),
    }
}

/// Answers the request for a PersistentVolume with its claim.
async fn bound(server: &mut Script, volume: &str, claim: &str) {
    let call = server
        .expect("GET", &format!("/api/v1/persistentvolumes/{volume}"))
        .await;
    let claim = json!({"namespace": "shop", "name": claim});
    call.answer(
        200,
        json!({"metadata": {"name": volume}, "spec": {"claimRef": claim}}),
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_names_the_volumes_of_the_node_and_their_claims() {
    let (cluster, mut server) = cluster();
    let (answer, ()) = tokio::join!(cluster.perform("n1", &Task::ListVolumes), async {
        let mut inline = attachment("csi-3", "n1", "");
        inline["spec"]["source"] = json!({"inlineVolumeSpec": {}});
        inline["status"]["detachError"] = json!({"message": "the disk is busy"});
        let items = [
            attachment("csi-2", "n1", "pv-2"),
            attachment("csi-1", "n2", "pv-1"),
            inline,
        ];
        let page = json!({"metadata": {"resourceVersion": "9"}, "items": items});
        let call = server.expect("GET", ATTACHMENTS).await;
        assert_eq!(
            (call.query("limit"), call.query("resourceVersion")),
            (Some("500"), None)
        );
        call.answer(200, page);
        bound(&mut server, "pv-2", "data").await;
    });
    let inline = AttachedVolume {
        problem: "the disk is busy".to_owned(),
        ..volume("csi-3", "", None)
    };
    let volumes = vec![volume("csi-2", "pv-2", Some("data")), inline];
    assert_eq!(answer, Answer::Volumes(volumes));
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_list_is_not_an_empty_one() {
    let (cluster, mut server) = cluster();
    let (answer, ()) = tokio::join!(cluster.perform("n1", &Task::ListVolumes), async {
        server
            .expect("GET", ATTACHMENTS)
            .await
            .fail(403, "Forbidden", "volumeattachments is forbidden");
    });
    let message = "volumeattachments is forbidden".to_owned();
    assert_eq!(answer, Answer::Forbidden { message });
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_reports_all_that_is_attached_and_asks_for_each_claim_once() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.volume_changes("n1"));
    let lines = server.expect("GET", ATTACHMENTS).await.stream();
    lines.send("ADDED", &attachment("csi-1", "n1", "pv-1"));
    lines.send("ADDED", &attachment("csi-9", "n2", "pv-9"));
    lines.end_of_list("8");
    bound(&mut server, "pv-1", "data").await;
    let first = volume("csi-1", "pv-1", Some("data"));
    assert_eq!(feed.next().await, Event::Volumes(vec![first.clone()]));

    lines.send("DELETED", &attachment("csi-9", "n2", "pv-9"));
    lines.send("ADDED", &attachment("csi-2", "n1", "pv-2"));
    let call = server.expect("GET", "/api/v1/persistentvolumes/pv-2").await;
    call.answer(404, not_found("persistentvolumes", "pv-2"));
    let second = volume("csi-2", "pv-2", None);
    assert_eq!(feed.next().await, Event::Volumes(vec![first, second.clone()]));

    lines.send("DELETED", &attachment("csi-1", "n1", "pv-1"));
    assert_eq!(feed.next().await, Event::Volumes(vec![second]));
    lines.send("DELETED", &attachment("csi-2", "n1", "pv-2"));
    assert_eq!(feed.next().await, Event::Volumes(Vec::new()));
    feed.stop().await;
    server.finish(cluster).await;
}

/// Nothing else changes: the drain would wait for the volume of a pod that stays.
#[tokio::test(start_paused = true)]
async fn a_claim_that_could_not_be_read_is_read_again_without_a_change() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.volume_changes("n1"));
    let lines = server.expect("GET", ATTACHMENTS).await.stream();
    lines.send("ADDED", &attachment("csi-1", "n1", "pv-1"));
    lines.end_of_list("8");
    for _ in 0..3 {
        let call = server.expect("GET", "/api/v1/persistentvolumes/pv-1").await;
        call.fail(403, "Forbidden", "persistentvolumes is forbidden");
        let unknown = volume("csi-1", "pv-1", None);
        assert_eq!(feed.next().await, Event::Volumes(vec![unknown]));
    }
    bound(&mut server, "pv-1", "data").await;
    let known = volume("csi-1", "pv-1", Some("data"));
    assert_eq!(feed.next().await, Event::Volumes(vec![known]));
    feed.stop().await;
    server.finish(cluster).await;
}
