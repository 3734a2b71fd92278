//! Finds out which DaemonSets exist: a pod whose DaemonSet is gone counts as unmanaged, as for `kubectl drain`.
//!
//! One list of their metadata serves a whole drain, where `kubectl` sends one request per pod.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Request;
use http::header::ACCEPT;
use scupper_engine::Pod;
use tokio::time::{Instant, sleep};

use super::Cluster;
use super::pages::Pages;
use super::transport::Fault;
use super::wire::MetaOnly;

const PATH: &str = "/apis/apps/v1/daemonsets";

/// Metadata only: specs and statuses of DaemonSets are large.
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Time for which a list is reused by drains that begin at about the same time, and for which a failed one is not
/// repeated.
const FRESH: Duration = Duration::from_secs(10);

/// The pause between such tries.
const PAUSE: Duration = Duration::from_secs(1);

/// The cached knowledge of DaemonSets.
#[derive(Debug, Default)]
pub(super) struct DaemonSets {
    /// Namespace and name of existing DaemonSets.
    present: BTreeSet<(String, String)>,
    /// UIDs of controllers missing from a list. They never return: a new DaemonSet has a new UID.
    absent: BTreeSet<String>,
    listed: Option<Instant>,
    failed: Option<Instant>,
}

impl Cluster {
    /// Marks the pods whose DaemonSet does not exist. `anew` ignores cached knowledge. If the list fails for some time,
    /// the DaemonSet counts as existing: its pods then stay, which is harmless.
    pub(super) async fn mark_missing(&self, pods: &mut [Pod], anew: bool) {
        if !pods.iter().any(can_be_missing) {
            return;
        }
        let mut sets = self.daemon_sets().lock().await;
        if sets.must_list(pods, anew) {
            match self.daemon_sets_soon(anew).await {
                Ok(present) => sets.learn(present, pods),
                Err(fault) => {
                    sets.failed = Some(Instant::now());
                    let fault = fault.read("list daemonsets").to_string();
                    tracing::warn!(
                        fault,
                        "cannot tell whether DaemonSets exist, taking them for existing"
                    );
                }
            }
        }
        sets.mark(pods);
    }

    /// Lists them. `waits`: the first list of a drain, which decides about its plan, is tried again for some time.
    async fn daemon_sets_soon(&self, waits: bool) -> Result<BTreeSet<(String, String)>, Fault> {
        loop {
            match self.list_daemon_sets().await {
                Ok(present) => {
                    self.optional_reads().succeeded(PATH);
                    return Ok(present);
                }
                Err(fault) if waits && self.optional_reads().may_pass(PATH) => {
                    tracing::debug!(?fault, "DaemonSets cannot be listed; trying again");
                    sleep(PAUSE).await;
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    async fn list_daemon_sets(&self) -> Result<BTreeSet<(String, String)>, Fault> {
        let request = |query: &str| {
            let request = Request::get(format!("{PATH}?{query}")).header(ACCEPT, METADATA_LIST);
            let request = request.body(Vec::new());
            request.map_err(|error| Fault::Malformed(error.to_string()))
        };
        let mut present = BTreeSet::new();
        let each = |MetaOnly { metadata }| {
            present.insert((metadata.namespace, metadata.name));
        };
        let pages = Pages::of(self.client(), self.options(), PATH);
        pages.read(request, each).await?;
        Ok(present)
    }
}

/// True for DaemonSets of Kubernetes itself, the only ones listed. One of another API group counts as existing.
fn can_be_missing(pod: &Pod) -> bool {
    let owner = pod.controller.as_ref().filter(|_| pod.is_daemon());
    owner.is_some_and(|owner| owner.api_version == "apps/v1")
}

impl DaemonSets {
    fn must_list(&self, pods: &[Pod], anew: bool) -> bool {
        let recent = |moment: Option<Instant>| moment.is_some_and(|moment| moment.elapsed() < FRESH);
        if recent(self.failed) {
            return false;
        }
        (anew && !recent(self.listed)) || pods.iter().any(|pod| can_be_missing(pod) && !self.knows(pod))
    }

    fn knows(&self, pod: &Pod) -> bool {
        let Some(owner) = &pod.controller else { return true };
        self.absent.contains(owner.uid.as_str()) || self.has(pod)
    }

    fn has(&self, pod: &Pod) -> bool {
        let name = pod
            .controller
            .as_ref()
            .map(|owner| owner.name.clone())
            .unwrap_or_default();
        self.present.contains(&(pod.id.namespace.clone(), name))
    }

    fn learn(&mut self, present: BTreeSet<(String, String)>, pods: &[Pod]) {
        self.present = present;
        self.listed = Some(Instant::now());
        self.failed = None;
        let missing = pods.iter().filter(|pod| can_be_missing(pod) && !self.has(pod));
        let missing = missing.filter_map(|pod| Some(pod.controller.as_ref()?.uid.as_str().to_owned()));
        self.absent = missing.collect();
    }

    fn mark(&self, pods: &mut [Pod]) {
        for pod in pods.iter_mut().filter(|pod| can_be_missing(pod)) {
            if let Some(owner) = &mut pod.controller {
                owner.missing = self.absent.contains(owner.uid.as_str());
            }
        }
    }
}
