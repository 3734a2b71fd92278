//! The memory of a process, sampled every few milliseconds: its own memory by kind, its sealed files, and the same of
//! the compiler's child while it runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::status;

/// The interval between two samples.
const EVERY: Duration = Duration::from_millis(3);

/// A process at one moment, or the peaks over many moments, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) rss: u64,
    pub(crate) anonymous: u64,
    pub(crate) file: u64,
    pub(crate) shared: u64,
    /// Files in memory: they count for the container, not for the process.
    pub(crate) sealed: u64,
}

/// The results.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peaks {
    /// The peak of each kind.
    pub(crate) most: Memory,
    /// The peak of the compiler's child.
    pub(crate) child: u64,
    pub(crate) looks: u64,
}

/// Samples a process until it is stopped.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Peaks>,
}

impl Watch {
    pub(crate) fn start(pid: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut seen = Peaks::default();
            while !stopped.load(Ordering::Relaxed) {
                seen.sample(pid);
                std::thread::sleep(EVERY);
            }
            seen
        });
        Self { stop, thread }
    }

    pub(crate) fn stop(self) -> Peaks {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

impl Peaks {
    fn sample(&mut self, pid: u32) {
        let now = Memory::of(pid);
        self.looks += 1;
        for (most, now) in [
            (&mut self.most.rss, now.rss),
            (&mut self.most.anonymous, now.anonymous),
            (&mut self.most.file, now.file),
            (&mut self.most.shared, now.shared),
            (&mut self.most.sealed, now.sealed),
        ] {
            *most = now.max(*most);
        }
        for child in children(pid) {
            self.child = status(child, "VmHWM:").max(self.child);
        }
    }
}

impl Memory {
    pub(crate) fn of(pid: u32) -> Self {
        Self {
            rss: status(pid, "VmRSS:"),
            anonymous: status(pid, "RssAnon:"),
            file: status(pid, "RssFile:"),
            shared: status(pid, "RssShmem:"),
            sealed: sealed(pid),
        }
    }
}

/// Nothing if the process has just ended.
fn status(pid: u32, field: &str) -> u64 {
    status::kib(pid, field).unwrap_or_default() * 1024
}

/// The bytes of all files in memory that a process has open.
fn sealed(pid: u32) -> u64 {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return 0;
    };
    let memory = open.flatten().filter(|fd| {
        let target = fs::read_link(fd.path()).unwrap_or_default();
        target.to_string_lossy().starts_with("/memfd:")
    });
    let mut files: Vec<(u64, u64)> = memory
        .filter_map(|fd| fs::metadata(fd.path()).ok())
        .map(|file| (file.ino(), file.blocks() * 512))
        .collect();
    files.sort_unstable();
    files.dedup();
    files.iter().map(|(_, bytes)| bytes).sum()
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let children = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |line: String| -> Vec<u32> {
        line.split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect()
    };
    children.flat_map(numbers).collect()
}
