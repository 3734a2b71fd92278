//! Registration: every row of the contract's table, and observations of a real kubelet.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use scupper_simulator::kubelet::{Attempt, Entry, KubeletHandle};
use tokio::time::Instant;

use crate::driver::{Plugin, Registered, Service};
use crate::world::{LIMIT, World, step};

const NAME: &str = "drain.example";

fn endpoints(kubelet: &KubeletHandle) -> Vec<PathBuf> {
    kubelet.registered().remove(NAME).unwrap_or_default()
}

/// Waits until the kubelet has made this many attempts, and returns the last one.
async fn attempt(kubelet: &KubeletHandle, number: usize) -> Attempt {
    kubelet
        .wait_for(|record| record.attempts().len() >= number, LIMIT)
        .await
        .unwrap();
    kubelet.attempts().remove(number - 1)
}

#[tokio::test]
async fn the_folders_are_made() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::start().await;
    for folder in ["plugins_registry", "plugins"] {
        let mode = fs::metadata(world.root().join(folder))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o750, "{folder}");
    }
}

#[tokio::test]
async fn a_driver_is_registered_and_notified_once() {
    let world = World::start().await;
    let service = Service::serve(&world.service("a"), []);
    let front = Registered::serve(&world.registry("a"), Plugin::new(NAME, &service.path));
    assert_eq!(front.wait_notified(1).await, [(true, String::new())]);
    world.ticks(5).await;
    assert_eq!(front.notified().len(), 1);
    assert_eq!(*front.ears.asked.lock().unwrap(), 1);
    assert_eq!(endpoints(&world.kubelet), std::slice::from_ref(&service.path));
}

#[tokio::test]
async fn an_unknown_type_is_refused_by_name() {
    let world = World::start().await;
    let plugin = Plugin {
        kind: "OtherPlugin".into(),
        ..Plugin::new(NAME, &world.service("a"))
    };
    let front = Registered::serve(&world.registry("a"), plugin);
    let text = format!(
        "RegisterPlugin error -- no handler registered for plugin type: OtherPlugin at socket {}",
        world.registry("a").display()
    );
    // It is retried, and refused again.
    assert_eq!(
        front.wait_notified(2).await[..2],
        [(false, text.clone()), (false, text)]
    );
    assert!(world.kubelet.registered().is_empty());
}

#[tokio::test]
async fn a_kubelet_with_the_gate_off_does_not_know_the_type() {
    let world = World::with(|options| options.gate = false).await;
    let front = Registered::serve(&world.registry("a"), Plugin::new(NAME, &world.service("a")));
    let (registered, text) = front.wait_notified(1).await.remove(0);
    assert!(!registered);
    assert!(
        text.contains("no handler registered for plugin type: SLMPlugin at socket"),
        "{text}"
    );
}

#[tokio::test]
async fn a_plugin_needs_a_common_version() {
    let world = World::start().await;
    let versions = |versions: &[&str]| Plugin {
        versions: versions.iter().map(ToString::to_string).collect(),
        ..Plugin::new(NAME, &world.service("a"))
    };
    let none = Registered::serve(&world.registry("none"), versions(&[]));
    let other = Registered::serve(
        &world.registry("other"),
        versions(&["v2.SLMPlugin", "v3.SLMPlugin"]),
    );
    let several = Registered::serve(
        &world.registry("several"),
        versions(&["v2.SLMPlugin", "v1alpha1.SLMPlugin"]),
    );
    assert_eq!(
        none.wait_notified(1).await[0].1,
        "RegisterPlugin error -- plugin validation failed with err: \
         empty list of supported gRPC services (aka supported versions)"
    );
    assert_eq!(
        other.wait_notified(1).await[0].1,
        "RegisterPlugin error -- plugin validation failed with err: none of the services supported by the plugin \
         (v2.SLMPlugin, v3.SLMPlugin) are supported by the kubelet (v1alpha1.SLMPlugin)"
    );
    assert_eq!(several.wait_notified(1).await[0], (true, String::new()));
}

#[tokio::test]
async fn without_an_endpoint_the_registration_socket_is_the_endpoint() {
    let world = World::start().await;
    let plugin = Plugin {
        endpoint: String::new(),
        ..Plugin::new(NAME, &world.service("a"))
    };
    let front = Registered::serve(&world.registry("a"), plugin);
    front.wait_notified(1).await;
    assert_eq!(endpoints(&world.kubelet), [world.registry("a")]);
}

