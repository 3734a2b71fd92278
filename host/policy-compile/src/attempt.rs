//! Marks a component on disk while it is being compiled, so that the next driver knows which component its predecessor
//! died of.
//!
//! The driver locks the mark while it lives; the kernel releases the lock however the driver dies. An unlocked mark
//! therefore belongs to a dead driver, and its component is not compiled again automatically until something changes: a
//! new pod, a reboot of the machine, another memory limit of the container, another component or engine (the mark's
//! name has both), or an operator who deletes the mark.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cache::CacheError;
use crate::files::private_dir::PrivateDir;

/// The suffix of marks.
const ENDING: &str = ".compiling";
/// Longest mark, in bytes.
const MARK_BYTES: u64 = 1024;

/// A component that is being compiled.
pub(crate) struct Attempt {
    dir: PrivateDir,
    name: String,
    _locked: File,
}

/// The result of marking a component.
pub(crate) enum Marked {
    /// This process has marked it; dropping the attempt removes the mark.
    Begun(Attempt),
    /// Another process has marked it and is compiling it now.
    Elsewhere,
    /// A driver died while compiling it, and nothing has changed since. Holds the path of the mark.
    DiedOf(PathBuf),
}

/// The conditions under which the same failure would happen again.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
struct Mark {
    /// The UID of the driver's pod; empty outside of pods.
    pod: String,
    /// The machine's boot.
    boot: String,
    /// The narrowest memory limit, in bytes.
    memory_limit: Option<u64>,
}

impl Attempt {
    /// Marks a component, by the name of its native code. Blocks.
    pub(crate) fn begin(
        path: &Path,
        key: &str,
        pod: &str,
        memory_limit: Option<u64>,
    ) -> Result<Marked, CacheError> {
        let dir = PrivateDir::open(path).map_err(CacheError::Directory)?;
        let mark = Mark {
            pod: pod.to_owned(),
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
            memory_limit,
        };
        let name = format!("{key}{ENDING}");
        let failed = |source| CacheError::File {
            what: "write the mark",
            name: name.clone(),
            path: path.to_owned(),
            source,
        };
        if let Some(former) = dir.file(&name, MARK_BYTES).map_err(failed)? {
            match former.try_lock() {
                Err(TryLockError::WouldBlock) => return Ok(Marked::Elsewhere),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Ok(()) if Mark::read(&former).as_ref() == Some(&mark) => {
                    return Ok(Marked::DiedOf(path.join(&name)));
                }
                Ok(()) => {}
            }
        }
        let text = serde_json::to_vec(&mark).map_err(|error| failed(error.into()))?;
        let locked = dir.write_locked(&name, text.as_slice()).map_err(failed)?;
        Ok(Marked::Begun(Self {
            dir,
            name,
            _locked: locked,
        }))
    }
}

impl Drop for Attempt {
    /// The driver survived the compilation.
    fn drop(&mut self) {
        if let Err(error) = self.dir.delete(&self.name) {
            let path = self.dir.path().join(&self.name);
            tracing::warn!(target: "scupper::policy", path = %path.display(), %error, "cannot delete the mark of a compilation that has ended; the next driver would take it for the mark of one that killed this driver");
        }
    }
}

impl Mark {
    fn read(mut file: &File) -> Option<Self> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(&mut file, MARK_BYTES), &mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt;

        let private = fs::Permissions::from_mode(0o700);
        tempfile::Builder::new().permissions(private).tempdir().unwrap()
    }

    fn begin(dir: &Path, key: &str, limit: Option<u64>) -> Marked {
        Attempt::begin(dir, key, "uid-1", limit).unwrap()
    }

    /// The mark of a killed driver: present but unlocked.
    fn killed(marked: Marked) {
        let Marked::Begun(attempt) = marked else {
            panic!("it is not marked")
        };
        attempt._locked.unlock().unwrap();
        std::mem::forget(attempt);
    }

    /// An interrupted command has removed its temporary directory while a thread was about to compile.
    #[test]
    fn a_directory_that_was_removed_does_not_come_back() {
        let dir = dir();
        let native = dir.path().join("native");
        drop(dir);
        assert!(Attempt::begin(&native, "a", "uid-1", None).is_err());
        assert!(!native.parent().unwrap().exists());
    }

    #[test]
    fn the_cause_of_a_drivers_death_is_remembered_until_something_changes() {
        let dir = dir();
        killed(begin(dir.path(), "a", Some(1000)));
        for _ in 0..2 {
            let Marked::DiedOf(mark) = begin(dir.path(), "a", Some(1000)) else {
                panic!("it is forgotten")
            };
            assert!(mark.is_file(), "{}", mark.display());
        }
        assert!(matches!(begin(dir.path(), "b", Some(1000)), Marked::Begun(_)));
        let new_pod = Attempt::begin(dir.path(), "a", "uid-2", Some(1000)).unwrap();
        killed(new_pod);
        assert!(matches!(begin(dir.path(), "a", Some(2000)), Marked::Begun(_)));
        assert!(
            matches!(begin(dir.path(), "a", Some(1000)), Marked::Begun(_)),
            "it ended well"
        );
    }

    #[test]
    fn the_mark_can_be_deleted_by_hand_and_a_mark_of_another_boot_does_not_count() {
        let dir = dir();
        killed(begin(dir.path(), "a", None));
        let Marked::DiedOf(mark) = begin(dir.path(), "a", None) else {
            panic!("it is forgotten")
        };
        fs::remove_file(&mark).unwrap();
        killed(begin(dir.path(), "a", None));
        fs::remove_file(&mark).unwrap();
        fs::write(&mark, r#"{"pod":"uid-1","boot":"another","memory_limit":null}"#).unwrap();
        assert!(matches!(begin(dir.path(), "a", None), Marked::Begun(_)));
        assert!(!mark.exists());
    }

    #[test]
    fn the_mark_of_a_live_driver_counts_as_compiling_elsewhere() {
        let dir = dir();
        let first = begin(dir.path(), "a", None);
        assert!(matches!(begin(dir.path(), "a", None), Marked::Elsewhere));
        drop(first);
        assert!(matches!(begin(dir.path(), "a", None), Marked::Begun(_)));
    }
}
