//! The sockets below the registry folder, and their incarnations.
//!
//! It uses inotify as a kubelet does: a removed file counts as gone, a renamed one does not, and a folder whose name begins with
//! a dot is walked only when the kubelet starts.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// A socket that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    /// Its incarnation: another number means that it was recreated.
    pub generation: u64,
    file: (u64, u64, i64, i64),
}

/// The registry folder could not be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The kernel gives no watch.
    #[error("inotify is not available")]
    Inotify(#[source] Errno),
    /// The folder does not exist or cannot be read.
    #[error("cannot watch {path}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        source: Errno,
    },
}

/// The sockets below a folder.
#[derive(Debug)]
pub(super) struct Sockets {
    inotify: OwnedFd,
    folders: BTreeMap<i32, PathBuf>,
    found: BTreeMap<PathBuf, Socket>,
    generations: u64,
}

impl Sockets {
    /// Begins to watch, and finds existing sockets.
    pub(super) fn watch(folder: &Path) -> Result<Self, WatchError> {
        let inotify =
            inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(WatchError::Inotify)?;
        let mut sockets = Self {
            inotify,
            folders: BTreeMap::new(),
            found: BTreeMap::new(),
            generations: 0,
        };
        sockets
            .watch_folder(folder)
            .map_err(|source| WatchError::Folder {
                path: folder.to_owned(),
                source,
            })?;
        sockets.walk(folder);
        Ok(sockets)
    }

    /// The current sockets, after all events so far.
    pub(super) fn poll(&mut self) -> &BTreeMap<PathBuf, Socket> {
        for change in self.read() {
            match change {
                Change::Created(path) => self.created(&path),
                Change::Removed(path) => {
                    self.found.remove(&path);
                }
            }
        }
        &self.found
    }

    fn read(&self) -> Vec<Change> {
        let mut room = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = inotify::Reader::new(&self.inotify, &mut room);
        let mut changes = Vec::new();
        // An error means that the queue is empty.
        while let Ok(event) = reader.next() {
            let Some(folder) = self.folders.get(&event.wd()) else {
                continue;
            };
            let Some(name) = event.file_name() else { continue };
            let path = folder.join(OsStr::from_bytes(name.to_bytes()));
            let flags = event.events();
            if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                changes.push(Change::Created(path));
            } else if flags.contains(ReadFlags::DELETE) {
                changes.push(Change::Removed(path));
            }
        }
        changes
    }

    fn created(&mut self, path: &Path) {
        if is_hidden(path) {
            return;
        }
        // Already gone: the removal follows in the queue.
        let Ok(found) = fs::metadata(path) else { return };
        if found.is_dir() {
            // It may already be gone.
            if self.watch_folder(path).is_ok() {
                self.walk(path);
            }
        } else if found.file_type().is_socket() {
            self.add(path, &found);
        }
    }

    /// Everything below a folder, including hidden folders but not hidden files.
    fn walk(&mut self, folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let Ok(found) = fs::metadata(&path) else { continue };
            if found.is_dir() {
                if self.watch_folder(&path).is_ok() {
                    self.walk(&path);
                }
            } else if found.file_type().is_socket() && !is_hidden(&path) {
                self.add(&path, &found);
            }
        }
    }

    /// A socket that was found twice (by the walk and by the kernel) stays the same.
    fn add(&mut self, path: &Path, found: &Metadata) {
        let file = (found.dev(), found.ino(), found.ctime(), found.ctime_nsec());
        let known = self.found.get(path).is_some_and(|known| known.file == file);
        if !known {
            self.generations += 1;
            self.found.insert(
                path.to_owned(),
                Socket {
                    generation: self.generations,
                    file,
                },
            );
        }
    }

    fn watch_folder(&mut self, folder: &Path) -> Result<(), Errno> {
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE | WatchFlags::ONLYDIR;
        let watch = inotify::add_watch(&self.inotify, folder, flags)?;
        self.folders.insert(watch, folder.to_owned());
        Ok(())
    }
}

enum Change {
    Created(PathBuf),
    Removed(PathBuf),
}

fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_bytes().starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn names(sockets: &mut Sockets) -> Vec<String> {
        sockets
            .poll()
            .keys()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn sockets_are_found_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let before = UnixListener::bind(folder.path().join("before")).unwrap();
        let mut sockets = Sockets::watch(folder.path()).unwrap();
        assert_eq!(names(&mut sockets), ["before"]);

        let after = UnixListener::bind(folder.path().join("after")).unwrap();
        let hidden = UnixListener::bind(folder.path().join(".hidden")).unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(names(&mut sockets), ["after", "before"]);

        fs::rename(folder.path().join(".hidden"), folder.path().join("shown")).unwrap();
        assert_eq!(names(&mut sockets), ["after", "before", "shown"]);
        drop((before, after, hidden));
    }

    #[test]
    fn a_removed_socket_is_gone_and_a_renamed_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let _a = UnixListener::bind(&path).unwrap();
        let mut sockets = Sockets::watch(folder.path()).unwrap();
        fs::rename(&path, folder.path().join(".away")).unwrap();
        assert_eq!(names(&mut sockets), ["a"]);

        let _b = UnixListener::bind(folder.path().join("b")).unwrap();
        fs::remove_file(folder.path().join("b")).unwrap();
        assert_eq!(names(&mut sockets), ["a"]);
    }

    #[test]
    fn a_socket_made_anew_or_renamed_over_is_another_generation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let _first = UnixListener::bind(&path).unwrap();
        let mut sockets = Sockets::watch(folder.path()).unwrap();
        let first = sockets.poll()[&path];

        fs::remove_file(&path).unwrap();
        let _second = UnixListener::bind(&path).unwrap();
        let second = sockets.poll()[&path];
        assert_ne!(first, second);

        let _third = UnixListener::bind(folder.path().join(".new")).unwrap();
        fs::rename(folder.path().join(".new"), &path).unwrap();
        assert_ne!(second, sockets.poll()[&path]);
    }

    #[test]
    fn folders_are_walked_and_hidden_ones_only_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sub/deep")).unwrap();
        fs::create_dir(folder.path().join(".early")).unwrap();
        let _early = UnixListener::bind(folder.path().join(".early/early")).unwrap();
        let mut sockets = Sockets::watch(folder.path()).unwrap();
        let _deep = UnixListener::bind(folder.path().join("sub/deep/deep")).unwrap();
        fs::create_dir(folder.path().join(".late")).unwrap();
        let _late = UnixListener::bind(folder.path().join(".late/late")).unwrap();
        fs::create_dir(folder.path().join("new")).unwrap();
        let _new = UnixListener::bind(folder.path().join("new/new")).unwrap();
        assert_eq!(names(&mut sockets), ["early", "new", "deep"]);
    }
}
