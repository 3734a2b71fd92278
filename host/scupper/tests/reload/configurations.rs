//! The configuration also has a last good version: a driver starts with it while the file is broken.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scupper_common::clock::Clock;
use scupper_policy_reload::{
    Catalogue, ConfigText, DesiredPolicies, PolicySource, ReloadNotice, ReloadOptions, StartError,
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
    assert_eq!(driver.answers().await, "1 one");
    drop(driver);
    folder.write_config("note ?\n");
    assert_eq!(folder.start().await.unwrap().answers().await, "1 one");
}

#[tokio::test]
async fn the_saved_configuration_is_private_and_not_used_if_modified() {
    let folder = Folder::new("note one\n");
    let driver = folder.start().await.unwrap();
    folder.write_config("note two\n");
    driver.rescan().await;
    drop(driver);
    let [kept] = &folder.kept("yaml")[..] else {
        panic!("one is kept: {:?}", folder.kept("yaml"))
    };
    assert_eq!(fs::read_to_string(kept).unwrap(), "note two\n");
    assert_eq!(fs::metadata(kept).unwrap().permissions().mode() & 0o7777, 0o400);
    folder.write_config("note ?\n");
    fs::remove_file(kept).unwrap();
    fs::write(kept, "note three\n").unwrap();
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
