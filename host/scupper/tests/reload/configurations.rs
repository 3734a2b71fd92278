//! The configuration also has a last good version: a driver starts with it while the file is broken.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scupper_common::clock::Clock;
use scupper_policy_reload::{
    Catalogue, ConfigText, DesiredPolicies, PolicySource, ReloadNotice, ReloadOptions, SlotState, StartError,
    has_saved_configuration,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::rig::{LIMIT, bytes, named, replace, start, step, still};

/// A folder with a module and a simple configuration: `KEY VALUE` for the policy `p`, `?` is broken.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(words: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        replace(&folder.path("p.wasm"), &bytes("revision_1"));
        folder.write_config(words);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write_config(&self, words: &str) {
        replace(&self.path("conf"), words.as_bytes());
    }

    fn state(&self) -> PathBuf {
        self.path("state")
    }

    async fn start(&self) -> Result<Driver, StartError> {
        let file = self.path("conf");
        let read = file.clone();
        let source = PolicySource {
            files: vec![file.clone()],
            read: Arc::new(move || {
                let text = fs::read_to_string(&read).map_err(|error| error.to_string())?;
                wanted(&read, &text)
            }),
            parse_saved: Arc::new(|config| wanted(&config.file, &config.text)),
        };
        let options = ReloadOptions {
            state: Some(self.state()),
            ..still()
        };
        let (catalogue, reloader, notices) = start(source, options, Clock::System).await?;
        let driver = Driver {
            catalogue,
            notices,
            task: tokio::spawn(reloader.run()),
        };
        // Saves everything that is pending.
        driver.rescan().await;
        Ok(driver)
    }

    /// The saved files with this ending.
    fn kept(&self, ending: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(self.state())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        files
            .filter(|file| file.extension().is_some_and(|it| it == ending))
            .collect()
    }
}

fn wanted(file: &Path, text: &str) -> Result<DesiredPolicies, String> {
    if text.contains('?') {
        return Err(format!(
            "{}: one problem\n{}: another",
            file.display(),
            file.display()
        ));
    }
    let words: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    Ok(DesiredPolicies {
        policies: vec![named("p", &file.with_file_name("p.wasm"), &words)],
        config_text: Some(ConfigText {
            file: file.to_owned(),
            text: Arc::from(text),
        }),
    })
}

