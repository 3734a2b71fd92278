//! The pair of conditions of a node, `DrainInProgress` and `Drained`, in every state that a watcher sees.

use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use tokio::task::JoinHandle;

/// Watches one node.
pub(crate) struct Pairs {
    seen: Arc<Mutex<ObservedPairs>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct ObservedPairs {
    /// As `True/False DrainStarted`.
    story: Vec<String>,
    wrong: Vec<String>,
}

impl Pairs {
    /// From now on.
    pub(crate) fn watch(client: Client, node: &'static str) -> Self {
        let seen: Arc<Mutex<ObservedPairs>> = Arc::default();
        let keep = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut events = watcher::watcher(Api::<Node>::all(client), watcher::Config::default())
                .default_backoff()
                .boxed();
            while let Some(event) = events.next().await {
                if let Ok(Event::Apply(found) | Event::InitApply(found)) = event
                    && found.metadata.name.as_deref() == Some(node)
                {
                    keep.lock().unwrap().observe(&found);
                }
            }
        });
        Self { seen, task }
    }

    /// All pairs in order, without repetitions. An invalid pair fails the test.
    #[track_caller]
    pub(crate) fn story(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        assert!(seen.wrong.is_empty(), "{:#?}", seen.wrong);
        seen.story.clone()
    }

    /// The last pair.
    #[track_caller]
    pub(crate) fn last(&self) -> String {
        self.story().pop().unwrap_or_default()
    }
}

impl ObservedPairs {
    fn observe(&mut self, node: &Node) {
        let conditions = node.status.as_ref().and_then(|it| it.conditions.as_deref());
        let of = |kind: &str| conditions.into_iter().flatten().find(|it| it.type_ == kind);
        let pair = match (of("DrainInProgress"), of("Drained")) {
            (None, None) => return,
            (Some(progress), Some(drained)) => pair(progress, drained),
            _ => Err("one of the pair is missing".to_owned()),
        };
        match pair {
            Ok(pair) if self.story.last() == Some(&pair) => {}
            Ok(pair) => self.story.push(pair),
            Err(why) => self.wrong.push(format!("{why}: {conditions:?}")),
        }
    }
}

fn pair(progress: &NodeCondition, drained: &NodeCondition) -> Result<String, String> {
    let (one, other) = (progress.status.as_str(), drained.status.as_str());
    // One write has one reason, one message and one time: a difference means two writes.
    let write = |it: &NodeCondition| {
        (
            it.reason.clone(),
            it.message.clone(),
            it.last_heartbeat_time.clone(),
        )
    };
    if write(progress) != write(drained) {
        return Err("they were not written together".to_owned());
    }
    match (one, other) {
        ("True", "False") | ("False", "True" | "False") => {
            let reason = progress.reason.as_deref().unwrap_or_default();
            Ok(format!("{one}/{other} {reason}"))
        }
        _ => Err("they contradict each other".to_owned()),
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        self.task.abort();
    }
}
