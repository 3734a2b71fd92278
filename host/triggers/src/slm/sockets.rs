//! Socket files in the kubelet's directories: created atomically, and only our own dead ones are removed. It must not
//! know the protocols on them.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::{Instant, sleep, timeout};

use super::{SlmError, SlmOptions};

/// Time limit for the kubelet to create its directories.
pub(super) const DIRECTORIES_WITHIN: Duration = Duration::from_secs(30);
/// Interval at which the directories are checked.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Connecting to a Unix socket takes no time, unless its listener hangs.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// The mode that the kubelet uses for its own directories.
const DIRECTORY_MODE: u32 = 0o750;

/// A listening socket and the identity of its file: another process may reuse the path.
#[derive(Debug)]
pub(super) struct BoundSocket {
    pub(super) listener: UnixListener,
    pub(super) file: SocketFile,
}

/// A socket file created by this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SocketFile {
    pub(super) path: PathBuf,
    id: (u64, u64),
}

impl SocketFile {
    /// True if the file exists and is still ours.
    pub(super) fn is_intact(&self) -> bool {
        identity(&self.path).is_ok_and(|id| id == self.id)
    }

    /// Removes the file, unless another process now owns the path.
    pub(super) fn remove(&self) {
        if self.is_intact() {
            discard(&self.path);
        }
    }
}

/// Waits for the kubelet's directories, then creates the driver's own in them.
pub(super) async fn prepare_directories(options: &SlmOptions) -> Result<(), SlmError> {
    let until = Instant::now() + DIRECTORIES_WITHIN;
    let mut reported = false;
    while let Some(path) = missing_directory(options) {
        if Instant::now() >= until {
            return Err(SlmError::NoDirectory { path });
        }
        if !std::mem::replace(&mut reported, true) {
            tracing::warn!(path = %path.display(), "waiting for the kubelet to make its directory");
        }
        sleep(LOOK_EVERY).await;
    }
    make_driver_directory(options)
}

/// Returns one of the kubelet's directories that is missing. Only the kubelet creates them.
pub(super) fn missing_directory(options: &SlmOptions) -> Option<PathBuf> {
    [options.registry_dir(), options.plugins_dir()]
        .into_iter()
        .find(|path| !path.is_dir())
}

/// Creates the driver's own directory if it is missing.
pub(super) fn make_driver_directory(options: &SlmOptions) -> Result<(), SlmError> {
    let path = options.driver_dir();
    match fs::DirBuilder::new().mode(DIRECTORY_MODE).create(&path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(source) => Err(failed(options.plugins_dir(), path, source)),
    }
}

/// Binds under a hidden name, listens, and renames the file: it is never visible half ready.
pub(super) fn bind(dir: &Path, hidden: &str, path: PathBuf) -> Result<BoundSocket, SlmError> {
    let hidden = dir.join(hidden);
    let make = || {
        discard(&hidden);
        let listener = UnixListener::bind(&hidden)?;
        let id = identity(&hidden)?;
        fs::rename(&hidden, &path)?;
        Ok((listener, id))
    };
    match make() {
        Ok((listener, id)) => Ok(BoundSocket {
            listener,
            file: SocketFile { path, id },
        }),
        Err(source) => {
            discard(&hidden);
            Err(failed(dir.to_owned(), path, source))
        }
    }
}

/// The other socket files of this driver's name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SocketSweep {
    /// Registration sockets with a listener.
    pub(super) alive: Vec<PathBuf>,
    /// Files without a listener, which were removed.
    pub(super) removed: Vec<PathBuf>,
}

/// Tries every socket of this driver's name except `own`, and removes those without a listener. A dead registration
/// socket makes the kubelet claim events for an absent driver.
pub(super) async fn sweep(options: &SlmOptions, own: &[&SocketFile]) -> SocketSweep {
    let mut found = SocketSweep::default();
    let registrations = sockets_in(&options.registry_dir(), |name| is_registration(options, name));
    let services = sockets_in(&options.driver_dir(), |name| name.ends_with(".sock"));
    let is_own = |path: &PathBuf| own.iter().any(|file| file.path == *path);
    for path in registrations.into_iter().filter(|path| !is_own(path)) {
        if is_alive(&path).await {
            found.alive.push(path);
        } else {
            discard(&path);
            found.removed.push(path);
        }
    }
    for path in services.into_iter().filter(|path| !is_own(path)) {
        if !is_alive(&path).await {
            discard(&path);
            found.removed.push(path);
        }
    }
    found
}

/// Returns the registration sockets of this driver's name, except `own`, that have a listener.
pub(super) async fn live_instances(options: &SlmOptions, own: &[&SocketFile]) -> Vec<PathBuf> {
    let mut alive = Vec::new();
    for path in sockets_in(&options.registry_dir(), |name| is_registration(options, name)) {
        if own.iter().all(|file| file.path != path) && is_alive(&path).await {
            alive.push(path);
        }
    }
    alive
}

/// True for `<driver>-<instance>-reg.sock`. An instance has no dash, so driver `a` ignores the sockets of `a-b`.
fn is_registration(options: &SlmOptions, name: &str) -> bool {
    name.strip_prefix(options.driver_name.as_str())
        .and_then(|rest| rest.strip_prefix('-'))
        .and_then(|rest| rest.strip_suffix("-reg.sock"))
        .is_some_and(|instance| !instance.is_empty() && !instance.contains('-'))
}

fn sockets_in(dir: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let is_socket = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_socket());
    let mut paths: Vec<_> = entries
        .flatten()
        .filter(|entry| is_socket(entry) && entry.file_name().to_str().is_some_and(&wanted))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

/// True unless the connection is refused: any other error leaves the file alone.
async fn is_alive(path: &Path) -> bool {
    match timeout(CONNECT_WITHIN, UnixStream::connect(path)).await {
        Ok(Err(error)) => !matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound),
        Ok(Ok(_)) | Err(_) => true,
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

fn discard(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "cannot remove a socket file");
        }
        _ => {}
    }
}

fn failed(dir: PathBuf, path: PathBuf, source: io::Error) -> SlmError {
    match source.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            SlmError::NotWritable { path: dir, source }
        }
        _ => SlmError::Listen { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwritable_directory_is_reported_with_the_remedy() {
        for kind in [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem] {
            let error = failed("/k/plugins".into(), "/k/plugins/d/one.sock".into(), kind.into());
            assert!(matches!(error, SlmError::NotWritable { .. }), "{error:?}");
            assert!(
                error.to_string().contains("/k/plugins: mount it writable"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn a_socket_is_removed_only_while_it_is_ours() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        let first = bind(dir.path(), ".a", path.clone()).unwrap();
        assert!(first.file.is_intact());
        // Another one takes its place.
        let second = bind(dir.path(), ".b", path.clone()).unwrap();
        assert!(!first.file.is_intact());
        first.file.remove();
        assert!(path.exists() && second.file.is_intact());
        second.file.remove();
        assert!(!path.exists());
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            0,
            "no hidden file is left"
        );
    }
}
