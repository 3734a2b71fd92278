//! A disk cache of compiled policies, so that a restart compiles nothing.
//!
//! A file is named `SOURCE-ENGINE-NATIVE.cwasm`: the digest of the component, a digest of the engine's configuration,
//! and the digest of the native code, which is checked before the code is trusted. The name is the index: one rename
//! publishes it together with the bytes, and a file whose bytes do not match its name is deleted. Only this user may
//! write to the directory.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use thiserror::Error;

use crate::files::private_dir::{PrivateDir, PrivateDirError};
use crate::files::sealed::Sealed;
use crate::limits::NATIVE_BYTES;
use crate::native::Native;

/// More than a node has: all its policies, in every version that one day's updates bring.
const FILES: usize = 64;

/// The suffix of compiled policies.
pub(crate) const ENDING: &str = ".cwasm";

/// The private directory.
pub struct Cache {
    dir: PrivateDir,
}

/// Why the cache of compiled policies cannot be used.
#[derive(Debug, Error)]
pub enum CacheError {
    /// The directory cannot be used.
    #[error("cannot use the directory for compiled policies")]
    Directory(#[source] PrivateDirError),
    /// A file in it cannot be read or written.
    #[error("cannot {what} {name} in {}", path.display())]
    File {
        /// The failed operation.
        what: &'static str,
        /// The file.
        name: String,
        /// The directory.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl Cache {
    /// Opens the directory, and creates it if necessary.
    pub fn open(path: &Path) -> Result<Self, CacheError> {
        let dir = PrivateDir::open(path).map_err(CacheError::Directory)?;
        Ok(Self { dir })
    }

    /// The native code for a key, if the cache has it unchanged. Blocks.
    pub fn fetch(&self, key: &str) -> Result<Option<Native>, CacheError> {
        for (name, _) in self.dir.list(ENDING).map_err(self.failed("list", "the files"))? {
            let Some(digest) = digest_in(&name, key) else {
                continue;
            };
            let native = self.read(&name, digest).map_err(self.failed("read", &name))?;
            if native.is_some() {
                return Ok(native);
            }
            tracing::warn!(target: "scupper_policy::compile::cache", file = %name, directory = %self.dir.path().display(), "a compiled policy was changed: deleted");
            self.delete(&name)?;
        }
        Ok(None)
    }

    fn read(&self, name: &str, digest: &str) -> io::Result<Option<Native>> {
        let Some(file) = self.dir.file(name, NATIVE_BYTES)? else {
            return Ok(None);
        };
        let copy = Sealed::copy("native", file, NATIVE_BYTES)?;
        Ok(copy.and_then(|copy| Native::kept(copy, digest)))
    }

    /// Stores native code for a key. Blocks.
    pub fn keep(&self, key: &str, native: &Native) -> Result<(), CacheError> {
        let code = native.code();
        let name = format!("{key}-{}{ENDING}", code.digest());
        self.dir
            .write(&name, code.reader(), Mode::RUSR)
            .map_err(self.failed("write", &name))?;
        self.prune()
    }

    /// Deletes the native code for a key, because the engine rejected it. Blocks.
    pub fn forget(&self, key: &str) -> Result<(), CacheError> {
        let files = self.dir.list(ENDING).map_err(self.failed("list", "the files"))?;
        files
            .iter()
            .filter(|(name, _)| digest_in(name, key).is_some())
            .try_for_each(|(name, _)| self.delete(name))
    }

    fn delete(&self, name: &str) -> Result<(), CacheError> {
        self.dir.delete(name).map_err(self.failed("delete", name))
    }

    /// Deletes the oldest files above the bound, and the remains of dead drivers.
    fn prune(&self) -> Result<(), CacheError> {
        let list = "the files";
        let mut kept = self.dir.list(ENDING).map_err(self.failed("list", list))?;
        kept.sort_by_key(|(_, stat)| stat.st_mtime);
        let newest = kept.last().map_or(0, |(_, stat)| stat.st_mtime);
        self.dir
            .sweep(newest)
            .map_err(self.failed("delete", "stale files"))?;
        let old = kept.iter().take(kept.len().saturating_sub(FILES));
        old.into_iter().try_for_each(|(name, _)| self.delete(name))
    }

    fn failed(&self, what: &'static str, name: &str) -> impl Fn(io::Error) -> CacheError {
        let (name, path) = (name.to_owned(), self.dir.path().to_owned());
        move |source| CacheError::File {
            what,
            name: name.clone(),
            path: path.clone(),
            source,
        }
    }
}

/// The digest of native code in a file's name, if the file is for this key.
pub(crate) fn digest_in<'a>(name: &'a str, key: &str) -> Option<&'a str> {
    name.strip_prefix(key)?.strip_prefix('-')?.strip_suffix(ENDING)
}
