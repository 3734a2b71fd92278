//! Compiled policies on disk, so that a restart compiles nothing.
//!
//! A file is named `SOURCE-ENGINE-NATIVE.cwasm`: the digest of the component, a digest of the engine's configuration,
//! and the digest of the native code itself, which is checked before the code is trusted. The name is the index: it
//! appears together with the bytes, in one rename, and a file whose bytes do not fit its name is deleted. The directory
//! is ours alone.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use thiserror::Error;

use super::limits::NATIVE_BYTES;
use super::native::{Native, sha256};

/// More policies than a node has, in more versions than it is updated to within a day.
const FILES: usize = 64;

/// A temporary file this old was left behind by a driver that died.
const STALE_SECONDS: i64 = 600;

/// The private directory.
pub(super) struct Cache {
    dir: OwnedFd,
    path: PathBuf,
}

/// Why compiled policies cannot be kept.
#[derive(Debug, Error)]
pub enum CacheError {
    /// The directory cannot be made or opened.
    #[error("open the directory for compiled policies, {}; it must be a directory and no symbolic link", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Somebody else could put code into it.
    #[error(
        "the directory for compiled policies, {}, belongs to user {owner} with mode {mode:04o}: it must be ours alone; \
         run chmod 0700 and chown on it, or give another",
        path.display()
    )]
    NotPrivate {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Its mode.
        mode: u32,
    },
    /// A file in it cannot be read or written.
    #[error("{what} {name} in {}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        name: String,
        /// The directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

impl Cache {
    /// Opens the directory, or makes it.
    pub(super) fn open(path: &Path) -> Result<Self, CacheError> {
        // Without its trailing slash, which would follow a symbolic link.
        let path: PathBuf = path.components().collect();
        let failed = |source: io::Error| CacheError::Open {
            path: path.clone(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(failed)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let dir = fs::open(&path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let stat = fs::fstat(&dir).map_err(|error| failed(error.into()))?;
        let mode = stat.st_mode & 0o7777;
        if stat.st_uid != rustix::process::geteuid().as_raw() || mode & 0o077 != 0 {
            return Err(CacheError::NotPrivate {
                path,
                owner: stat.st_uid,
                mode,
            });
        }
        Ok(Self { dir, path })
    }

    /// The native code for a key, if it is there and is still what was written. Blocks.
    pub(super) fn fetch(&self, key: &str) -> Result<Option<Native>, CacheError> {
        for (name, _) in self.files()? {
            let Some(digest) = digest_in(&name, key) else {
                continue;
            };
            let bytes = self.read(&name).map_err(self.failed("read", &name))?;
            if let Some(native) = bytes.and_then(|bytes| Native::kept(bytes, digest)) {
                return Ok(Some(native));
            }
            tracing::warn!(file = %name, directory = %self.path.display(), "a compiled policy was changed: deleted");
            self.delete(&name)?;
        }
        Ok(None)
    }

    /// Keeps native code for a key. Blocks.
    pub(super) fn keep(&self, key: &str, native: &Native) -> Result<(), CacheError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = format!(".{}-{number}.part", std::process::id());
        let name = format!("{key}-{}.cwasm", sha256(native.bytes()));
        let written = self.write(&temporary, native.bytes()).and_then(|()| {
            fs::renameat(&self.dir, &temporary, &self.dir, &name)?;
            Ok(fs::fsync(&self.dir)?)
        });
        if written.is_err() {
            // What remains of it is deleted as stale one day, if not now.
            let _gone = self.delete(&temporary).is_ok();
        }
        written.map_err(self.failed("write", &name))?;
        self.prune()
    }

    /// Forgets what is kept for a key: the engine did not take it. Blocks.
    pub(super) fn forget(&self, key: &str) -> Result<(), CacheError> {
        let files = self.files()?;
        files
            .iter()
            .filter(|(name, _)| digest_in(name, key).is_some())
            .try_for_each(|(name, _)| self.delete(name))
    }

    /// `None`: it is no regular file of ours, or longer than native code can be.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY | OFlags::NONBLOCK;
        let file = match fs::openat(&self.dir, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(rustix::io::Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let stat = fs::fstat(&file)?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let length = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        if !regular || length > NATIVE_BYTES || stat.st_uid != rustix::process::geteuid().as_raw() {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        File::from(file).take(NATIVE_BYTES).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::WRONLY;
        let mut file = File::from(fs::openat(&self.dir, name, flags, Mode::RUSR)?);
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn delete(&self, name: &str) -> Result<(), CacheError> {
        match fs::unlinkat(&self.dir, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(self.failed("delete", name)(error.into())),
        }
    }

    /// Deletes the oldest files above the bound, and what dead drivers left behind.
    fn prune(&self) -> Result<(), CacheError> {
        let mut files = self.files()?;
        files.sort_by_key(|(_, stat)| stat.st_mtime);
        let newest = files.last().map_or(0, |(_, stat)| stat.st_mtime);
        let (kept, parts): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|(name, _)| name.ends_with(".cwasm"));
        let stale = parts
            .iter()
            .filter(|(_, stat)| newest - stat.st_mtime > STALE_SECONDS);
        let old = kept.iter().take(kept.len().saturating_sub(FILES));
        stale.chain(old).try_for_each(|(name, _)| self.delete(name))
    }

    /// All files that are ours by name.
    fn files(&self) -> Result<Vec<(String, Stat)>, CacheError> {
        let list = || -> io::Result<Vec<(String, Stat)>> {
            let mut files = Vec::new();
            for entry in Dir::read_from(&self.dir)? {
                let entry = entry?;
                let Ok(name) = entry.file_name().to_str() else {
                    continue;
                };
                if name.ends_with(".cwasm") || name.ends_with(".part") {
                    match fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) => files.push((name.to_owned(), stat)),
                        Err(rustix::io::Errno::NOENT) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            Ok(files)
        };
        list().map_err(self.failed("list", "the files"))
    }

    fn failed(&self, what: &'static str, name: &str) -> impl Fn(io::Error) -> CacheError {
        let (name, path) = (name.to_owned(), self.path.clone());
        move |source| CacheError::File {
            what,
            name: name.clone(),
            path: path.clone(),
            source,
        }
    }
}

/// The digest of native code in a file's name, if the file is for this key.
fn digest_in<'a>(name: &'a str, key: &str) -> Option<&'a str> {
    name.strip_prefix(key)?.strip_prefix('-')?.strip_suffix(".cwasm")
}