struct Driver {
    catalogue: Arc<Catalogue>,
    notices: mpsc::UnboundedReceiver<ReloadNotice>,
    task: JoinHandle<()>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Driver {
    async fn rescan(&self) {
        let looked = tokio::time::timeout(LIMIT, self.catalogue.rescan()).await;
        assert!(looked.unwrap(), "no scan runs");
    }

    fn reported(&mut self) -> Vec<ReloadNotice> {
        std::iter::from_fn(|| self.notices.try_recv().ok()).collect()
    }

    async fn answers(&self) -> String {
        step(&self.catalogue.session()).await
    }

    fn config_text(&self) -> String {
        let said = self.catalogue.config_text();
        said.as_ref()
            .as_ref()
            .map_or_else(String::new, |said| said.text.to_string())
    }
}

#[tokio::test]
async fn the_last_good_configuration_replaces_a_broken_one_until_it_is_fixed() {
    let folder = Folder::new("note one\n");
    drop(folder.start().await.unwrap());
    folder.write_config("note ?\n");
    let mut driver = folder.start().await.unwrap();
    assert_eq!(
        (driver.answers().await, driver.config_text()),
        ("1 one".to_owned(), "note one\n".to_owned())
    );
    let reported = driver.reported();
    let degraded: Vec<String> = reported
        .iter()
        .filter(|notice| matches!(notice, ReloadNotice::Degraded { name, .. } if name.is_empty()))
        .map(ToString::to_string)
        .collect();
    let [degraded] = &degraded[..] else {
        panic!("{reported:?}")
    };
    assert!(
        degraded.contains("one problem") && degraded.contains("another"),
        "{degraded}"
    );
    driver.rescan().await;
    assert_eq!(driver.reported(), [], "the same is reported once");
    folder.write_config("note two\n");
    driver.rescan().await;
    assert_eq!(
        (driver.answers().await, driver.config_text()),
        ("1 two".to_owned(), "note two\n".to_owned())
    );
    drop(driver);
    folder.write_config("note ?\n");
    assert_eq!(
        folder.start().await.unwrap().answers().await,
        "1 two",
        "and that one is kept now"
    );
}

#[tokio::test]
async fn a_configuration_that_a_policy_refuses_is_broken_and_one_with_another_pin_is_not() {
    let folder = Folder::new("note one\n");
    drop(folder.start().await.unwrap());
    folder.write_config("refuse yes\n");
    let driver = folder.start().await.unwrap();
    assert_eq!(driver.answers().await, "1 one");
    drop(driver);
    assert!(
        has_saved_configuration(&folder.state()),
        "what was refused takes no place"
    );
    // The module is at fault, not the configuration: the last good configuration must not hide that.
    folder.write_config("note two\n");
    fs::remove_file(folder.path("p.wasm")).unwrap();
    for module in folder.kept("wasm") {
        fs::remove_file(module).unwrap();
    }
    assert!(matches!(folder.start().await, Err(StartError::Policy(_))));
}

#[tokio::test]
async fn only_a_completely_good_configuration_is_saved() {
    let folder = Folder::new("note one\n");
    let driver = folder.start().await.unwrap();
    folder.write_config("refuse yes\n");
    driver.rescan().await;
    assert_eq!(
        (driver.answers().await, driver.config_text()),
        ("1 one".to_owned(), "note one\n".to_owned()),
        "new drains use what the refused file says besides"
    );
    drop(driver);
    folder.write_config("note ?\n");
    assert_eq!(folder.start().await.unwrap().answers().await, "1 one");
}

#[tokio::test]
async fn a_rolled_back_policy_does_not_hold_up_the_rest_of_the_file() {
    let folder = Folder::new("note one\n");
    let driver = folder.start().await.unwrap();
    folder.write_config("note two\n");
    driver.rescan().await;
    driver.catalogue.roll_back("p").await.unwrap();
    folder.write_config("note two\nmore\n");
    driver.rescan().await;
    assert_eq!(
        (driver.answers().await, driver.config_text()),
        ("1 one".to_owned(), "note two\nmore\n".to_owned())
    );
}

#[tokio::test]
async fn a_revision_returns_with_the_settings_that_it_had_after_a_restart() {
    let folder = Folder::new("note one\n");
    let driver = folder.start().await.unwrap();
    folder.write_config("note two\n");
    driver.rescan().await;
    assert_eq!(driver.answers().await, "1 two");
    drop(driver);
    let driver = folder.start().await.unwrap();
    driver.catalogue.roll_back("p").await.unwrap();
    assert_eq!(driver.answers().await, "1 one");
    driver.rescan().await;
    drop(driver);
    let driver = folder.start().await.unwrap();
    assert_eq!(driver.answers().await, "1 one", "the rollback is forgotten");
    assert_eq!(driver.catalogue.slots()[0].state, SlotState::RolledBack);
}

/// A driver before this one kept only the hash of the settings.
#[tokio::test]
async fn a_rollback_whose_settings_are_not_known_does_not_prevent_the_start() {
    let folder = Folder::new("note one\n");
    let driver = folder.start().await.unwrap();
    folder.write_config("note two\n");
    driver.rescan().await;
    driver.catalogue.roll_back("p").await.unwrap();
    driver.rescan().await;
    drop(driver);
    let index = folder.state().join("last-good.json");
    let mut saved: serde_json::Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
    assert!(saved.as_object_mut().unwrap().remove("texts").is_some());
    fs::write(&index, saved.to_string()).unwrap();
    for start in ["the first", "the second"] {
        let mut driver = folder.start().await.unwrap();
        assert_eq!(driver.answers().await, "1 two", "{start}");
        let slot = driver.catalogue.slots()[0].clone();
        assert_eq!(slot.state, SlotState::Degraded, "{start}");
        let reason = slot.problem.unwrap().reason;
        assert!(reason.contains("settings"), "{reason}");
        let reported = driver.reported();
        let degraded = |notice: &&ReloadNotice| matches!(notice, ReloadNotice::Degraded { .. });
        assert_eq!(reported.iter().filter(degraded).count(), 1, "{reported:?}");
    }
    for module in folder.kept("wasm") {
        fs::remove_file(module).unwrap();
    }
    assert!(matches!(folder.start().await, Err(StartError::RolledBack(_))));
}

#[tokio::test]
async fn the_saved_configuration_is_private_and_not_used_if_modified() {
    let folder = Folder::new("note one\n");
    let driver = folder.start().await.unwrap();
    folder.write_config("note two\n");
    driver.rescan().await;
    drop(driver);
    let kept = folder.kept("yaml");
    let mut texts: Vec<_> = kept
        .iter()
        .map(|kept| fs::read_to_string(kept).unwrap())
        .collect();
    texts.sort();
    assert_eq!(
        texts,
        ["note one\n", "note two\n"],
        "of the revision before, and of this one"
    );
    folder.write_config("note ?\n");
    for kept in &kept {
        assert_eq!(fs::metadata(kept).unwrap().permissions().mode() & 0o7777, 0o400);
        fs::remove_file(kept).unwrap();
        fs::write(kept, "note three\n").unwrap();
    }
    assert!(!has_saved_configuration(&folder.state()));
    assert!(matches!(folder.start().await, Err(StartError::Configuration(_))));
}

#[tokio::test]
async fn without_a_saved_configuration_the_driver_reports_the_problems() {
    let folder = Folder::new("note ?\n");
    assert!(!has_saved_configuration(&folder.state()));
    assert!(!folder.state().exists(), "asking makes no directory");
    let Err(StartError::Configuration(reason)) = folder.start().await else {
        panic!("it started")
    };
    assert!(
        reason.contains("one problem") && reason.contains("another"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_start_whose_scan_panics_says_so() {
    let source = PolicySource::of(Vec::new(), || panic!("ordered by the test"));
    let Err(error) = start(source, still(), Clock::System).await else {
        panic!("it started")
    };
    assert!(error.to_string().contains("panicked"), "{error}");
}
