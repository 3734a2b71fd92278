//! A command that continues a drain does so with its own flags: nothing has saved those that the drain was begun with. With
//! fewer of them pods that were to leave may not leave any more, and the drain would wait for these for ever. Without those
//! of its LifecycleEvent it would be a drain of other pods. Such a command ends before it changes anything.

use std::collections::BTreeSet;

use scupper_cluster::Cluster;
use scupper_config::{DrainSettings, RequestFlags, read_request, typed_flag};
use scupper_engine::{Checkpoint, Filters, Pod, PodRef, PolicyInfo, Settings, Time, Trigger, Verdict, draft};

use crate::DriverError;
use crate::occupancy::LocalError;

/// A flag without which pods may not leave, and what it sets.
type Switch = (&'static str, fn(&mut Filters) -> &mut bool);

const SWITCHES: [Switch; 3] = [
    ("--ignore-daemonsets", |filters| &mut filters.ignore_daemonsets),
    ("--delete-emptydir-data", |filters| {
        &mut filters.delete_emptydir_data
    }),
    ("--force", |filters| &mut filters.force),
];

/// Flags of a request by which a drain leaves pods on the node.
const NARROWING: [&str; 2] = ["pod-selector", "skip-wait-for-delete-timeout"];

/// Fails if these settings do not suit the drain that is to be continued.
pub(super) async fn check(
    cluster: &Cluster,
    node: &str,
    mark: &Checkpoint,
    (drain, policies): (&DrainSettings, &[PolicyInfo]),
    now: Time,
) -> Result<(), DriverError> {
    if !mark.phase.needs_cordon() {
        return Ok(());
    }
    check_event(cluster, node, mark, drain).await?;
    if !drain.engine.machine_is_off {
        check_planners(node, mark, policies)?;
    }
    let pods = cluster.pods(node).await.map_err(DriverError::of_node(node))?;
    let (flags, pods) = missing(mark, &pods, &drain.engine, now);
    if flags.is_empty() {
        return Ok(());
    }
    let node = node.to_owned();
    Err(LocalError::FlagsMissing { node, flags, pods }.into())
}

/// Fails if the drain's plan follows policies that are not loaded here: without them other pods would leave, or in another
/// order.
fn check_planners(node: &str, mark: &Checkpoint, policies: &[PolicyInfo]) -> Result<(), LocalError> {
    let is_absent = |name: &&String| policies.iter().all(|policy| policy.name != **name);
    let absent: Vec<_> = mark.begun.planners.iter().filter(is_absent).cloned().collect();
    if absent.is_empty() {
        return Ok(());
    }
    Err(LocalError::PlannersAbsent {
        node: node.to_owned(),
        policies: absent,
    })
}

/// The flags that are missing, and the pods that may not leave without them. A pod may need several, and its reason names
/// one at a time. A pod that came later holds nothing up.
fn missing(
    mark: &Checkpoint,
    pods: &[Pod],
    settings: &Settings,
    now: Time,
) -> (Vec<&'static str>, Vec<PodRef>) {
    let is_known = |pod: &&Pod| mark.counts.knew(pod) && !mark.stays.contains(&pod.id.uid);
    let known: Vec<Pod> = pods.iter().filter(is_known).cloned().collect();
    let mut settings = settings.clone();
    let (mut flags, mut refused) = (Vec::new(), BTreeSet::new());
    loop {
        let plan = draft(&known, &settings, now);
        let before = flags.len();
        for (flag, switch) in SWITCHES {
            let needs_it = plan.decisions.iter().filter(|decision| {
                decision.verdict == Verdict::Refuse && decision.reason.contains(&format!("(use {flag} "))
            });
            let uids: BTreeSet<_> = needs_it.map(|decision| &decision.pod).collect();
            if uids.is_empty() {
                continue;
            }
            *switch(&mut settings.filters) = true;
            flags.push(flag);
            let pods = known.iter().filter(|pod| uids.contains(&pod.id.uid));
            refused.extend(pods.map(|pod| pod.id.clone()));
        }
        if flags.len() == before {
            return (flags, refused.into_iter().collect());
        }
    }
}

/// Fails if the drain is for a LifecycleEvent whose flags leave pods on the node that these settings do not. What cannot be
/// read does not hold up a drain whose driver is gone.
async fn check_event(
    cluster: &Cluster,
    node: &str,
    mark: &Checkpoint,
    drain: &DrainSettings,
) -> Result<(), LocalError> {
    if Trigger::of(&mark.trigger) != Trigger::LifecycleEvent || drain.engine.machine_is_off {
        return Ok(());
    }
    let found = async {
        let cluster = cluster.clone().in_served_group().await?;
        match cluster {
            Some(cluster) => cluster.stored_event(&mark.name).await,
            None => Ok(None),
        }
    };
    let event = match found.await {
        Ok(found) => found
            .map(|found| found.event)
            .filter(|event| event.uid == mark.id),
        Err(error) => {
            tracing::warn!(
                "node {node}: the flags of LifecycleEvent {} are not known: {error}",
                mark.name
            );
            None
        }
    };
    let flags = event.and_then(|event| read_request(&event.flags?).ok());
    let flags = flags.map(|flags| lacking(&flags, drain)).unwrap_or_default();
    if flags.is_empty() {
        return Ok(());
    }
    Err(LocalError::OfOtherPods {
        node: node.to_owned(),
        name: mark.name.clone(),
        flags,
    })
}

/// The flags of a request that would change these settings, as they are to be typed.
fn lacking(flags: &RequestFlags, drain: &DrainSettings) -> Vec<String> {
    let lacks = |name: &&str| {
        let text = flags.get(*name)?;
        let alone: RequestFlags = [((*name).to_owned(), text.clone())].into();
        let wanted = drain.clone().with_request(&alone);
        (wanted.engine.filters != drain.engine.filters).then(|| typed_flag(name, text))
    };
    NARROWING.iter().filter_map(lacks).collect()
}

#[cfg(test)]
mod tests {
    use scupper_report::fixture;

    use super::*;

    fn flags(pairs: &[(&str, &str)]) -> RequestFlags {
        let pairs = pairs.iter();
        pairs
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn only_flags_that_leave_other_pods_on_the_node_are_asked_for() {
        let drain = DrainSettings::default();
        let asked = |pairs| lacking(&flags(pairs), &drain);
        assert_eq!(
            asked(&[
                ("pod-selector", "app in (web, db)"),
                ("skip-wait-for-delete-timeout", "30")
            ]),
            [
                "--pod-selector='app in (web, db)'",
                "--skip-wait-for-delete-timeout=30"
            ]
        );
        let nothing = [
            ("pod-selector", ""),
            ("skip-wait-for-delete-timeout", "0"),
            ("force", "true"),
        ];
        assert_eq!(asked(&nothing), [""; 0]);
        let same = drain.clone().with_request(&flags(&[("pod-selector", "app=web")]));
        assert_eq!(lacking(&flags(&[("pod-selector", "app=web")]), &same), [""; 0]);
        assert_eq!(
            lacking(&flags(&[("pod-selector", "app=db")]), &same),
            ["--pod-selector=app=db"]
        );
    }

    #[test]
    fn a_pod_that_came_after_the_drain_began_needs_no_flag() {
        let mut mark = fixture::mark("command", scupper_engine::Phase::Evicting);
        let pod = |name: &str, created| Pod {
            created: Time::from_millis(created),
            controller: None,
            empty_dir: name == "both",
            ..fixture::running(name)
        };
        mark.counts.newest = Time::from_millis(10);
        let settings = Settings::default();
        let asked = |pods: &[Pod]| {
            let (flags, pods) = missing(&mark, pods, &settings, Time::default());
            let names: Vec<_> = pods.into_iter().map(|pod| pod.name).collect();
            (flags, names)
        };
        assert_eq!(asked(&[pod("late", 11)]), (vec![], vec![]));
        let mut drain = settings.clone();
        drain.filters.delete_emptydir_data = false;
        let (flags, pods) = missing(&mark, &[pod("both", 10)], &drain, Time::default());
        assert_eq!(flags, ["--delete-emptydir-data", "--force"]);
        assert_eq!(pods.len(), 1, "named once");
        assert_eq!(
            asked(&[pod("bare", 10)]),
            (vec!["--force"], vec!["bare".to_owned()])
        );
    }
}
