//! The memory that a row of the table may add to the driver, and that the driver frees it.
//!
//! Other tests of this program run in parallel, so resident memory says nothing there. This one runs itself again in a
//! process of its own, with nothing but the table: once to warm up, then as often as needed to see what stays. The peak
//! of a row is the kernel's own high-water mark, reset before each attack.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::TABLE;

/// The name of this test when it runs alone.
const NAME: &str = "hostile::memory::no_row_takes_more_than_its_bound_and_nothing_stays";
/// Tells the second process that it is the second.
const ALONE: &str = "SCUPPER_TEST_ROWS_ALONE";

/// Rounds that are measured after the warm-up round, which covers lazily built tables, first-time code and the
/// allocator's own reserves.
const ROUNDS: usize = 1;
/// The memory that a round may leave behind. It makes about three hundred hostile calls: a leak of 12 KiB per call is
/// noticed.
const STAYS_KIB: u64 = 4 * 1024;
/// Long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(1800);

/// When other threads have closed their files, even on a busy machine.
const CLOSED_WITHIN: Duration = Duration::from_secs(120);

/// The peak growth of this process during an attack, since the last reset.
static GROWN_KIB: AtomicU64 = AtomicU64::new(0);

/// Tracks this process's memory from now on.
pub(super) struct Tide {
    before: u64,
}

impl Tide {
    pub(super) fn watch() -> Self {
        // Resets the peak: `man 5 proc_pid_clear_refs`.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        Self {
            before: kib("VmRSS:"),
        }
    }
}

impl Drop for Tide {
    fn drop(&mut self) {
        GROWN_KIB.fetch_max(kib("VmHWM:").saturating_sub(self.before), Ordering::Relaxed);
    }
}

/// A field of this process's status.
fn kib(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// As many as before, perhaps in a moment: other threads close theirs in their own time.
fn closed_files(before: usize) -> usize {
    let begun = Instant::now();
    while open_files() > before && begun.elapsed() < CLOSED_WITHIN {
        std::thread::sleep(Duration::from_millis(20));
    }
    open_files()
}

#[test]
fn no_row_takes_more_than_its_bound_and_nothing_stays() {
    if std::env::var_os(ALONE).is_some() {
        run_the_table();
        return;
    }
    let output = tempfile::NamedTempFile::new().unwrap();
    // Both write at its end.
    let open = || std::fs::File::options().append(true).open(output.path()).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(ALONE, "1")
        // Symbols of a backtrace are not part of a row's memory.
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(open())
        .stderr(open())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let succeeded = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.success();
        }
        if begun.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            break false;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let said = std::fs::read_to_string(output.path()).unwrap();
    assert!(
        succeeded && said.contains("1 passed"),
        "alone in a process, the table:\n{said}"
    );
}

/// The work of the second process.
fn run_the_table() {
    let mut peaks = vec![0; TABLE.len()];
    let mut after: Vec<(u64, u64, usize)> = Vec::new();
    for round in 0..=ROUNDS {
        for (row, peak) in TABLE.iter().zip(&mut peaks) {
            GROWN_KIB.store(0, Ordering::Relaxed);
            // As `#[tokio::test]` does.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on((row.run)());
            let grown = GROWN_KIB.load(Ordering::Relaxed);
            if round > 0 {
                *peak = grown.max(*peak);
            }
        }
        let files = after.first().map_or_else(open_files, |warm| closed_files(warm.2));
        after.push((kib("VmRSS:"), kib("RssAnon:"), files));
    }
    let rows: Vec<String> = TABLE
        .iter()
        .zip(&peaks)
        .map(|(row, peak)| format!("{peak:>8} KiB of {:>8}  {}", row.most_mib * 1024, row.name))
        .collect();
    let rounds: Vec<String> = after
        .iter()
        .map(|(all, own, files)| format!("{all:>8} KiB, {own} of them its own, {files} open files"))
        .collect();
    let figures = format!(
        "grown by at most, in a row:\n{}\nresident after each round:\n{}",
        rows.join("\n"),
        rounds.join("\n")
    );
    let over: Vec<&str> = TABLE
        .iter()
        .zip(&peaks)
        .filter(|(row, peak)| **peak > row.most_mib * 1024)
        .map(|(row, _)| row.name)
        .collect();
    assert!(over.is_empty(), "more than their bounds: {over:?}\n{figures}");
    let (warm, end) = (after[0], after[ROUNDS]);
    assert!(end.0 <= warm.0 + STAYS_KIB, "too much stays\n{figures}");
    assert!(end.2 <= warm.2, "files stay open\n{figures}");
}
