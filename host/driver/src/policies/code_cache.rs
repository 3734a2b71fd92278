//! The directory of compiled policies: the operator's, or a temporary one of this process.
//!
//! A temporary directory is removed with its process. A killed process leaves its directory behind, and the next process
//! removes it. A locked file shows whether the owner is alive; a PID would not, because in containers it is often the
//! same.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::DriverError;

const PREFIX: &str = "scupper-policies-";
/// Locked for as long as the directory's process lives.
const LOCK: &str = "lock";

/// The directory; a temporary one is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct CodeCacheDir {
    path: PathBuf,
    _own: Option<(OwnDir, File)>,
}

/// A compiler that is being killed may still write into it.
const REMOVE_AGAIN: Duration = Duration::from_millis(20);
const REMOVALS: u32 = 50;

/// A temporary directory. Dropping it removes it, also while a process still writes into it.
#[derive(Debug)]
struct OwnDir(PathBuf);

impl Drop for OwnDir {
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            match fs::remove_dir_all(&self.0) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(REMOVE_AGAIN),
                _ => return,
            }
        }
    }
}

impl CodeCacheDir {
    /// The named one, or a temporary one.
    pub(crate) fn open(named: Option<&Path>) -> Result<Self, DriverError> {
        let temporary = std::env::temp_dir();
        let made = match named {
            Some(path) => make(path),
            None => Self::own(&temporary),
        };
        made.map_err(|source| DriverError::Cache {
            path: named.unwrap_or(&temporary).to_owned(),
            source,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn own(parent: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        // It gets its name once it is locked, so no process finds it unlocked while we live.
        let lock = dir.path().join("lock.new");
        let file = File::create(&lock)?;
        file.lock()?;
        fs::rename(lock, dir.path().join(LOCK))?;
        sweep(parent, dir.path())?;
        Ok(Self {
            path: dir.path().join("native"),
            _own: Some((OwnDir(dir.keep()), file)),
        })
    }
}

fn make(path: &Path) -> io::Result<CodeCacheDir> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    Ok(CodeCacheDir {
        path: path.to_owned(),
        _own: None,
    })
}

/// Removes directories of killed processes of our user. What cannot be removed stays.
fn sweep(parent: &Path, own: &Path) -> io::Result<()> {
    let user = fs::symlink_metadata(own)?.uid();
    for entry in fs::read_dir(parent)?.flatten() {
        let path = entry.path();
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
        if is_ours && path != own && is_abandoned(&path.join(LOCK)) {
            match fs::remove_dir_all(&path) {
                Ok(()) => tracing::debug!(path = %path.display(), "removed the cache of a killed process"),
                Err(error) => {
                    tracing::debug!(path = %path.display(), %error, "could not remove the cache of a killed process")
                }
            }
        }
    }
    Ok(())
}

/// No process holds the lock. Without a lock file the owner may be alive.
fn is_abandoned(lock: &Path) -> bool {
    match File::open(lock).map(|file| file.try_lock()) {
        Ok(Ok(())) => true,
        Ok(Err(TryLockError::WouldBlock | TryLockError::Error(_))) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<PathBuf> {
        let mut names: Vec<_> = fs::read_dir(parent)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn only_leftovers_of_killed_processes_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let living = CodeCacheDir::own(parent.path()).unwrap();
        // As a killed process leaves it: its files are there, its lock is not held.
        let killed = CodeCacheDir::own(parent.path()).unwrap();
        fs::create_dir(killed.path()).unwrap();
        fs::write(killed.path().join("code"), "native").unwrap();
        let (dir, lock) = killed._own.unwrap();
        drop(lock);
        let killed = dir.0.clone();
        std::mem::forget(dir);
        let beginning = parent.path().join(format!("{PREFIX}beginning"));
        fs::create_dir(&beginning).unwrap();
        let other = parent.path().join("others");
        fs::create_dir(&other).unwrap();
        fs::write(other.join(LOCK), "").unwrap();
        let link = parent.path().join(format!("{PREFIX}link"));
        std::os::unix::fs::symlink(&other, &link).unwrap();

        let next = CodeCacheDir::own(parent.path()).unwrap();
        let home = |cache: &CodeCacheDir| cache.path().parent().unwrap().to_owned();
        let mut wanted = vec![home(&living), home(&next), beginning, other, link];
        wanted.sort();
        assert_eq!(names(parent.path()), wanted);
        assert!(!killed.exists());
        drop(next);
        drop(living);
        assert_eq!(names(parent.path()).len(), 3, "each goes with its process");
    }

    #[test]
    fn it_goes_although_a_compiler_still_writes() {
        let parent = tempfile::tempdir().unwrap();
        let cache = CodeCacheDir::own(parent.path()).unwrap();
        let native = cache.path().to_owned();
        fs::create_dir(&native).unwrap();
        let writer = std::thread::spawn(move || {
            (0..300).for_each(|number| drop(fs::write(native.join(number.to_string()), "code")));
        });
        drop(cache);
        writer.join().unwrap();
        assert_eq!(names(parent.path()), [] as [PathBuf; 0]);
    }

    #[test]
    fn the_directory_that_was_named_is_made_and_stays() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        drop(CodeCacheDir::open(Some(&path)).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
