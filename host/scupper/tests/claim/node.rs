//! A node whose kubelet does not know SLM, and a record of its events and its condition.

use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use scupper_simulator::api::RequestRecord;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::driver::Driver;
use crate::limit::LIMIT;
use crate::rig::{DRIVER, NODE, Rig, claim, finalizers};

/// The record, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    /// An event, its claim status, its finalizers.
    Event(String, String, Vec<String>),
    /// An event is gone.
    Gone(String),
    /// The reason of the node condition.
    Reason(String),
}

pub(crate) struct Node {
    rig: Rig,
    transitions: String,
    story: Arc<Mutex<Vec<Observed>>>,
    _watches: JoinSet<()>,
}

impl Deref for Node {
    type Target = Rig;

    fn deref(&self) -> &Rig {
        &self.rig
    }
}

impl Node {
    /// With a kubelet that does not know SLM.
    pub(crate) async fn start() -> Self {
        Self::with(Rig::with(|options| options.gate = false).await).await
    }

    pub(crate) async fn with(rig: Rig) -> Self {
        Self::in_group(rig, "lifecycle.k8s.io").await
    }

    /// With its events in this API group.
    pub(crate) async fn in_group(rig: Rig, group: &str) -> Self {
        let story = Arc::default();
        let mut watches = JoinSet::new();
        let client = kube::Client::try_from(rig.api.client_config()).unwrap();
        let events = ApiResource {
            group: group.to_owned(),
            version: "v1alpha1".to_owned(),
            api_version: format!("{group}/v1alpha1"),
            kind: "LifecycleEvent".to_owned(),
            plural: "lifecycleevents".to_owned(),
        };
        let events: Api<DynamicObject> = Api::all_with(client.clone(), &events);
        watches.spawn(follow(Arc::clone(&story), watch_events(events)));
        watches.spawn(follow(Arc::clone(&story), watch_reason(Api::all(client))));
        Self {
            rig,
            transitions: format!("lifecycletransitions.{group}"),
            story,
            _watches: watches,
        }
    }

    /// Starts a driver and waits until it claims events.
    pub(crate) async fn claimer(&self, more: &[&str]) -> Driver {
        let mut driver = self.rig.spawn(more);
        self.until("the driver claims events", || {
            assert!(driver.is_running(), "it ended:\n{}", driver.log());
            driver.log().contains("leads=true") && self.has_transitions()
        })
        .await;
        driver
    }

    fn has_transitions(&self) -> bool {
        self.list(&self.transitions)
            .iter()
            .filter(|it| it["spec"]["driver"] == DRIVER)
            .count()
            >= 2
    }

    pub(crate) fn story(&self) -> Vec<Observed> {
        self.story.lock().unwrap().clone()
    }

    /// The claim statuses of an event, one after the other.
    pub(crate) fn statuses(&self, event: &str) -> Vec<String> {
        let mut statuses: Vec<String> = Vec::new();
        for seen in self.story() {
            if let Observed::Event(name, status, _) = seen
                && name == event
            {
                statuses.push(status);
            }
        }
        statuses.dedup();
        statuses
    }

    /// The reasons of the node condition, one after the other.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let reasons = self.story().into_iter().filter_map(|seen| match seen {
            Observed::Reason(reason) => Some(reason),
            Observed::Event(..) | Observed::Gone(_) => None,
        });
        let mut reasons: Vec<_> = reasons.collect();
        reasons.dedup();
        reasons
    }

    /// Waits until an event is gone, and returns its last state.
    pub(crate) async fn end_of(&self, event: &str) -> String {
        let gone = Observed::Gone(event.to_owned());
        self.until("the event is gone", || self.story().contains(&gone))
            .await;
        self.statuses(event).pop().unwrap()
    }

    /// Waits until an event has this claim status.
    pub(crate) async fn becomes(&self, event: &str, status: &str) {
        self.until("the event's status", || {
            self.get_event(event).is_some_and(|it| claim(&it) == status)
        })
        .await;
    }

    /// Waits until the condition holds.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(
                begun.elapsed() < LIMIT,
                "not within {LIMIT:?}: {what}; seen: {:#?}",
                self.story()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The driver's writes of events and of their status.
    pub(crate) fn event_writes(&self, mark: usize) -> Vec<RequestRecord> {
        let all = self.api.requests_since(mark).into_iter();
        all.filter(|it| it.path.contains("/lifecycleevents/") && it.method != "GET")
            .filter(|it| it.user_agent.starts_with("scupper"))
            .collect()
    }

    /// A driver of the same name that does not know of the others: each has its own kubelet root.
    pub(crate) fn stranger(&self, folder: &Path, number: usize) -> Driver {
        let root = folder.join(format!("kubelet-{number}"));
        for directory in ["plugins", "plugins_registry"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        let arguments = [
            ("--driver-name", DRIVER),
            ("--node-name", NODE),
            ("--claim", "self"),
            ("--kubelet-root", root.to_str().unwrap()),
            ("--kubeconfig", self.kubeconfig().to_str().unwrap()),
        ]
        .iter()
        .flat_map(|(flag, value)| [flag.to_string(), value.to_string()])
        .collect::<Vec<_>>();
        Driver::spawn(folder, number, &arguments)
    }
}

type ObservedStream = futures::stream::BoxStream<'static, Observed>;

/// The watches back off after an error: when a runtime ends, its client may end first, and a watch that retried at once
/// would never let the runtime end.
async fn follow(story: Arc<Mutex<Vec<Observed>>>, mut watched: ObservedStream) {
    while let Some(seen) = watched.next().await {
        story.lock().unwrap().push(seen);
    }
}

fn watch_events(api: Api<DynamicObject>) -> ObservedStream {
    let seen = |event: Result<Event<DynamicObject>, watcher::Error>| match event {
        Ok(Event::Apply(object) | Event::InitApply(object)) => {
            let object: Value = serde_json::to_value(object).unwrap();
            let names = finalizers(&object).into_iter().map(str::to_owned).collect();
            let name = crate::rig::name(&object).to_owned();
            Some(Observed::Event(name, claim(&object).to_owned(), names))
        }
        Ok(Event::Delete(object)) => Some(Observed::Gone(object.metadata.name.unwrap())),
        Ok(Event::Init | Event::InitDone) | Err(_) => None,
    };
    let watch = watcher::watcher(api, watcher::Config::default()).default_backoff();
    watch
        .filter_map(move |event| std::future::ready(seen(event)))
        .boxed()
}

fn watch_reason(api: Api<NodeObject>) -> ObservedStream {
    let seen = |event: Result<Event<NodeObject>, watcher::Error>| {
        let (Event::Apply(node) | Event::InitApply(node)) = event.ok()? else {
            return None;
        };
        let mut conditions = node.status?.conditions?.into_iter();
        let ours = conditions.find(|it| it.type_ == "LifecycleTransition")?;
        Some(Observed::Reason(ours.reason.unwrap_or_default()))
    };
    let watch = watcher::watcher(api, watcher::Config::default()).default_backoff();
    watch
        .filter_map(move |event| std::future::ready(seen(event)))
        .boxed()
}
