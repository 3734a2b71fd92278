//! Which drains notify, and how often an Event is tried that cannot be written.

use std::sync::atomic::{AtomicU32, Ordering};

use scupper_engine::Settings;
use scupper_report::fixture;

use super::*;

fn request(change: impl FnOnce(&mut Settings)) -> Request {
    let mut request = fixture::request();
    request.settings.notify_before = Duration::from_secs(60);
    change(&mut request.settings);
    request
}

#[test]
fn a_drain_that_is_to_notify_has_the_hooks_once() {
    let given = planned(request(|_| ()));
    let own: Vec<_> = given
        .policies
        .iter()
        .filter(|policy| policy.name == NOTICE)
        .collect();
    assert!(matches!(&own[..], [policy] if policy.planner && policy.phases.len() == 3));
    assert_eq!(planned(given.clone()), given);
}

#[test]
fn others_do_not_have_them() {
    let zero = request(|settings| settings.notify_before = Duration::ZERO);
    // Nobody could act on the notice: nothing runs there.
    let off = request(|settings| settings.machine_is_off = true);
    let uncordon = Request {
        intent: Intent::Uncordon,
        ..request(|_| ())
    };
    for without in [zero, off, uncordon] {
        assert_eq!(planned(without.clone()), without);
    }
}

/// Answers each request with this code. Returns how many it gets until the hook has finished, which tells the owner of a pod
/// ten minutes before.
async fn tries(code: u16) -> u32 {
    let tried = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&tried);
    let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        seen.fetch_add(1, Ordering::Relaxed);
        async move {
            let status = format!(r#"{{"kind": "Status", "code": {code}, "reason": "", "message": "no"}}"#);
            let body = kube::client::Body::from(status.into_bytes());
            Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(body).unwrap())
        }
    });
    let clock = Clock::starting_at(Time::from_millis(1_000_000_000));
    let client = kube::Client::new(service, "default");
    let cluster = Cluster::from_client(client, scupper_cluster::ConnectOptions::default(), clock);
    let (notices, begun) = (Notices::default(), clock.now());
    let before = Duration::from_secs(600);
    let mut state = Vec::new();
    loop {
        let step = Step {
            cluster: cluster.clone(),
            clock,
            notices: notices.clone(),
            request: request(|settings| settings.notify_before = before),
            started: begun,
            phase: HookPhase::BeforeDrain,
            state,
            pods: vec![fixture::running("alone")],
        };
        match step.take().await {
            (StepOutcome::Done, said) => {
                let note = "pod shop/alone was not told that its pods leave";
                assert!(said.is_some_and(|said| said.note.starts_with(note)));
                break;
            }
            (
                StepOutcome::Pending {
                    state: next,
                    again_after,
                    ..
                },
                _,
            ) => {
                state = next;
                tokio::time::advance(again_after).await;
            }
            (failed, _) => panic!("{failed:?}"),
        }
    }
    assert_eq!(clock.now().since(begun), before);
    tried.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_written_is_tried_ever_more_rarely_and_one_that_is_invalid_once() {
    // After 1s, 2s, 4s ... and then once a minute.
    assert_eq!([tries(403).await, tries(503).await], [15, 15]);
    assert_eq!(tries(422).await, 1);
}
