//! The configuration file changes under a running driver, as a plain file and in a ConfigMap's volume, and the node and
//! the metrics report it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::driver::Driver;
use crate::objects::{closed_budget, unmanaged};
use crate::policies;
use crate::rig::{DRIVER, LIMIT, NODE, Rig, UNCORDON};
use crate::scrape::scrape;

const HEAD: &str = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\n";
const BROKEN: &str = "policys: []\ndrain: {sla: soon}\n";
const PROBLEMS: [&str; 2] = ["did you mean policies?", "drain.sla: must be a duration"];
const FORCE: &str = "drain: {force: true}\n";

/// The place of the configuration.
enum Place {
    File,
    /// As a kubelet does: a folder for each generation, and one symbolic link that is swapped.
    Volume,
}

struct Mounted {
    dir: tempfile::TempDir,
    place: Place,
    generation: usize,
}

impl Mounted {
    fn new(place: Place, rest: &str) -> Self {
        let mut mounted = Self {
            dir: tempfile::tempdir().unwrap(),
            place,
            generation: 0,
        };
        if matches!(mounted.place, Place::Volume) {
            symlink("..data/scupper.yaml", mounted.file()).unwrap();
        }
        let built = policies::argument("priority");
        let (_, built) = built.split_once('=').unwrap();
        fs::copy(built, mounted.module()).unwrap();
        mounted.write_config(rest);
        mounted
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self) -> PathBuf {
        self.path("scupper.yaml")
    }

    fn module(&self) -> PathBuf {
        self.path("module.wasm")
    }

    /// SHA-256 of the module, shortened as in the output.
    fn digest(&self) -> String {
        let digest = format!("{:x}", Sha256::digest(fs::read(self.module()).unwrap()));
        digest[..8].to_owned()
    }

    fn write_config(&mut self, rest: &str) {
        self.generation += 1;
        let text = format!("{HEAD}{rest}");
        match self.place {
            Place::File => replace(&self.file(), text.as_bytes()),
            Place::Volume => {
                let name = format!("..2026_{}", self.generation);
                fs::create_dir(self.path(&name)).unwrap();
                fs::write(self.path(&name).join("scupper.yaml"), text).unwrap();
                let old = fs::read_link(self.path("..data"));
                symlink(&name, self.path("..data_tmp")).unwrap();
                fs::rename(self.path("..data_tmp"), self.path("..data")).unwrap();
                if let Ok(old) = old {
                    fs::remove_dir_all(self.dir.path().join(old)).unwrap();
                }
            }
        }
    }

