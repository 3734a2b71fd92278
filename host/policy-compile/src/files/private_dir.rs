//! A directory that only this user can write to: opened once, by handle. It follows no links, and accepts no
//! half-written files and no files of other users.

use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use thiserror::Error;

/// A temporary file of this age belongs to a dead driver.
const STALE_SECONDS: i64 = 600;

/// The suffix of temporary files.
const PART: &str = ".part";

/// The directory.
pub struct PrivateDir {
    dir: OwnedFd,
    path: PathBuf,
}

/// Why a directory cannot be used.
#[derive(Debug, Error)]
pub enum PrivateDirError {
    /// It cannot be created or opened.
    #[error("cannot open the directory {}, which must not be a symbolic link", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Another user could put files into it.
    #[error(
        "the directory {} has the owner {owner} and the mode {mode:04o}; it must belong to the driver's user \
         alone: run chmod 0700 and chown on it, or choose another",
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
}

impl PrivateDir {
    /// Opens the directory, and creates it and its parents if necessary.
    pub fn open_with_parents(path: &Path) -> Result<Self, PrivateDirError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|source| PrivateDirError::Open {
            path: path.to_owned(),
            source,
        })?;
        Self::open(path)
    }

    /// Opens the directory, and creates it if necessary. Its parent must exist: a temporary one may have been removed by
    /// now, and stays so.
    pub fn open(path: &Path) -> Result<Self, PrivateDirError> {
        // Removes the trailing slash, which would follow a symbolic link.
        let path: PathBuf = path.components().collect();
        let failed = |source: io::Error| PrivateDirError::Open {
            path: path.clone(),
            source,
        };
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let dir = fs::open(&path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let stat = fs::fstat(&dir).map_err(|error| failed(error.into()))?;
        let mode = stat.st_mode & 0o7777;
        if stat.st_uid != rustix::process::geteuid().as_raw() || mode & 0o077 != 0 {
            return Err(PrivateDirError::NotPrivate {
                path,
                owner: stat.st_uid,
                mode,
            });
        }
        Ok(Self { dir, path })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file. `None`: there is no such file, it is not a regular file of this user, or it is longer than
    /// allowed.
    pub fn file(&self, name: &str, most: u64) -> io::Result<Option<File>> {
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY | OFlags::NONBLOCK;
        let file = match fs::openat(&self.dir, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let stat = fs::fstat(&file)?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let length = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        if !regular || length > most || stat.st_uid != rustix::process::geteuid().as_raw() {
            return Ok(None);
        }
        Ok(Some(File::from(file)))
    }

    /// Reads a short file. `None`: as above.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.file(name, most)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Writes a file atomically: afterwards it has all the new bytes, or the old ones.
    pub fn write(&self, name: &str, bytes: impl Read, mode: Mode) -> io::Result<()> {
        self.place(name, bytes, mode, false).map(drop)
    }

    /// The same, with a lock that lasts as long as the returned value: no process ever sees the file unlocked before.
    pub fn write_locked(&self, name: &str, bytes: impl Read) -> io::Result<File> {
        self.place(name, bytes, Mode::RUSR | Mode::WUSR, true)
    }

    fn place(&self, name: &str, bytes: impl Read, mode: Mode, locked: bool) -> io::Result<File> {
        // A PID would not do: containers that follow each other on this directory all have the same.
        let temporary = format!(".{:016x}{PART}", RandomState::new().hash_one(0_u8));
        let file = self.create(&temporary, mode)?;
        let written = write_whole(&file, bytes).and_then(|()| {
            if locked {
                file.lock()?;
            }
            fs::renameat(&self.dir, &temporary, &self.dir, name)?;
            fs::fsync(&self.dir)?;
            Ok(file)
        });
        if written.is_err() {
            // If this fails, `sweep` deletes the file later as stale.
            let _gone = self.delete(&temporary).is_ok();
        }
        written
    }

    fn create(&self, name: &str, mode: Mode) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::WRONLY;
        Ok(File::from(fs::openat(&self.dir, name, flags, mode)?))
    }

    /// Deletes a file, if it is there.
    pub fn delete(&self, name: &str) -> io::Result<()> {
        match fs::unlinkat(&self.dir, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The files with this suffix.
    pub fn list(&self, ending: &str) -> io::Result<Vec<(String, Stat)>> {
        let mut files = Vec::new();
        for entry in Dir::read_from(&self.dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if name.ends_with(ending) {
                match fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => files.push((name.to_owned(), stat)),
                    Err(rustix::io::Errno::NOENT) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(files)
    }

    /// Deletes the remains of dead drivers, by their age relative to the newest file.
    pub fn sweep(&self, newest: i64) -> io::Result<()> {
        let parts = self.list(PART)?;
        let stale = parts
            .iter()
            .filter(|(_, stat)| newest - stat.st_mtime > STALE_SECONDS);
        stale.into_iter().try_for_each(|(name, _)| self.delete(name))
    }
}

fn write_whole(mut file: &File, mut bytes: impl Read) -> io::Result<()> {
    io::copy(&mut bytes, &mut file)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// In containers that share a directory every driver has the PID 1.
    #[test]
    fn files_that_another_process_with_this_pid_is_writing_stay_as_they_are() {
        let private = std::fs::Permissions::from_mode(0o700);
        let path = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let dir = PrivateDir::open(path.path()).unwrap();
        let others = (0..100).map(|number| format!(".{}-{number}{PART}", std::process::id()));
        for other in others.clone() {
            std::fs::write(path.path().join(other), "half").unwrap();
        }
        for _ in 0..3 {
            let written = dir.write("file", b"whole".as_slice(), Mode::RUSR | Mode::WUSR);
            assert!(written.is_ok(), "{written:?}");
        }
        let gone: Vec<_> = others.filter(|other| !path.path().join(other).exists()).collect();
        assert!(gone.is_empty(), "deleted: {gone:?}");
        let parts = dir.list(PART).unwrap();
        assert_eq!(parts.len(), 100, "its own are renamed: {parts:?}");
    }
}
