//! Looks at a cluster as the driver will find it: which API group it will use, who will claim events, what it may not, and
//! what its policies find in their surroundings.

mod chain;
mod drain_requests;
mod node_is_off;
mod published;
mod rights;

use std::path::{Path, PathBuf};
use std::time::Duration;

use scupper_engine::{Checkpoint, Node};

use self::drain_requests::DrainRequestsFound;
use self::rights::DriverDuties;
use crate::CommandError;
use crate::driver_pods;
use crate::policy_environment::{self, PolicyEnvironment};
use crate::pre_flight;
use scupper_cluster::{Cluster, ConnectOptions, Connection, LifecycleGroup, OFFICIAL_GROUP, OWN_GROUP};
use scupper_common::clock::Clock;
use scupper_config::DrainSettings;
use scupper_driver::DriverError;
use scupper_lease::LeaseReader;
use scupper_report::LeaseHolder;
use scupper_triggers::slm::{self, Registration};

/// A kubelet looks for new sockets every second.
const KUBELET_ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// What to look at.
#[derive(Clone, Debug)]
pub struct DoctorOptions {
    /// How to reach the API server.
    pub connection: Connection,
    /// The node; `None`: only what concerns all nodes.
    pub node: Option<String>,
    /// The driver's name.
    pub driver: String,
    /// The root directory of this machine's kubelet, to ask it; `None`: it is not asked.
    pub kubelet_root: Option<PathBuf>,
    /// The namespace of the leases of nodes.
    pub lease_namespace: String,
    /// The driver evicts as its node.
    pub evict_as_node: bool,
    /// The driver's configuration file; `None`: it is not read.
    pub config: Option<PathBuf>,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was checked, in a word or two.
    pub subject: String,
    /// How it is.
    pub state: FindingState,
    /// What was found.
    pub text: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingState {
    /// As it should be.
    Fine,
    /// It works, and could be better, or is not known from here.
    Note,
    /// The driver does not work like this.
    Wrong,
}

impl Finding {
    pub(super) fn fine(subject: impl Into<String>, text: String) -> Self {
        Self {
            subject: subject.into(),
            state: FindingState::Fine,
            text,
            remedy: None,
        }
    }

    pub(super) fn note(subject: impl Into<String>, text: String, remedy: String) -> Self {
        Self {
            subject: subject.into(),
            state: FindingState::Note,
            text,
            remedy: Some(remedy).filter(|remedy| !remedy.is_empty()),
        }
    }