    fn arguments(&self) -> Vec<String> {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        [
            "--config",
            &text(self.file()),
            "--state-dir",
            &text(self.path("state")),
            "--metrics-address",
            "0",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    async fn driver(&self, rig: &Rig) -> Driver {
        let arguments = self.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        rig.driver(&arguments).await
    }
}

/// Replaces a file as careful programs do.
fn replace(file: &Path, bytes: &[u8]) {
    let part = file.with_extension("part");
    fs::write(&part, bytes).unwrap();
    fs::rename(&part, file).unwrap();
}

/// Policies of these names; the relative path begins at the file's own folder.
fn loads(names: &[&str]) -> String {
    let lines = names
        .iter()
        .map(|name| format!("- {{name: {name}, module: module.wasm}}\n"));
    format!("policies:\n{}", lines.collect::<String>())
}

/// The node's report about its policies.
fn annotation(rig: &Rig) -> String {
    let node = rig.node();
    let value = node["metadata"]["annotations"]["scupper.dev/policies"].as_str();
    value.unwrap_or_default().to_owned()
}

/// The names in it, in their order.
fn names(rig: &Rig) -> Vec<String> {
    let annotation = annotation(rig);
    let names = annotation.split("),").filter_map(|part| part.split_once('='));
    names.map(|(name, _)| name.to_owned()).collect()
}

/// The notes of all Events with this reason.
pub(crate) fn notes(rig: &Rig, reason: &str) -> Vec<String> {
    let events = rig.list("events.events.k8s.io");
    let events = events.iter().filter(|event| event["reason"] == reason);
    events
        .map(|event: &Value| event["note"].as_str().unwrap_or_default().to_owned())
        .collect()
}

async fn until_named(rig: &Rig, wanted: &[&str]) {
    rig.until(&format!("the node names {wanted:?}"), || names(rig) == wanted)
        .await;
}

async fn drain(rig: &Rig, event: &str) -> String {
    rig.event(event, DRIVER);
    rig.end_of(event).await
}

/// Each log line would change the watched folder, and so cause another line.
#[tokio::test]
async fn a_log_beside_the_configuration_does_not_feed_itself() {
    let rig = Rig::start().await;
    let mut mounted = Mounted::new(Place::File, &loads(&["first"]));
    let arguments = mounted.arguments();
    let everything = ["--log", "trace"].into_iter();
    let arguments: Vec<&str> = everything.chain(arguments.iter().map(String::as_str)).collect();
    let driver = rig.spawn_into(mounted.dir.path(), &arguments);
    until_named(&rig, &["first"]).await;
    mounted.write_config(&loads(&["second"]));
    until_named(&rig, &["second"]).await;
    let log = driver.log();
    assert!(log.contains(" TRACE "), "not everything is logged");
    let of_watching: Vec<&str> = log.lines().filter(|line| line.contains(" notify::")).collect();
    assert!(
        of_watching.is_empty(),
        "{} lines: {}",
        of_watching.len(),
        of_watching[0]
    );
}

async fn changes(place: Place) {
    let rig = Rig::start().await;
    rig.apply(unmanaged("lone"));
    let mut mounted = Mounted::new(place, &loads(&["first"]));
    let driver = mounted.driver(&rig).await;
    until_named(&rig, &["first"]).await;
    assert_eq!(drain(&rig, "one").await, "Failed", "force is not set");
    // Broken: everything stays, and all problems are reported once.
    mounted.write_config(BROKEN);
    rig.until("the broken file is reported", || {
        !notes(&rig, "PolicyRejected").is_empty()
    })
    .await;
    let reported = notes(&rig, "PolicyRejected").concat();
    for problem in PROBLEMS {
        assert!(reported.contains(problem), "{reported}");
    }
    assert_eq!(names(&rig), ["first"]);
    // Fixed, with one policy more and other drain settings: the next drain uses them.
    mounted.write_config(&format!("{}{FORCE}", loads(&["first", "second"])));
    until_named(&rig, &["first", "second"]).await;
    assert_eq!(notes(&rig, "PolicyRejected").len(), 1, "it is reported once");
    assert_eq!(drain(&rig, "two").await, "Succeeded");
    assert!(rig.pod_names().is_empty());
    // Removed, and added again.
    mounted.write_config(&loads(&["second"]));
    until_named(&rig, &["second"]).await;
    rig.until("it is reported", || rig.reported("PolicyRemoved"))
        .await;
    mounted.write_config(&loads(&["first", "second"]));
    until_named(&rig, &["first", "second"]).await;
    rig.event("back", UNCORDON);
    assert_eq!(rig.end_of("back").await, "Succeeded");
    rig.apply(unmanaged("lone"));
    assert_eq!(drain(&rig, "three").await, "Failed", "force is no longer set");
    let counted = scrape(&driver, "GET", "/metrics");
    let rejected = r#"scupper_policy_reloads_total{policy="",result="rejected",reason="configuration"} 1"#;
    assert!(counted.contains(rejected), "{counted}");
}

#[tokio::test]
async fn the_file_is_changed_under_a_running_driver() {
    changes(Place::File).await;
}

#[tokio::test]
async fn a_config_maps_volume_is_swapped_under_a_running_driver() {
    changes(Place::Volume).await;
}

#[tokio::test]
async fn the_node_reports_the_active_and_the_refused_revision_once() {
    let rig = Rig::start().await;
    let mounted = Mounted::new(Place::File, &loads(&["first"]));
    let good = mounted.digest();
    let driver = mounted.driver(&rig).await;
    until_named(&rig, &["first"]).await;
    let active = annotation(&rig);
    assert!(active.starts_with(&format!("first=sha256:{good}(v")), "{active}");
    assert!(active.ends_with(",gen 1)"), "{active}");
    rig.until("it is reported", || !notes(&rig, "PolicyActivated").is_empty())
        .await;
    let activated = notes(&rig, "PolicyActivated");
    assert!(
        activated.len() == 1 && activated[0].contains(&good),
        "{activated:?}"
    );
    // The same bad bytes, again and again.
    let broken = b"\0asm\x0d\0\x01\0 and no more";
    for _ in 0..3 {
        replace(&mounted.module(), broken);
        rig.until("it is reported", || !notes(&rig, "PolicyRejected").is_empty())
            .await;
    }
    let bad = mounted.digest();
    // A second bad one comes after the first one was handled.
    replace(&mounted.module(), b"nothing of ours");
    let other = mounted.digest();
    rig.until("the other is reported", || {
        notes(&rig, "PolicyRejected")
            .iter()
            .any(|note| note.contains(&other))
    })
    .await;
    let rejected = notes(&rig, "PolicyRejected");
    assert_eq!(rejected.len(), 2, "{rejected:?}");
    let named = |digest: &str| rejected.iter().filter(|note| note.contains(digest)).count();
    assert_eq!((named(&bad), named(&other)), (1, 1), "{rejected:?}");
    assert_eq!(annotation(&rig), active, "the annotation names what is active");
    let counted = scrape(&driver, "GET", "/metrics");
    let scanned = r#"scupper_policy_reloads_total{policy="first",result="rejected",reason="scan"} 2"#;
    assert!(counted.contains(scanned), "{counted}");
}

#[tokio::test]
async fn a_driver_starts_on_the_last_good_configuration_while_the_file_is_broken() {
    let rig = Rig::start().await;
    let mut mounted = Mounted::new(Place::File, &format!("{}{FORCE}", loads(&["first"])));
    let mut driver = mounted.driver(&rig).await;
    until_named(&rig, &["first"]).await;
    let kept = || {
        let files = fs::read_dir(mounted.path("state")).unwrap();
        files
            .filter(|file| {
                file.as_ref()
                    .unwrap()
                    .path()
                    .extension()
                    .is_some_and(|it| it == "yaml")
            })
            .count()
    };
    rig.until("it is kept", || {
        kept() == 1 && mounted.path("state/last-good.json").exists()
    })
    .await;
    driver.kill();
    mounted.write_config(BROKEN);
    let driver = mounted.driver(&rig).await;
    rig.until("it is reported", || !notes(&rig, "PolicyDegraded").is_empty())
        .await;
    let reported = notes(&rig, "PolicyDegraded").concat();
    let log = driver.log();
    for problem in PROBLEMS {
        assert!(reported.contains(problem), "{reported}");
        assert!(log.contains(problem), "{log}");
    }
    assert!(log.contains("ERROR"), "{log}");
    let counted = scrape(&driver, "GET", "/metrics");
    let degraded = r#"scupper_policy_reloads_total{policy="",result="degraded",reason=""} 1"#;
    assert!(counted.contains(degraded), "{counted}");
    assert_eq!(names(&rig), ["first"]);
    rig.apply(unmanaged("lone"));
    assert_eq!(
        drain(&rig, "one").await,
        "Succeeded",
        "the last good one said force"
    );
    mounted.write_config(&loads(&["first", "second"]));
    until_named(&rig, &["first", "second"]).await;
    assert_eq!(notes(&rig, "PolicyDegraded").len(), 1);
}

#[tokio::test]
async fn a_cordon_has_the_time_limit_of_the_last_good_configuration_while_the_file_is_broken() {
    let rig = Rig::start().await;
    let limited = format!("{}drain: {{sla: 1h}}\n", loads(&["first"]));
    let mut mounted = Mounted::new(Place::File, &limited);
    let mut driver = mounted.driver(&rig).await;
    rig.until("it is kept", || mounted.path("state/last-good.json").exists())
        .await;
    driver.kill();
    mounted.write_config(BROKEN);
    let _driver = mounted.driver(&rig).await;
    rig.pods(&["held"]);
    rig.apply(closed_budget());
    let cordon = |node: &mut Value| {
        node["metadata"]["labels"] = json!({"scupper.dev/drain-on-cordon": "true"});
        node["spec"] = json!({"unschedulable": true});
    };
    rig.api.store().edit("nodes", "", NODE, cordon).unwrap();
    let mark = || rig.node()["metadata"]["annotations"]["scupper.dev/drain"].clone();
    rig.until("the drain is on the node", || mark().is_string()).await;
    let mark: Value = serde_json::from_str(mark().as_str().unwrap()).unwrap();
    assert!(mark["deadline"].is_u64(), "no deadline: {mark}");
}

#[tokio::test]
async fn without_a_last_good_configuration_a_broken_one_is_refused() {
    let rig = Rig::start().await;
    let mounted = Mounted::new(Place::File, BROKEN);
    let arguments = mounted.arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut driver = rig.spawn(&arguments);
    assert_eq!(driver.ended(LIMIT).await.code(), Some(3));
    let log = driver.log();
    for problem in PROBLEMS {
        assert!(log.contains(problem), "{log}");
    }
    assert!(!mounted.path("state").exists(), "nothing is made for it");
}
