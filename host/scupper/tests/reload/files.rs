//! Files change in every way that editors, kubelets and careless scripts know, and the driver notices each change.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use scupper_common::clock::Clock;
use scupper_policy_reload::{Catalogue, PolicySource, ReloadNotice, ReloadOptions};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::rig::{LIMIT, Rig, bytes, named, polling, replace, start, step, still, watching};

#[tokio::test]
async fn replaced_by_a_rename() {
    for options in [watching(), polling()] {
        let mut rig = Rig::of("revision_1", options).await;
        for (guest, version) in [("revision_2", "2"), ("revision_3", "3"), ("revision_1", "1")] {
            rig.put(guest);
            rig.until_active(version).await;
        }
    }
}

#[tokio::test]
async fn written_in_place() {
    let mut rig = Rig::of("revision_1", watching()).await;
    fs::write(rig.file(), bytes("revision_2")).unwrap();
    rig.until_active("2").await;
}

#[tokio::test]
async fn half_written_and_finished_later() {
    let mut rig = Rig::of("revision_1", watching()).await;
    rig.until_active("1").await;
    let whole = bytes("revision_2");
    fs::write(rig.file(), &whole[..whole.len() / 2]).unwrap();
    let half = rig.next().await;
    assert!(matches!(half, ReloadNotice::Rejected { .. }), "{half:?}");
    assert_eq!(step(&rig.catalogue.session()).await, "1");
    fs::write(rig.file(), &whole).unwrap();
    rig.until_active("2").await;
}

#[tokio::test]
async fn deleted_and_back_with_its_directory() {
    let mut rig = Rig::of("revision_1", watching()).await;
    rig.until_active("1").await;
    let dir = rig.dir.path().join("sub");
    let file = dir.join("p.wasm");
    fs::create_dir(&dir).unwrap();
    replace(&file, &bytes("revision_1"));
    rig.set_specs(Ok(vec![named("p", &file, &[("note", "moved")])]));
    rig.rescan().await;
    rig.until_active("1").await;
    for (guest, version) in [("revision_2", "2"), ("revision_3", "3")] {
        fs::remove_dir_all(&dir).unwrap();
        let gone = rig.next().await;
        assert!(gone.to_string().contains("cannot be read"), "{gone}");
        assert!(!step(&rig.catalogue.session()).await.is_empty());
        fs::create_dir(&dir).unwrap();
        replace(&file, &bytes(guest));
        rig.until_active(version).await;
    }
}

/// A ConfigMap volume as a kubelet makes it: a directory with a time for a name, a link `..data` to it, and a link for
/// each key.
struct Volume {
    dir: PathBuf,
    number: u32,
}

impl Volume {
    fn new(dir: &Path, keys: &[(&str, &[u8])]) -> Self {
        let mut volume = Self {
            dir: dir.to_owned(),
            number: 0,
        };
        volume.update(keys);
        for (key, _) in keys {
            symlink(format!("..data/{key}"), dir.join(key)).unwrap();
        }
        volume
    }

    /// Rewrites all keys, swaps the link, deletes the old directory.
    fn update(&mut self, keys: &[(&str, &[u8])]) {
        self.number += 1;
        let name = format!("..2026_11_21_12_00_00.{}", self.number);
        let fresh = self.dir.join(&name);
        fs::create_dir(&fresh).unwrap();
        for (key, value) in keys {
            fs::write(fresh.join(key), value).unwrap();
        }
        let old = fs::read_link(self.dir.join("..data"));
        symlink(&name, self.dir.join("..data_tmp")).unwrap();
        fs::rename(self.dir.join("..data_tmp"), self.dir.join("..data")).unwrap();
        if let Ok(old) = old {
            fs::remove_dir_all(self.dir.join(old)).unwrap();
        }
    }
}

