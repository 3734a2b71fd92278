//! Immutable bytes: a file in memory that the kernel has sealed against every write, with the digest taken afterwards.
//!
//! Any process of the same user can change a file on disk after the check and while it is mapped. A sealed file in
//! memory stays the same for all processes. It is read in pieces, passed to a child as standard input, or mapped, so it
//! does not enlarge the driver's own memory.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

use super::digest::sha256_of;

/// How long a file may be busy before it counts as mapped for writing.
const BUSY: Duration = Duration::from_secs(5);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Cheap to clone; the memory is freed with the last clone and the last mapping.
#[derive(Clone)]
pub(crate) struct Sealed(Arc<Held>);

struct Held {
    file: File,
    digest: String,
    length: u64,
}

/// A file in memory that is still being written.
pub(crate) struct Draft(File);

/// Reads from the beginning, independent of other readers.
pub(crate) struct Reader<'a> {
    file: &'a File,
    place: u64,
}

impl Draft {
    /// An empty file. The name only appears in `/proc`.
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // The file is never executed, and some systems demand this flag. Kernels before 6.3 do not know it.
        let file = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
            Err(Errno::INVAL) => memfd_create(name, flags),
            made => made,
        };
        Ok(Self(File::from(file?)))
    }

    /// The same file, for the writer.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.0.try_clone()
    }

    /// The kernel answers EBUSY for a file that a process has mapped for writing, and also for a moment while it uses the
    /// file's pages itself.
    fn add_seals(&self, seals: SealFlags) -> io::Result<()> {
        let deadline = Instant::now() + BUSY;
        loop {
            match fcntl_add_seals(&self.0, seals) {
                Err(Errno::BUSY) if Instant::now() < deadline => thread::sleep(PAUSE),
                done => return Ok(done?),
            }
        }
    }

    /// Ends all writing and computes the digest. `None`: it is longer than allowed. Fails if a process still has it
    /// mapped for writing. Blocks.
    pub(crate) fn seal(self, most: u64) -> io::Result<Option<Sealed>> {
        let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        self.add_seals(seals)?;
        let length = self.0.metadata()?.len();
        if length > most {
            return Ok(None);
        }
        // Only now: before the seal other processes can also write.
        let digest = sha256_of(Reader {
            file: &self.0,
            place: 0,
        })?;
        Ok(Some(Sealed(Arc::new(Held {
            file: self.0,
            digest,
            length,
        }))))
    }
}

impl Sealed {
    /// Copies the whole stream. `None`: it is longer than allowed. Blocks.
    pub(crate) fn copy(name: &str, from: impl Read, most: u64) -> io::Result<Option<Self>> {
        let mut draft = Draft::new(name)?;
        io::copy(&mut from.take(most.saturating_add(1)), &mut draft.0)?;
        draft.seal(most)
    }

    /// SHA-256 in lowercase hex.
    pub(crate) fn digest(&self) -> &str {
        &self.0.digest
    }

    /// Its bytes.
    pub(crate) fn length(&self) -> u64 {
        self.0.length
    }

    /// Reads it from the beginning.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            file: &self.0.file,
            place: 0,
        }
    }

    /// Opens it again, read-only and from the beginning, for a child.
    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(self.path())
    }

    /// A path to it, valid in this process while this value lives.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.file.as_raw_fd()))
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.place)?;
        self.place = self.place.saturating_add(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::files::digest::sha256;

    fn sealed(bytes: &[u8]) -> Sealed {
        Sealed::copy("test", bytes, 1 << 20).unwrap().unwrap()
    }

    fn read(mut from: impl Read) -> Vec<u8> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_sealed_copy_equals_its_source_and_can_be_read_repeatedly() {
        let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let sealed = sealed(&bytes);
        assert_eq!((sealed.length(), sealed.digest()), (800_000, &*sha256(&bytes)));
        let (one, two) = (sealed.open().unwrap(), sealed.open().unwrap());
        assert_eq!(read(one), bytes);
        assert_eq!(read(sealed.reader()), bytes);
        assert_eq!(read(two), bytes);
    }

    #[test]
    fn a_file_that_is_busy_for_a_moment_is_sealed_later() {
        let mut draft = Draft::new("test").unwrap();
        draft.0.write_all(b"as it was").unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), draft.0.as_raw_fd());
        // Busy as long as this maps it for writing.
        let script = "import mmap, sys, time
file = open(sys.argv[1], 'r+b')
map = mmap.mmap(file.fileno(), 0)
print('mapped', flush=True)
time.sleep(0.3)";
        let mut other = Command::new("python3")
            .args(["-c", script, &path])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The whole line: without a reader for its end the script would fail.
        let mut line = [0; "mapped\n".len()];
        other.stdout.take().unwrap().read_exact(&mut line).unwrap();
        let sealed = draft.seal(1 << 20).unwrap().unwrap();
        assert_eq!(read(sealed.reader()), b"as it was");
        assert!(other.wait().unwrap().success());
    }

    #[test]
    fn an_oversized_file_is_not_kept() {
        assert!(Sealed::copy("test", [0; 9].as_slice(), 8).unwrap().is_none());
        assert!(Sealed::copy("test", [0; 8].as_slice(), 8).unwrap().is_some());
    }

    #[test]
    fn a_sealed_file_cannot_be_changed_even_through_an_older_descriptor() {
        let draft = Draft::new("test").unwrap();
        let mut before = draft.file().unwrap();
        before.write_all(b"as it was").unwrap();
        let sealed = draft.seal(1 << 20).unwrap().unwrap();
        let writes = std::fs::OpenOptions::new().write(true).open(sealed.path());
        for mut file in [before, writes.unwrap()] {
            assert!(file.write_all(b"other").is_err(), "it was written to");
            assert!(file.set_len(0).is_err(), "it was cut");
            assert!(file.set_len(1 << 20).is_err(), "it grew");
        }
        assert_eq!(read(sealed.reader()), b"as it was");
        assert_eq!(sealed.digest(), sha256(b"as it was"));
    }
}