#[tokio::test]
async fn the_same_endpoint_twice_is_refused_until_the_first_is_gone() {
    let world = World::start().await;
    let service = Service::serve(&world.service("a"), []);
    let first = Registered::serve(&world.registry("a"), Plugin::new(NAME, &service.path));
    first.wait_notified(1).await;
    let second = Registered::serve(&world.registry("b"), Plugin::new(NAME, &service.path));
    let (registered, text) = second.wait_notified(1).await.remove(0);
    assert!(!registered);
    assert!(
        text.starts_with("RegisterPlugin error -- plugin registration failed with err: endpoint "),
        "{text}"
    );
    assert!(
        text.contains("already registered for SLM driver plugin"),
        "{text}"
    );
    first.remove();
    world
        .kubelet
        .wait_for(
            |record| {
                record
                    .attempts()
                    .iter()
                    .any(|a| a.socket == second.path && a.error.is_none())
            },
            LIMIT,
        )
        .await
        .unwrap();
    assert_eq!(endpoints(&world.kubelet), std::slice::from_ref(&service.path));
}

#[tokio::test]
async fn a_removed_socket_deregisters_and_a_renamed_one_does_not() {
    let world = World::start().await;
    let (a, b) = (
        Service::serve(&world.service("a"), []),
        Service::serve(&world.service("b"), []),
    );
    let front_a = Registered::serve(&world.registry("a"), Plugin::new(NAME, &a.path));
    front_a.wait_notified(1).await;
    let front_b = Registered::serve(&world.registry("b"), Plugin::new(NAME, &b.path));
    front_b.wait_notified(1).await;
    assert_eq!(endpoints(&world.kubelet), [a.path.clone(), b.path.clone()]);
    fs::rename(&front_a.path, world.registry(".a")).unwrap();
    front_b.remove();
    let gone = Entry::Deregistered {
        driver: NAME.into(),
        endpoint: b.path.clone(),
    };
    world
        .kubelet
        .wait_for(|record| record.entries().contains(&gone), LIMIT)
        .await
        .unwrap();
    world.ticks(3).await;
    assert_eq!(endpoints(&world.kubelet), std::slice::from_ref(&a.path));
}

#[tokio::test]
async fn a_socket_made_anew_or_renamed_over_is_registered_anew() {
    let world = World::start().await;
    let (a, b, c) = (world.service("a"), world.service("b"), world.service("c"));
    let first = Registered::serve(&world.registry("x"), Plugin::new(NAME, &a));
    first.wait_notified(1).await;
    first.remove();
    drop(first);
    let second = Registered::serve(&world.registry("x"), Plugin::new(NAME, &b));
    second.wait_notified(1).await;
    assert_eq!(endpoints(&world.kubelet), std::slice::from_ref(&b));
    // Serving binds a hidden name and renames it over the existing path.
    let third = Registered::serve(&world.registry("x"), Plugin::new(NAME, &c));
    third.wait_notified(1).await;
    assert_eq!(endpoints(&world.kubelet), [c]);
}

#[tokio::test]
async fn hidden_names_and_other_files_are_ignored() {
    let world = World::start().await;
    fs::write(world.registry("file"), "").unwrap();
    let hidden = tokio::net::UnixListener::bind(world.registry(".hidden")).unwrap();
    world.ticks(5).await;
    assert!(world.kubelet.attempts().is_empty());
    drop(hidden);
}

#[tokio::test]
async fn sockets_in_folders_below_are_found() {
    let world = World::start().await;
    fs::create_dir_all(world.registry("sub/deep")).unwrap();
    let front = Registered::serve(
        &world.registry("sub/deep/a"),
        Plugin::new(NAME, &world.service("a")),
    );
    assert!(front.wait_notified(1).await[0].0);
}

#[tokio::test]
async fn a_slow_answer_to_get_info_gets_no_notification() {
    let world = World::with(|options| options.timing.info = Duration::from_millis(50)).await;
    let plugin = Plugin {
        info_delay: Duration::from_secs(60),
        ..Plugin::new(NAME, &world.service("a"))
    };
    let front = Registered::serve(&world.registry("a"), plugin);
    let tried = attempt(&world.kubelet, 2).await;
    assert_eq!(tried.notified, None);
    assert!(
        tried.error.unwrap().contains("failed to get plugin info"),
        "GetInfo was too late"
    );
    assert!(front.notified().is_empty());
}

