//! A node with a kubelet and a driver, for commands that delegate.

use std::time::{Duration, Instant};

use scupper_simulator::kubelet::{Kubelet, KubeletHandle, Options, Timing};

use crate::limit::LIMIT;
use crate::rig::{Rig, Running};

pub(crate) const DRIVER: &str = "drain.test";
pub(crate) const EVENTS: &str = "lifecycleevents.lifecycle.k8s.io";
const TRANSITIONS: &str = "lifecycletransitions.lifecycle.k8s.io";

/// A kubelet and a driver of worker-1.
pub(crate) struct Agent {
    pub(crate) driver: Running,
    kubelet: KubeletHandle,
    root: tempfile::TempDir,
}

impl Agent {
    /// `slm`: the kubelet claims LifecycleEvents; otherwise the driver does.
    pub(crate) fn start(rig: &Rig, slm: bool) -> Self {
        Self::with(rig, slm, &[])
    }

    /// The same with more of the driver's flags.
    pub(crate) fn with(rig: &Rig, slm: bool, more: &[&str]) -> Self {
        let root = tempfile::Builder::new().prefix("scupper-").tempdir().unwrap();
        let kubelet = rig.inside(|| {
            let client = kube::Client::try_from(rig.api.client_config()).unwrap();
            let timing = Timing {
                registry_tick: Duration::from_millis(10),
                ..Timing::faster(100)
            };
            let options = Options {
                timing,
                gate: slm,
                ..Options::new(client, "worker-1", root.path())
            };
            Kubelet::start(options).unwrap()
        });
        let driver = run(rig, &root, more);
        Self {
            driver,
            kubelet,
            root,
        }
    }

    /// Removes the driver's pod; the kubelet stays.
    pub(crate) fn without_driver(self) -> (KubeletHandle, tempfile::TempDir) {
        self.driver.kill();
        (self.kubelet, self.root)
    }
}

fn run(rig: &Rig, root: &tempfile::TempDir, more: &[&str]) -> Running {
    let folder = root.path().to_str().unwrap();
    let args = [
        "kubelet-plugin",
        "--driver-name",
        DRIVER,
        "--node-name",
        "worker-1",
        "--kubelet-root",
        folder,
    ];
    let driver = rig.start(&[&args[..], more].concat());
    until("the transitions are published", || {
        rig.objects(TRANSITIONS).len() == 2
    });
    driver
}

#[track_caller]
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LIMIT, "{what}: in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The command for worker-1 and its driver.
pub(crate) fn asks<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[command, "worker-1", "--driver-name", DRIVER][..], more].concat()
}
