//! What stays drained in Slurm although the node takes pods again, or could: it is named until an uncordon has undone it.

use scupper_simulator::api::objects;
use serde_json::json;

use crate::driver::{WORKER, node, policies, policy};
use crate::driver_mode::DriverMode;
use crate::testbed::{Testbed, until};

const STILL: &str = "policy slurm must still undo its part of the drain";

/// What `scupper status` prints.
async fn status(rig: &mut DriverMode) -> String {
    let ended = rig.types(&["status", WORKER]).ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

async fn status_names(rig: &mut DriverMode, words: &str) {
    let status = status(rig).await;
    assert!(
        status.contains(STILL) && status.contains(words),
        "{words}: {status}"
    );
}

/// The Node is deleted, and nothing is left of its mark. `scupper status` says what must still be undone.
async fn delete_node(rig: &mut DriverMode) {
    rig.api.store().delete("nodes", "", WORKER);
    let ended = rig.types(&["status", WORKER]).ended().await;
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let gone = format!("there is no node {WORKER}; {STILL}");
    assert!(ended.stderr.contains(&gone), "{ended:?}");
}

/// The end of a drain or an uncordon says so in an Event and in a line.
fn the_end_names(rig: &DriverMode, event: &str, outcome: &str, words: &str) {
    let notes = rig.events(outcome);
    let of_event = |note: &&String| note.starts_with(&format!("{event} after "));
    let note = notes.iter().find(of_event);
    let note = note.unwrap_or_else(|| panic!("no Event {outcome} of {event}: {notes:?}"));
    let command = format!("scupper uncordon {WORKER}");
    let undo = format!("to undo it: {command}");
    for part in [STILL, words, &undo] {
        assert!(note.contains(part), "{part}: {note}");
    }
    let reported = rig.reported();
    let last = reported.lines().rfind(|line| line.contains("attention: "));
    let last = last.unwrap_or_else(|| panic!("no line: {reported}"));
    let next = format!("next: {command}");
    for part in [STILL, words, &next] {
        assert!(last.contains(part), "{part}: {last}");
    }
}

/// The driver's uncordon gives the node back, whose job still runs.
async fn an_uncordon_gives_it_back(testbed: &Testbed, rig: &mut DriverMode, event: &str) {
    assert_eq!(rig.uncordon(event).await, "Succeeded", "{}", rig.reported());
    assert!(testbed.node().starts_with("mixed"), "{}", testbed.node());
    let status = status(rig).await;
    assert!(!status.contains(STILL), "{status}");
}

#[tokio::test]
async fn in_driver_mode_an_undo_that_slurm_does_not_hear_names_the_node_until_an_uncordon() {
    let Some(testbed) = Testbed::up("unheard", &[]) else {
        return;
    };
    let token = testbed.folder().join("own-token");
    let give = |user: &str| std::fs::write(&token, testbed.token(user, 600)).unwrap();
    give("slurm");
    let own = json!([policy(&testbed.url(), &token, &[("token-timeout", "3s")])]);
    let mut rig = DriverMode::new(WORKER, Vec::new(), json!({"on-failure": "rollback"}), own).await;
    rig.start().await;
    let job = testbed.submit(600, &[]);
    let waits = format!("waits for job {job}: ");
    for event in ["token", "slurmctld", "rollback"] {
        let before = rig.reported().matches(&waits).count();
        rig.begin_drain(event);
        rig.until("it waits", || rig.reported().matches(&waits).count() > before)
            .await;
        match event {
            "token" => give("alice"),
            "slurmctld" => testbed.daemon("slurmctld", "stop"),
            _ => std::fs::write(&token, "no.token.at-all").unwrap(),
        }
        let (outcome, why) = match event {
            "token" => ("Cancelled", "the token's user may not change nodes"),
            "slurmctld" => ("Cancelled", "slurmrestd cannot reach slurmctld"),
            _ => ("PolicyFailed", "Slurm rejects the token"),
        };
        match outcome {
            "Cancelled" => rig.cancel(event).await,
            _ => assert_ne!(rig.ends(event).await, "Succeeded", "{}", rig.reported()),
        }
        assert!(!rig.is_cordoned(), "{}", rig.reported());
        let words = format!("slurm-worker-0 may still be drained in Slurm: {why}");
        status_names(&mut rig, &words).await;
        the_end_names(&rig, event, outcome, &words);
        match event {
            "slurmctld" => testbed.daemon("slurmctld", "start"),
            _ => give("slurm"),
        }
        // slurmrestd continues a request after its client has given up. On a busy machine the request may reach the
        // restarted slurmctld: the node is then free, and Scupper has not learned it.
        until("slurmctld knows its nodes again", async || {
            let node = testbed.node();
            let is_late = event == "slurmctld" && node.starts_with("mixed ");
            if is_late {
                eprintln!("the request to undo reached the new slurmctld");
            }
            is_late || node.starts_with("draining scupper: ")
        })
        .await;
        an_uncordon_gives_it_back(&testbed, &mut rig, &format!("after-{event}")).await;
    }
}

#[tokio::test]
async fn what_a_terminal_drained_is_named_without_the_policy_and_after_the_node_was_made_anew() {
    let Some(testbed) = Testbed::up("unnamed", &[]) else {
        return;
    };
    let own = policies(&testbed, &[]);
    let mut rig = DriverMode::new(WORKER, Vec::new(), json!({}), own.clone()).await;
    let ended = rig.types(&["drain", WORKER]).ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let drained = testbed.node();
    assert!(drained.starts_with("drained scupper: "), "{drained}");

    rig.configure(json!({}), json!([]));
    let ended = rig.types(&["uncordon", WORKER]).ended().await;
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(
        ended
            .stdout
            .contains("it must undo its part of a drain of this node"),
        "{ended:?}"
    );
    assert_eq!((testbed.node(), rig.is_cordoned()), (drained.clone(), true));

    delete_node(&mut rig).await;
    rig.api.store().apply(objects::node(WORKER).build()).unwrap();
    status_names(&mut rig, "the Node was deleted or made anew").await;
    assert_eq!(testbed.node(), drained);

    rig.configure(json!({}), own);
    let ended = rig.types(&["uncordon", WORKER]).ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    until("the node is idle", async || testbed.node().starts_with("idle")).await;
    let status = status(&mut rig).await;
    assert!(!status.contains(STILL), "{status}");
}

/// The driver drains under a foreign cordon, which is lifted by `kubectl uncordon`; the Node is made anew; an uncordon is
/// interrupted. Each time the node is named until the next uncordon.
#[tokio::test]
async fn in_driver_mode_what_no_uncordon_has_undone_is_named() {
    let Some(testbed) = Testbed::up("undone", &[]) else {
        return;
    };
    let cordoned = objects::node(WORKER).cordoned().build();
    let mut rig = node(&testbed, &[], json!({}), vec![cordoned]).await;
    rig.start().await;
    for (case, words) in [
        ("foreign", "the node was uncordoned without Scupper"),
        (
            "anew",
            "the Node was deleted or made anew, or the process that drained it was killed",
        ),
        ("interrupted", "slurmrestd cannot reach slurmctld"),
    ] {
        assert_eq!(rig.drain(case).await, "Succeeded", "{}", rig.reported());
        let drained = testbed.node();
        assert!(drained.starts_with("drained scupper: "), "{drained}");
        match case {
            "foreign" => rig.kubectl_uncordon(),
            "anew" => {
                delete_node(&mut rig).await;
                rig.api.store().apply(objects::node(WORKER).build()).unwrap();
            }
            _ => {
                testbed.daemon("slurmctld", "stop");
                rig.begin_uncordon("interrupted-uncordon");
                rig.until("it has asked", || rig.reported().contains(words)).await;
                rig.cancel("interrupted-uncordon").await;
                testbed.daemon("slurmctld", "start");
            }
        }
        status_names(&mut rig, words).await;
        if case == "interrupted" {
            the_end_names(&rig, "interrupted-uncordon", "Cancelled", words);
        } else {
            let named = format!("{STILL}: {words}; to undo it: scupper uncordon {WORKER}");
            rig.until("an Event says so", || {
                rig.events("PolicyMustUndo").contains(&named)
            })
            .await;
        }
        assert_eq!(testbed.node(), drained);
        let uncordon = rig.uncordon(&format!("after-{case}")).await;
        assert_eq!(uncordon, "Succeeded", "{}", rig.reported());
        until("the node is idle", async || testbed.node().starts_with("idle")).await;
        let status = status(&mut rig).await;
        assert!(!status.contains(STILL), "{status}");
    }
}