#[tokio::test]
async fn a_dead_socket_costs_the_dial_timeout_and_gets_no_notification() {
    let world = World::with(|options| options.timing.dial = Duration::from_millis(200)).await;
    let front = Registered::serve(&world.registry("a"), Plugin::new(NAME, &world.service("a")));
    let path = front.path.clone();
    front.wait_notified(1).await;
    front.remove();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let begun = Instant::now();
    let tried = attempt(&world.kubelet, 2).await;
    assert!(
        begun.elapsed() >= Duration::from_millis(150),
        "it gave up after {:?}",
        begun.elapsed()
    );
    assert!(tried.error.unwrap().contains("failed to dial"), "no listener");
    assert_eq!(tried.notified, None);
}

#[tokio::test]
async fn a_notification_that_is_not_taken_undoes_the_registration() {
    let world = World::with(|options| options.timing.notify = Duration::from_millis(50)).await;
    let failing = Plugin {
        notify_fails: true,
        ..Plugin::new("fails.example", &world.service("a"))
    };
    let late = Plugin {
        notify_delay: Duration::from_secs(60),
        ..Plugin::new("late.example", &world.service("b"))
    };
    let failing = Registered::serve(&world.registry("a"), failing);
    let late = Registered::serve(&world.registry("b"), late);
    // Each time it is notified of the registration, which is then undone.
    assert!(
        failing
            .wait_notified(2)
            .await
            .iter()
            .all(|(registered, _)| *registered)
    );
    assert!(
        late.wait_notified(2)
            .await
            .iter()
            .all(|(registered, _)| *registered)
    );
    for driver in ["fails.example", "late.example"] {
        let undone =
            |entry: &Entry| matches!(entry, Entry::Deregistered { driver: name, .. } if name == driver);
        world
            .kubelet
            .wait_for(|record| record.entries().iter().any(undone), LIMIT)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_restart_registers_everything_again() {
    let world = World::start().await;
    let front = Registered::serve(&world.registry("a"), Plugin::new(NAME, &world.service("a")));
    front.wait_notified(1).await;
    world.kubelet.restart().await.unwrap();
    assert!(
        front
            .wait_notified(2)
            .await
            .iter()
            .all(|(registered, _)| *registered)
    );
}

/// The pause belongs to the path and survives a recreated socket; another path is tried at once.
#[tokio::test(start_paused = true)]
async fn failures_are_paced_by_path() {
    let world = World::with(|options| {
        options.timing = scupper_simulator::kubelet::Timing::default();
        options.gate = false;
    })
    .await;
    let mut front = Registered::serve(&world.registry("a"), Plugin::new(NAME, &world.service("a")));
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(75) {
        step(Duration::from_millis(250)).await;
        if begun.elapsed().as_secs() == 8 {
            front.remove();
            drop(front);
            front = Registered::serve(&world.registry("a"), Plugin::new(NAME, &world.service("a")));
        }
    }
    let timed = world.kubelet.record().timed();
    let moments: Vec<Instant> = timed
        .iter()
        .filter(|(_, entry)| matches!(entry, Entry::Attempted(_)))
        .map(|(at, _)| *at)
        .collect();
    let first = moments[0];
    let seconds: Vec<u64> = moments
        .iter()
        .map(|at| at.duration_since(first).as_secs_f64().round() as u64)
        .collect();
    // As observed on a real kubelet, with a second or two more where this machine was slow to answer. An attempt is
    // recorded when it ends, up to a step or two of the clock late: hence the rounding.
    let expected = [0..=0, 1..=2, 3..=4, 5..=7, 10..=13, 19..=22, 35..=40];
    assert!(seconds.len() >= expected.len(), "{seconds:?}");
    assert!(
        expected
            .iter()
            .zip(&seconds)
            .all(|(expected, is)| expected.contains(is)),
        "{seconds:?}"
    );
    let other = Registered::serve(&world.registry("b"), Plugin::new(NAME, &world.service("a")));
    for _ in 0..8 {
        step(Duration::from_millis(250)).await;
    }
    assert!(!other.notified().is_empty(), "another path has no pause");
    drop(front);
}
