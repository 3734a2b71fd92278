//! The lasting record of a drain: conditions in pairs, one trace in the log.

use crate::rig::{DRIVER, NODE, Rig, UNCORDON, name};

/// The statuses of `DrainInProgress` and `Drained`, and their common reason.
fn pair(rig: &Rig) -> Option<(String, String, String)> {
    let node = rig.node();
    let of = |kind: &str| {
        let conditions = node["status"]["conditions"].as_array()?;
        conditions.iter().find(|it| it["type"] == kind).cloned()
    };
    let (progress, drained) = (of("DrainInProgress")?, of("Drained")?);
    assert_eq!(progress["reason"], drained["reason"], "they are written together");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    Some((
        text(&progress["status"]),
        text(&drained["status"]),
        text(&drained["reason"]),
    ))
}

async fn becomes(rig: &Rig, progress: &str, drained: &str, reason: &str) {
    let wanted = (progress.to_owned(), drained.to_owned(), reason.to_owned());
    let mut last = None;
    rig.until(&format!("the conditions say {reason}"), || {
        last = pair(rig);
        last.as_ref() == Some(&wanted)
    })
    .await;
}

#[tokio::test]
async fn a_drains_conditions_come_in_pairs_and_disappear_with_any_uncordon() {
    let rig = Rig::start().await;
    rig.apply(crate::objects::slow(
        crate::objects::pod("a"),
        std::time::Duration::from_secs(1),
    ));
    let _driver = rig.driver(&[]).await;
    assert_eq!(pair(&rig), None);
    rig.event("drain", DRIVER);
    becomes(&rig, "True", "False", "DrainStarted").await;
    becomes(&rig, "False", "True", "DrainCompleted").await;
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    rig.event("complete", UNCORDON);
    becomes(&rig, "False", "False", "MaintenanceComplete").await;
    assert_eq!(rig.end_of("complete").await, "Succeeded");
    // Again, and this time another client uncordons the node without informing the driver.
    rig.event("drain-again", DRIVER);
    assert_eq!(rig.end_of("drain-again").await, "Succeeded");
    becomes(&rig, "False", "True", "DrainCompleted").await;
    let uncordon = |node: &mut serde_json::Value| node["spec"]["unschedulable"] = false.into();
    rig.api.store().edit("nodes", "", NODE, uncordon).unwrap();
    becomes(&rig, "False", "False", "Uncordoned").await;
}

#[tokio::test]
async fn everything_that_is_logged_of_a_drain_has_the_trace_of_its_event() {
    let rig = Rig::start().await;
    rig.pods(&["a", "b"]);
    let driver = rig.driver(&[]).await;
    let event = rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    let uid = event["metadata"]["uid"].as_str().unwrap().replace('-', "");
    let trace = format!("trace=\"{uid}\"");
    let log = driver.log();
    let of_drain: Vec<_> = log.lines().filter(|line| line.contains("drain{name=")).collect();
    assert!(!of_drain.is_empty(), "{log}");
    assert!(of_drain.iter().all(|line| line.contains(&trace)), "{of_drain:#?}");
    let notices: Vec<_> = log.lines().filter(|line| line.contains("notice=")).collect();
    assert!(notices.iter().any(|line| line.contains("PodGone")), "{log}");
    assert!(notices.iter().all(|line| line.contains(&trace)), "{notices:#?}");
    assert_eq!(name(&event), "drain");
}