    pub(super) fn wrong(subject: impl Into<String>, text: String, remedy: String) -> Self {
        Self {
            subject: subject.into(),
            state: FindingState::Wrong,
            text,
            remedy: Some(remedy).filter(|remedy| !remedy.is_empty()),
        }
    }
}

/// Looks at the cluster. What cannot be reached at all is an error; everything else is a finding.
pub async fn doctor(options: DoctorOptions) -> Result<Vec<Finding>, CommandError> {
    let connect = ConnectOptions {
        connection: options.connection.clone(),
        ..ConnectOptions::default()
    };
    let cluster = Cluster::connect(&connect).await.map_err(DriverError::Connect)?;
    let name = options.node.clone().unwrap_or_default();
    let official = cluster.lifecycle_group_as_served(OFFICIAL_GROUP).await;
    let official = official.map_err(DriverError::Discovery)?;
    let own = cluster.lifecycle_group_as_served(OWN_GROUP).await;
    let own = own.map_err(DriverError::Discovery)?;
    let mut findings = vec![group(&official, &own)];
    if let Some(name) = &options.node {
        let found = cluster.node(name).await.map_err(DriverError::of_node(name))?;
        let is_marked = |node: &&Node| node.checkpoint.as_ref().is_some_and(Checkpoint::is_under_way);
        let holder = match found.as_ref().filter(is_marked) {
            Some(found) => {
                let namespace = options.lease_namespace.clone();
                let mut leases = LeaseReader::new(cluster.clone(), namespace, Clock::System);
                leases.holder_of(found).await.0
            }
            None => LeaseHolder::Unknown,
        };
        findings.push(node(name, found, &holder));
    }
    let registration = match &options.kubelet_root {
        Some(root) => Some(ask(root.clone(), &name).await),
        None => None,
    };
    findings.push(claimant(registration.as_ref(), &options));
    findings.push(overrides(options.config.as_deref()));
    let environment = match &options.config {
        Some(file) => policy_environment::of_file(file, &cluster, options.node.as_deref()).await,
        None => PolicyEnvironment::default(),
    };
    findings.extend(environment.findings);
    let requests = match &options.config {
        Some(file) => drain_requests::of_file(file, &cluster).await?,
        None => DrainRequestsFound::default(),
    };
    findings.extend(requests.findings);
    let used = if official.is_whole() || !own.is_whole() {
        official
    } else {
        own
    };
    let cluster = cluster.with_lifecycle_group(&used.group);
    let drain = pre_flight::settings(options.config.as_deref());
    let settings = &drain.engine;
    if let Some(file) = &options.config {
        findings.extend(chain::of_file(file, &cluster, options.node.as_deref(), settings).await);
    }
    let duties = DriverDuties {
        group: used.group.clone(),
        claims: registration.map(|asked| !matches!(asked, Ok(Registration::Registered))),
        facts: environment.facts,
        annotates_pods: environment.annotates_pods,
        requests: requests.rights,
    };
    findings.extend(rights::of_driver(&cluster, &options, settings, duties).await?);
    findings.push(node_is_off::of_caller(&cluster, &name).await?);
    if used.is_whole() {
        let file = options.config.as_deref();
        findings.extend(published::of_driver(&cluster, &options.driver, file).await);
    }
    if let Some(node) = &options.node {
        findings.push(published::driver_pod(node, driver_pods::on(&cluster, node).await));
        findings.extend(pre_flight::of_node(&cluster, node, &drain).await);
    }
    Ok(findings)
}

/// Which group the driver will use, and why.
fn group(official: &LifecycleGroup, own: &LifecycleGroup) -> Finding {
    const SUBJECT: &str = "lifecycle API";
    let others = official.resources.join(", ");
    match (official.is_whole(), own.is_whole()) {
        (true, false) => Finding::fine(
            SUBJECT,
            format!("LifecycleEvents are served in {OFFICIAL_GROUP}, which the driver uses"),
        ),
        (true, true) => Finding::note(
            SUBJECT,
            format!(
                "LifecycleEvents are served in {OFFICIAL_GROUP} and in {OWN_GROUP}; the driver uses {OFFICIAL_GROUP} \
                 and does not look at the other"
            ),
            format!(
                "remove the second: kubectl delete crd lifecycleevents.{OWN_GROUP} lifecycletransitions.{OWN_GROUP}"
            ),
        ),
        (false, true) => Finding::fine(
            SUBJECT,
            if official.is_taken() {
                format!(
                    "the API server keeps {OFFICIAL_GROUP} for itself ({others}) and serves no LifecycleEvents in it; \
                     they are served in {OWN_GROUP}, which the driver uses"
                )
            } else {
                format!("LifecycleEvents are served in {OWN_GROUP}, which the driver uses")
            },
        ),
        (false, false) if official.is_taken() => Finding::wrong(
            SUBJECT,
            format!(
                "the API server keeps {OFFICIAL_GROUP} for itself ({others}) and serves no LifecycleEvents in it, \
                 whatever CRD of that group is established"
            ),
            "kubectl apply -f deploy/crds/lifecycle.scupper.dev.yaml".to_owned(),
        ),
        (false, false) => Finding::wrong(
            SUBJECT,
            "the API server serves no LifecycleEvents".to_owned(),
            "kubectl apply -f deploy/crds/lifecycle.yaml".to_owned(),
        ),
    }
}

/// `holder`: of the Lease, if a drain is under way.
fn node(name: &str, node: Option<Node>, holder: &LeaseHolder) -> Finding {
    const SUBJECT: &str = "node";
    match node {
        None => Finding::wrong(
            SUBJECT,
            format!("there is no node {name}"),
            "kubectl get nodes".to_owned(),
        ),
        Some(node) => {
            let cordon = if node.unschedulable {
                "cordoned"
            } else {
                "not cordoned"
            };
            let drain = match node.checkpoint {
                Some(checkpoint) => format!("drain {} is {}", checkpoint.name, checkpoint.phase),
                None => "no drain of this driver is under way".to_owned(),
            };
            // Of one that may be abandoned.
            if let Some(holder) = holder.text(Clock::System.wall()) {
                let text = format!("{name} is {cordon}; {drain}, {holder}");
                return Finding::wrong(SUBJECT, text, format!("scupper status {name}"));
            }
            Finding::fine(SUBJECT, format!("{name} is {cordon}; {drain}"))
        }
    }
}

async fn ask(root: PathBuf, node: &str) -> Result<Registration, slm::SlmError> {
    let instance = slm::unique_instance(Clock::System.now());
    slm::ask_kubelet(&root, node, instance, KUBELET_ANSWERS_WITHIN).await
}

/// Who will claim events on the node.
fn claimant(asked: Option<&Result<Registration, slm::SlmError>>, options: &DoctorOptions) -> Finding {
    const SUBJECT: &str = "claims";
    let Some(asked) = asked else {
        return Finding::note(
            SUBJECT,
            "the kubelet was not asked, so it is unknown whether it or the driver claims events".to_owned(),
            "run `scupper doctor --kubelet-root /var/lib/kubelet` on the node, as root".to_owned(),
        );
    };
    let root = options.kubelet_root.clone().unwrap_or_default();
    let root = root.display();
    match asked {
        Ok(Registration::Registered) => Finding::fine(
            SUBJECT,
            "the kubelet knows SLM: it claims the events of this node and calls the driver".to_owned(),
        ),
        Ok(Registration::Unsupported { message }) => Finding::fine(
            SUBJECT,
            format!("the kubelet does not know SLM ({message}): the driver claims the events of this node itself"),
        ),
        Ok(Registration::Refused { message }) => Finding::wrong(
            SUBJECT,
            format!("the kubelet knows SLM and refuses the driver: {message}"),
            "look at the kubelet's log".to_owned(),
        ),
        Ok(Registration::Waiting | Registration::Silent) => Finding::wrong(
            SUBJECT,
            format!("no kubelet has looked at our socket below {root}, so events would not be claimed"),
            "give the kubelet's own root directory as --kubelet-root; where no kubelet ever looks for plugins, run \
             the driver with --claim self"
                .to_owned(),
        ),
        Err(error) => Finding::wrong(
            SUBJECT,
            format!("the kubelet could not be asked: {error}"),
            "run this as root on the node, with the kubelet's own root directory as --kubelet-root".to_owned(),
        ),
    }
}

/// Which flags of a drain from a terminal the driver obeys against its own configuration.
fn overrides(file: Option<&Path>) -> Finding {
    const SUBJECT: &str = "overrides";
    let Some(file) = file else {
        return Finding::note(
            SUBJECT,
            "which flags of `scupper drain` may widen the driver's configuration is set by drain.allow-overrides in \
             it, and it was not read"
                .to_owned(),
            "run `scupper doctor --config scupper.yaml` with the driver's file".to_owned(),
        );
    };
    let shown = file.display();
    match scupper_config::read(file) {
        Ok(read) => {
            let drain = DrainSettings::default().with(&read.drain);
            let besides = match drain.allowed_overrides.as_slice() {
                [] => "and none may widen it".to_owned(),
                names => format!("and these flags may widen it: {}", names.join(", ")),
            };
            let text = format!(
                "flags of `scupper drain` and of LifecycleEvents may narrow what {shown} says under drain, {besides} \
                 (drain.allow-overrides)"
            );
            Finding::fine(SUBJECT, text)
        }
        Err(error) => Finding::wrong(
            SUBJECT,
            format!("the driver's configuration cannot be read: {error}"),
            format!("run `scupper config check {shown}`"),
        ),
    }
}

#[cfg(test)]
mod people;
#[cfg(test)]
mod texts;

#[cfg(test)]
mod tests {
    use super::*;

