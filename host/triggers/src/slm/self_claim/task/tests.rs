//! The task beside the publisher of transitions, on an API server that exists only here. The clock is paused, so a
//! moment that passes is one that was waited for.

use std::sync::Mutex;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use scupper_api::{ClaimStatus, LifecycleTransition};
use scupper_engine::Time;
use tokio::sync::watch;
use tokio::time::Instant;

use super::*;
use crate::slm::self_claim::api::{ClaimError, EventSnapshot, EventUpdate, TransitionCondition};
use crate::slm::transition_api::{TransitionApi, TransitionApiError};
use crate::slm::transition_publisher::{PublisherInput, publish_transitions};
use crate::slm::transition_sync::TransitionSync;
use crate::slm::{LifecycleEvent, SlmOptions, TransitionChange, VersionedEvent};

const DRIVER: &str = "drain";
const NODE: &str = "worker-1";
/// How long the API server takes to publish a transition.
const PUBLISHING: Duration = Duration::from_secs(1);

fn pending() -> VersionedEvent {
    VersionedEvent {
        event: LifecycleEvent {
            uid: "uid-e".to_owned(),
            name: "e".to_owned(),
            created: None,
            deleting: false,
            transition: DRIVER.to_owned(),
            node: NODE.to_owned(),
            claim: ClaimStatus::Pending,
            driver: None,
            sla: None,
            flags: None,
        },
        version: "1".to_owned(),
        finalizers: Vec::new(),
    }
}

/// One event, and the transition that it names.
struct Server {
    transition: Mutex<Option<LifecycleTransition>>,
    changes: mpsc::UnboundedSender<TransitionChange>,
    /// The first write of the event.
    written: watch::Sender<Option<Instant>>,
    reads: Mutex<usize>,
}

type Done<'a, T> = BoxFuture<'a, Result<T, ClaimError>>;

impl ClaimApi for Server {
    fn read<'a>(&'a self, _: &'a str) -> Done<'a, EventSnapshot> {
        *self.reads.lock().unwrap() += 1;
        let snapshot = EventSnapshot {
            event: Some(pending()),
            transition: self.transition.lock().unwrap().clone(),
            condition: TransitionCondition::default(),
        };
        async { Ok(snapshot) }.boxed()
    }

    fn write<'a>(&'a self, _: &'a VersionedEvent, _: &'a EventUpdate) -> Done<'a, VersionedEvent> {
        self.written.send_replace(Some(Instant::now()));
        std::future::pending().boxed()
    }

    fn delete<'a>(&'a self, _: &'a VersionedEvent) -> Done<'a, ()> {
        std::future::pending().boxed()
    }

    fn set_condition<'a>(&'a self, _: &'a TransitionCondition) -> Done<'a, ()> {
        std::future::pending().boxed()
    }
}

impl TransitionApi for Server {
    fn publish<'a>(
        &'a self,
        transition: &'a LifecycleTransition,
    ) -> BoxFuture<'a, Result<(), TransitionApiError>> {
        async {
            sleep(PUBLISHING).await;
            if transition.name == DRIVER {
                *self.transition.lock().unwrap() = Some(transition.clone());
            }
            self.changes
                .send(TransitionChange::Applied(transition.clone()))
                .unwrap();
            Ok(())
        }
        .boxed()
    }

    fn withdraw<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), TransitionApiError>> {
        async { Ok(()) }.boxed()
    }

    fn warn<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<(), TransitionApiError>> {
        async { Ok(()) }.boxed()
    }
}

/// Runs until the event is written, and returns how long that took and how often the event was read.
async fn first_write() -> (Duration, usize) {
    let clock = Clock::starting_at(Time::from_millis(1_790_000_000_000));
    let options = SlmOptions::new(DRIVER, NODE, "one".to_owned());
    let (changes, changed) = mpsc::unbounded_channel();
    let (written, mut was_written) = watch::channel(None);
    let server = Arc::new(Server {
        transition: Mutex::default(),
        changes,
        written,
        reads: Mutex::default(),
    });
    let (calls, _inbox) = mpsc::channel(1);
    let (warnings, _warned) = mpsc::channel(1);
    let (inputs, input) = mpsc::unbounded_channel();
    let task = ClaimTask {
        machine: ClaimMachine::new(DRIVER, NODE),
        api: Arc::clone(&server) as Arc<dyn ClaimApi>,
        calls,
        warnings,
        clock,
    };
    inputs.send(ClaimInput::SetClaiming(true)).unwrap();
    let listed = LifecycleChange::Listed(vec![pending().event]);
    inputs.send(ClaimInput::EventChanged(listed)).unwrap();
    let registered = PublisherInput {
        registrations: 1,
        busy: false,
    };
    let (_publisher_input, publisher_inputs) = watch::channel(registered);
    let publishing = publish_transitions(
        TransitionSync::new(&options),
        Arc::clone(&server) as Arc<dyn TransitionApi>,
        watched(changed),
        publisher_inputs,
        inputs.clone(),
    );
    let begun = Instant::now();
    tokio::select! {
        () = task.run(input) => panic!("the task ended"),
        () = publishing => panic!("the publisher ended"),
        at = was_written.wait_for(Option::is_some) => {
            let at = at.unwrap().unwrap();
            (at - begun, *server.reads.lock().unwrap())
        }
    }
}

/// The watch of transitions: none at first.
fn watched(changed: mpsc::UnboundedReceiver<TransitionChange>) -> BoxStream<'static, TransitionChange> {
    let later = stream::unfold(changed, |mut changed| async {
        let change = changed.recv().await?;
        Some((change, changed))
    });
    stream::iter([TransitionChange::Listed(Vec::new())])
        .chain(later)
        .boxed()
}

/// On a new cluster: the event is there before the driver has published anything.
#[tokio::test(start_paused = true)]
async fn an_event_that_waits_for_its_transition_is_claimed_as_soon_as_that_is_published() {
    let (after, reads) = first_write().await;
    assert!(after < 3 * PUBLISHING, "after {after:?}");
    assert_eq!(reads, 2, "once before, once after");
}
