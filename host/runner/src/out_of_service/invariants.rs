//! Random sequences of node states, kills, take-overs, cancels and other people's writes, with a real engine and the real
//! writes of the taint. The API server's model checks each write, and the end of each drain is checked:
//!
//! 1. The taint is set only with the operator's word.
//! 2. It is set only on a cordoned node.
//! 3. It is never set on a node whose kubelet is alive: `Ready` is not `Unknown`, or its Lease was renewed.
//! 4. A taint that another client has set or replaced is never removed.
//! 5. A drain that is cancelled leaves no taint of its own.
//! 6. A process removes its taint soon from a node whose kubelet is alive again, whatever the hooks of policies do, and
//!    if the API server does not answer, soon after it does again.
//!
//! The engine knows nothing of the taint, so its simulation cannot check this. Each mutation below must be found.

mod process;
mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use scupper_common::clock::Clock;
use scupper_engine::{Checkpoint, Event, Filters, Outcome, Request, Settings, Time, Uid};
use scupper_report::fixture;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use self::process::Process;
use self::world::{NODE, RENEW, Shared, World, WorldEvent, cluster};

const SEQUENCES: u64 = 1_000;
const ID: &str = "drain";
/// How long a drain may take to notice that the node is Ready and to remove its taint, with a server that fails often.
const NOTICED: Duration = Duration::from_secs(12);
/// The same if only the kubelet's Lease shows it, which is read every ten seconds.
const NOTICED_BY_LEASE: Duration = Duration::from_secs(25);

/// A part that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutation {
    /// The hook checks neither that the node is silent nor that it is cordoned, nor whether it has changed since.
    TrustsAnOldState,
    /// The hook takes part in every drain.
    NeedsNoWord,
    /// A cancel does not remove the taint.
    RemovesNothing,
    /// The removal begins only after the policies' cancel hooks.
    WaitsForItsTurn,
    /// `Ready=False` counts as silence, and the kubelet's Lease for expired.
    TakesFalseForSilence,
    /// The kubelet's Lease is always taken for expired.
    TrustsUnknown,
    /// A node that is Ready again does not end the drain.
    IgnoresReady,
    /// A Lease that is renewed does not end the drain.
    IgnoresRenewals,
    /// A process that continues the drain without the word does not know the drain's own taint.
    ForgetsItsMark,
    /// The taint is removed, also one that another client has set.
    RemovesAnyTaint,
}

/// How a sequence went.
#[derive(Debug, Default)]
struct Course {
    faults: Vec<String>,
    set: u32,
    removed: u32,
    taken_over: bool,
    outcome: Option<Outcome>,
}

fn sequence(seed: u64, mutation: Option<Mutation>) -> Course {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(play(seed, mutation))
}

async fn play(seed: u64, mutation: Option<Mutation>) -> Course {
    let clock = Clock::starting_at(Time::from_millis(1_000_000));
    let world: Shared = Arc::new(Mutex::new(World::new(seed, mutation, clock)));
    let mut word = begin(&world, mutation);
    let deadline = clock.now() + Duration::from_secs(60);
    let mut taken_over = false;
    let (mut node, mut resume) = (None, None);
    let outcome = loop {
        let request = request(deadline, word);
        let process = Process::start(&world, clock, request, node.as_ref(), resume.take(), mutation);
        let disturbing = tokio::spawn(disturb(Arc::clone(&world), process.orders()));
        let renewing = tokio::spawn(renew(Arc::clone(&world)));
        world.lock().unwrap().alive_since = Some(Instant::now());
        let ended = process.run(dies_at(&world)).await;
        disturbing.abort();
        renewing.abort();
        if ended.is_some() {
            break ended;
        }
        let pause = {
            let mut world = world.lock().unwrap();
            world.alive_since = None;
            world.millis(15_000)
        };
        sleep(Duration::from_secs(1) + pause).await;
        node = loop {
            if let Ok(found) = cluster(&world, clock).node(NODE).await {
                break found;
            }
        };
        let mark = node.as_ref().and_then(|node| node.checkpoint.clone());
        resume = mark.filter(Checkpoint::is_under_way);
        if resume.is_none() {
            break None;
        }
        taken_over = true;
        word = mutation != Some(Mutation::NeedsNoWord) && world.lock().unwrap().below(2) == 0;
    };
    let mut world = world.lock().unwrap();
    check_end(&mut world, outcome.as_ref());
    Course {
        faults: std::mem::take(&mut world.faults),
        set: world.set,
        removed: world.removed,
        taken_over,
        outcome,
    }
}

/// The world before the drain; returns whether the operator gives their word.
fn begin(world: &Shared, mutation: Option<Mutation>) -> bool {
    let mut world = world.lock().unwrap();
    for number in 0..world.below(3) {
        world.pods.insert(Uid::new(format!("pod-{number}")), None);
    }
    match world.below(8) {
        0 | 1 => {
            let status = alive(&mut world);
            world.happens(WorldEvent::Kubelet(Some(status)));
        }
        2 => world.happens(WorldEvent::Taint),
        3 => world.begin_tainted(),
        _ => {}
    }
    mutation != Some(Mutation::NeedsNoWord) && world.below(10) > 0
}