/// The configuration is a file of the same volume: one line, the value of `note`.
fn source(dir: &Path) -> PolicySource {
    let (note, module) = (dir.join("note"), dir.join("p.wasm"));
    PolicySource::of(vec![note.clone()], move || {
        let note = fs::read_to_string(&note).map_err(|error| error.to_string())?;
        Ok(vec![named("p", &module, &[("note", note.as_str())])])
    })
}

struct Mounted {
    volume: Volume,
    catalogue: Arc<Catalogue>,
    notices: mpsc::UnboundedReceiver<ReloadNotice>,
    task: JoinHandle<()>,
    _dir: tempfile::TempDir,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn mounted(options: ReloadOptions) -> Mounted {
    let dir = tempfile::tempdir().unwrap();
    let volume = Volume::new(dir.path(), &[("note", b"1"), ("p.wasm", &bytes("revision_1"))]);
    let (catalogue, reloader, notices) = start(source(dir.path()), options, Clock::System).await.unwrap();
    Mounted {
        volume,
        catalogue,
        notices,
        task: tokio::spawn(reloader.run()),
        _dir: dir,
    }
}

#[tokio::test]
async fn a_volume_is_swapped_again_and_again() {
    let mut mounted = mounted(watching()).await;
    let all = ["1", "2", "3"];
    for version in all.iter().cycle().skip(1).take(12) {
        let module = bytes(&format!("revision_{version}"));
        mounted
            .volume
            .update(&[("note", version.as_bytes()), ("p.wasm", &module)]);
        let wanted = format!("{version} {version}");
        let active = async {
            while step(&mounted.catalogue.session()).await != wanted {
                mounted.notices.recv().await.unwrap();
            }
        };
        tokio::time::timeout(LIMIT, active).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_that_is_swapped_all_the_time_is_never_mixed() {
    let mut mounted = mounted(polling()).await;
    let modules = [bytes("revision_1"), bytes("revision_2")];
    let catalogue = Arc::clone(&mounted.catalogue);
    let asker = tokio::spawn(async move {
        let (mut seen, mut answers) = (std::collections::BTreeSet::new(), 0);
        while seen.len() < 2 || answers < 300 {
            let answer = step(&catalogue.session()).await;
            assert!(answer == "1 1" || answer == "2 2", "mixed: {answer}");
            seen.insert(answer);
            answers += 1;
        }
    });
    let deadline = std::time::Instant::now() + LIMIT;
    let mut turn = 0;
    while !asker.is_finished() {
        assert!(
            std::time::Instant::now() < deadline,
            "only one configuration was ever active"
        );
        turn = 1 - turn;
        let note = if turn == 0 { b"1" } else { b"2" };
        mounted
            .volume
            .update(&[("note", note), ("p.wasm", &modules[turn])]);
        tokio::task::yield_now().await;
    }
    asker.await.unwrap();
}

#[tokio::test]
async fn a_driver_that_starts_while_a_volume_is_swapped_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let modules = [bytes("revision_1"), bytes("revision_2")];
    let first: [(&str, &[u8]); 2] = [("note", b"1"), ("p.wasm", &modules[0])];
    let volume = Mutex::new(Volume::new(dir.path(), &first));
    let quiet = source(dir.path());
    let swapping = move || {
        let wanted = (quiet.read)()?;
        let mut volume = volume.lock().unwrap();
        // Between its two files, and more often than one scan tries.
        if volume.number < 8 {
            let [note, module] = match volume.number % 2 {
                0 => [b"1".as_slice(), &modules[0]],
                _ => [b"2".as_slice(), &modules[1]],
            };
            volume.update(&[("note", note), ("p.wasm", module)]);
        }
        Ok(wanted.policies)
    };
    let swapping = PolicySource::of(vec![dir.path().join("note")], swapping);
    let (catalogue, ..) = start(swapping, still(), Clock::System).await.unwrap();
    let answer = step(&catalogue.session()).await;
    assert!(answer == "1 1" || answer == "2 2", "mixed: {answer}");
}
