//! The loop: one event per pass, and a pause after each.
//!
//! A claimed event comes first, so it blocks all others on the node; then a random pending one; then a terminal leftover.

use std::pin::pin;
use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use kube::api::DynamicObject;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use tokio::time::sleep;

use super::event::{self, is_held, name};
use super::handle::Inner;
use super::options::Mode;
use super::record::{Entry, Outcome, Pass, Step};
use super::{claim, drive, finish};

/// Runs passes until dropped.
pub(super) async fn run(inner: Arc<Inner>) {
    let writer = Writer::new(inner.options.events.clone());
    let cache = writer.as_reader();
    let follow = follow(Arc::clone(&inner), writer);
    let passes = async {
        while cache.wait_until_ready().now_or_never().is_none() {
            sleep(inner.options.timing.sync_poll).await;
        }
        loop {
            let turn = inner.turn.lock().await;
            let pass = pass(&inner, &cache).await;
            inner.record.add(Entry::Passed(pass));
            drop(turn);
            sleep(inner.options.timing.pass_pause).await;
        }
    };
    tokio::join!(follow, passes);
}

/// Keeps the cache of this node's events.
async fn follow(inner: Arc<Inner>, writer: Writer<DynamicObject>) {
    let ours = watcher::Config::default().fields(&format!("spec.bindingNode={}", inner.options.node));
    let events = watcher(inner.objects.events.clone(), ours).default_backoff();
    let mut stream = pin!(reflector::reflector(writer, events));
    while let Some(event) = stream.next().await {
        if let Err(error) = event {
            tracing::warn!(%error, "the watch of lifecycle events");
        }
    }
}

async fn pass(inner: &Inner, cache: &Store<DynamicObject>) -> Pass {
    let Some((step, event)) = choose(inner, cache) else {
        return Pass {
            step: Step::Nothing,
            event: None,
            outcome: Outcome::Done,
        };
    };
    let outcome = match step {
        Step::Drive => drive::handle_claimed(inner, name(&event)).await,
        Step::Claim => claim::claim(inner, &event).await,
        Step::CleanUp | Step::Nothing => finish::remove(inner, name(&event)).await,
    };
    if let Outcome::Unchanged(why) = &outcome {
        tracing::debug!(event = name(&event), why, "the event stays as it is");
    }
    Pass {
        step,
        event: Some(name(&event).to_owned()),
        outcome,
    }
}

fn choose(inner: &Inner, cache: &Store<DynamicObject>) -> Option<(Step, Arc<DynamicObject>)> {
    let mut events = cache.state();
    events.sort_by(|a, b| name(a).cmp(name(b)));
    [Step::Drive, Step::Claim, Step::CleanUp]
        .into_iter()
        .find_map(|step| {
            let fit: Vec<_> = events
                .iter()
                .filter(|event| step_for(inner, event) == step)
                .collect();
            let chosen = fit.get(inner.random.below(fit.len()))?;
            Some((step, Arc::clone(chosen)))
        })
}

fn step_for(inner: &Inner, event: &DynamicObject) -> Step {
    match event::claim(event) {
        "Claimed" if inner.options.mode == Mode::Proposal && !is_held(event) => Step::Nothing,
        "Claimed" => Step::Drive,
        "Pending" => Step::Claim,
        _ => Step::CleanUp,
    }
}