fn request(deadline: Time, machine_is_off: bool) -> Request {
    Request {
        id: ID.to_owned(),
        trigger: "command".to_owned(),
        deadline: Some(deadline),
        settings: Settings {
            machine_is_off,
            filters: Filters {
                force: true,
                ..Filters::default()
            },
            ..Settings::default()
        },
        ..fixture::request()
    }
}

fn dies_at(world: &Shared) -> Option<Instant> {
    let mut world = world.lock().unwrap();
    let is_killed = world.below(3) == 0;
    is_killed.then(|| Instant::now() + world.millis(20_000))
}

/// What happens meanwhile, in random order.
async fn disturb(world: Shared, orders: mpsc::UnboundedSender<Event>) {
    loop {
        let pause = world.lock().unwrap().millis(9_000);
        sleep(pause).await;
        let mut world = world.lock().unwrap();
        world.check_alive(NOTICED, NOTICED_BY_LEASE);
        let happens = match world.below(16) {
            0 | 1 => WorldEvent::Kubelet(Some(alive(&mut world))),
            2 | 3 => WorldEvent::Kubelet(None),
            4 => WorldEvent::Cordon(false),
            5 | 6 => WorldEvent::Cordon(true),
            7 => WorldEvent::Taint,
            8 => WorldEvent::Untaint,
            9 => {
                let reason = "an operator cancels it".to_owned();
                // It may have ended.
                orders.send(Event::Cancel { reason }).unwrap_or_default();
                if world.below(2) == 0 {
                    world.begin_outage();
                }
                continue;
            }
            10 => {
                world.begin_outage();
                WorldEvent::Touch
            }
            _ => WorldEvent::Touch,
        };
        world.happens(happens);
    }
}

/// What the node shows of a kubelet that is alive. One that has just come back has posted no status yet.
fn alive(world: &mut World) -> &'static str {
    match world.below(3) {
        0 => "True",
        1 => "False",
        _ => "Unknown",
    }
}

/// A kubelet that is alive renews its Lease.
async fn renew(world: Shared) {
    loop {
        sleep(RENEW).await;
        world.lock().unwrap().renew();
    }
}

fn check_end(world: &mut World, outcome: Option<&Outcome>) {
    let is_left = world.is_tainted;
    let is_cancelled = matches!(outcome, Some(Outcome::Cancelled { .. }));
    world.require(!(is_cancelled && is_left), "a cancelled drain left its taint");
    let is_marked = world.is_marked_by(ID);
    world.require(!(is_cancelled && is_marked), "a cancelled drain left its mark");
    world.check_alive(NOTICED, NOTICED_BY_LEASE);
}

#[test]
fn the_taint_is_set_and_removed_only_as_it_may_be() {
    let (mut set, mut removed, mut taken_over, mut drained, mut cancelled) = (0, 0, 0, 0, 0);
    for seed in 0..SEQUENCES {
        let course = sequence(seed, None);
        assert!(course.faults.is_empty(), "sequence {seed}: {course:#?}");
        set += course.set;
        removed += course.removed;
        taken_over += u32::from(course.taken_over && course.set > 0);
        drained += u32::from(course.outcome == Some(Outcome::Drained));
        cancelled += u32::from(matches!(course.outcome, Some(Outcome::Cancelled { .. })));
    }
    // Each of them must have happened often enough to prove something.
    let often = [set, removed, taken_over, drained, cancelled];
    assert!(often.iter().all(|times| *times >= 40), "{often:?}");
}

#[test]
fn each_mutation_is_found() {
    for (mutation, found) in [
        (
            Mutation::TrustsAnOldState,
            "the taint was set on a node whose kubelet reports",
        ),
        (Mutation::TrustsAnOldState, "the taint was set before the cordon"),
        (
            Mutation::TakesFalseForSilence,
            "the taint was set on a node whose kubelet reports",
        ),
        (
            Mutation::TrustsUnknown,
            "the taint was set on a node whose kubelet renews its Lease",
        ),
        (
            Mutation::IgnoresRenewals,
            "a node whose kubelet renews its Lease kept the taint",
        ),
        (
            Mutation::NeedsNoWord,
            "the taint was set without the operator's word",
        ),
        (Mutation::RemovesNothing, "a cancelled drain left its taint"),
        (Mutation::WaitsForItsTurn, "a cancelled drain left its taint"),
        (
            Mutation::WaitsForItsTurn,
            "a node whose kubelet reports again kept the taint",
        ),
        (
            Mutation::IgnoresReady,
            "a node whose kubelet reports again kept the taint",
        ),
        (
            Mutation::ForgetsItsMark,
            "a node whose kubelet reports again kept the taint",
        ),
        (Mutation::RemovesAnyTaint, "a taint of another client was removed"),
    ] {
        let is_found = |seed| sequence(seed, Some(mutation)).faults.iter().any(|it| it == found);
        assert!((0..5 * SEQUENCES).any(is_found), "{mutation:?}: {found}");
    }
}