    fn served(group: &str, resources: &[&str]) -> LifecycleGroup {
        LifecycleGroup {
            group: group.to_owned(),
            resources: resources.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn the_group_is_reported_with_its_reason_and_the_remedy() {
        let ours = [
            "lifecycleevents",
            "lifecycleevents/status",
            "lifecycletransitions",
        ];
        let native = ["evictionrequests", "evictions"];
        for (official, own, state, words) in [
            (&ours[..], &[][..], FindingState::Fine, OFFICIAL_GROUP),
            (
                &ours[..],
                &ours[..],
                FindingState::Note,
                "does not look at the other",
            ),
            (
                &native[..],
                &ours[..],
                FindingState::Fine,
                "(evictionrequests, evictions)",
            ),
            (&[][..], &ours[..], FindingState::Fine, OWN_GROUP),
            (&native[..], &[][..], FindingState::Wrong, "whatever CRD"),
            (&[][..], &[][..], FindingState::Wrong, "serves no LifecycleEvents"),
            (&ours[..1], &[][..], FindingState::Wrong, "keeps"),
        ] {
            let found = group(&served(OFFICIAL_GROUP, official), &served(OWN_GROUP, own));
            assert_eq!(found.state, state, "{found:?}");
            assert!(found.text.contains(words), "{found:?}");
            assert_eq!(found.remedy.is_none(), state == FindingState::Fine, "{found:?}");
        }
    }
}
