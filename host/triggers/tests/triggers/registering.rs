//! Registration with the kubelet, and keeping it.

use std::fs;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use scupper_contract::{PLUGIN_TYPE, PLUGIN_VERSION};
use scupper_triggers::slm::{Registration, SlmError, SlmOptions, TransitionScope};

use crate::fixture::{DRIVER, Ended, Kubelet, Root, SlmTrigger, eventually, still, wait_for_socket};

#[tokio::test]
async fn reports_its_name_and_its_endpoint() {
    let root = Root::new();
    let (mut trigger, kubelet) = SlmTrigger::registered(&root).await;
    let info = &kubelet.info;
    assert_eq!((info.r#type.as_str(), info.name.as_str()), (PLUGIN_TYPE, DRIVER));
    assert_eq!(info.supported_versions, [PLUGIN_VERSION]);
    assert_eq!(
        root.services(),
        [root.path().join("plugins").join(DRIVER).join("one.sock")]
    );
    assert_eq!(info.endpoint, root.services()[0].display().to_string());
    assert_eq!(
        root.registry(),
        [root
            .path()
            .join("plugins_registry")
            .join(format!("{DRIVER}-one-reg.sock"))]
    );
    trigger.registration(&Registration::Registered).await;
}

#[tokio::test]
async fn distinguishes_a_kubelet_without_slm_from_one_that_refuses() {
    let root = Root::new();
    let mut trigger = SlmTrigger::open(root.options("one"), None);
    let mut kubelet = Kubelet::meet(&wait_for_socket(&root).await).await;
    let message = "RegisterPlugin error -- no handler registered for plugin type: SLMPlugin at socket x";
    kubelet.notify(false, message).await;
    trigger
        .registration(&Registration::Unsupported {
            message: message.to_owned(),
        })
        .await;
    let message = "RegisterPlugin error -- plugin validation failed with err: unlucky";
    kubelet.notify(false, message).await;
    trigger
        .registration(&Registration::Refused {
            message: message.to_owned(),
        })
        .await;
    kubelet.notify(true, "").await;
    trigger.registration(&Registration::Registered).await;
}

#[tokio::test]
async fn silence_is_reported_after_thirty_seconds() {
    let root = Root::new();
    let mut trigger = SlmTrigger::open(root.options("one"), None);
    wait_for_socket(&root).await;
    let _stopped = still();
    tokio::time::advance(Duration::from_secs(25)).await;
    eventually("a tick", || {
        (*trigger.registration.borrow() == Registration::Waiting).then_some(())
    })
    .await;
    tokio::time::advance(Duration::from_secs(6)).await;
    trigger.registration(&Registration::Silent).await;
}

#[tokio::test]
async fn a_removed_socket_is_made_again_under_a_new_name() {
    let root = Root::new();
    let (mut trigger, _) = SlmTrigger::registered(&root).await;
    let first = wait_for_socket(&root).await;
    fs::remove_file(&first).unwrap();
    let second = eventually("a new socket", || root.registry().first().cloned()).await;
    assert_ne!(first, second);
    trigger.registration(&Registration::Waiting).await;
    let mut kubelet = Kubelet::meet(&second).await;
    kubelet.notify(true, "").await;
    trigger.registration(&Registration::Registered).await;
}

#[tokio::test]
async fn dead_sockets_are_removed_and_live_and_foreign_ones_are_kept() {
    let root = Root::new();
    let registry = root.path().join("plugins_registry");
    let own = root.path().join("plugins").join(DRIVER);
    fs::create_dir(&own).unwrap();
    let dead = [
        registry.join(format!("{DRIVER}-old-reg.sock")),
        own.join("old.sock"),
    ];
    let foreign = [
        registry.join(format!("{DRIVER}-b-old-reg.sock")),
        registry.join(format!("{DRIVER}.b-old-reg.sock")),
    ];
    for path in dead.iter().chain(&foreign) {
        drop(UnixListener::bind(path).unwrap());
    }
    let file = registry.join(format!("{DRIVER}-note-reg.sock"));
    fs::write(&file, "not a socket").unwrap();
    let alive = registry.join(format!("{DRIVER}-other-reg.sock"));
    let sibling = UnixListener::bind(&alive).unwrap();

    let _door = SlmTrigger::open(root.options("one"), None);
    let ours = registry.join(format!("{DRIVER}-one-reg.sock"));
    eventually("our socket", || ours.exists().then_some(())).await;
    assert!(dead.iter().all(|path| !path.exists()), "dead sockets are removed");
    assert!(
        foreign.iter().all(|path| path.exists()),
        "sockets of other drivers stay"
    );
    assert!(alive.exists() && file.exists());
    drop(sibling);
}

#[tokio::test]
async fn missing_directories_are_waited_for() {
    let root = Root::empty();
    let mut trigger = SlmTrigger::open(root.options("one"), None);
    fs::create_dir(root.path().join("plugins_registry")).unwrap();
    fs::create_dir(root.path().join("plugins")).unwrap();
    Kubelet::meet(&wait_for_socket(&root).await)
        .await
        .notify(true, "")
        .await;
    trigger.registration(&Registration::Registered).await;
}

#[tokio::test(start_paused = true)]
async fn missing_directories_are_named_after_thirty_seconds() {
    let root = Root::empty();
    fs::create_dir(root.path().join("plugins_registry")).unwrap();
    let start = tokio::time::Instant::now();
    let mut trigger = SlmTrigger::open(root.options("one"), None);
    let error = (&mut trigger.task).await.unwrap().unwrap_err();
    assert!(start.elapsed() >= Duration::from_secs(30));
    let Ended::Slm(SlmError::NoDirectory { path }) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(*path, root.path().join("plugins"));
    assert!(error.to_string().contains("--kubelet-root"), "{error}");
    assert!(!root.path().join("plugins").exists(), "never made by us");
}

#[tokio::test]
async fn a_file_in_the_place_of_our_directory_is_named() {
    let root = Root::new();
    fs::write(root.path().join("plugins").join(DRIVER), "in the way").unwrap();
    let error = SlmTrigger::open(root.options("one"), None)
        .end()
        .await
        .unwrap_err();
    let Ended::Slm(SlmError::Listen { path, .. }) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(*path, root.path().join("plugins").join(DRIVER));
}

#[tokio::test]
async fn options_are_checked_before_anything_is_touched() {
    let root = Root::new();
    let long = root.path().join("x".repeat(60));
    let wrong = [
        SlmOptions {
            driver_name: "example.com/drain".to_owned(),
            ..root.options("one")
        },
        SlmOptions {
            driver_name: "x".repeat(41),
            ..root.options("one")
        },
        SlmOptions {
            node_name: String::new(),
            ..root.options("one")
        },
        SlmOptions {
            kubelet_root: long,
            scope: TransitionScope::Node,
            ..root.options("one")
        },
        SlmOptions {
            rotate_after: Duration::from_secs(30 * 60),
            ..root.options("one")
        },
        root.options("with-dash"),
    ];
    for options in wrong {
        let error = SlmTrigger::open(options, None).end().await.unwrap_err();
        assert!(matches!(error, Ended::Slm(SlmError::Options(_))), "{error:?}");
    }
    assert!(root.registry().is_empty() && root.services().is_empty());
}
