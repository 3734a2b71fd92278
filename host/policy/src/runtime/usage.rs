//! The resource usage of a policy's calls, their results, and the maximum compared to the limits.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use scupper_policy_spec::Limits;

/// The resource usage of one call; or, of several calls, the maximum or the sum of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time, including the host's work for it.
    pub cpu: Duration,
    /// Wall-clock time.
    pub wall: Duration,
    /// Bytes of all its memories together.
    pub memory: u64,
    /// Elements of all its tables together.
    pub table_elements: u64,
    /// Lines it wrote into the log.
    pub log_lines: u64,
    /// Lines beyond its allowance.
    pub log_lines_dropped: u64,
    /// Kubernetes Events it emitted.
    pub events: u64,
    /// HTTP requests it made.
    pub requests: u64,
    /// Bytes of their responses.
    pub response_bytes: u64,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallResult {
    /// It returned an answer.
    Ok,
    /// The planner refused the drain.
    Refused,
    /// The hook reported that its step failed.
    Failed,
    /// It trapped.
    Trap,
    /// It ended itself (`exit`).
    Exit,
    /// It exceeded its CPU time.
    Cpu,
    /// It exceeded its wall-clock limit.
    Wall,
    /// It exceeded its memory limit.
    Memory,
    /// It exceeded its limit of table elements.
    Tables,
    /// It exceeded its limit of handles.
    Handles,
    /// One answer or one call of the host carried too many bytes.
    Data,
    /// Its answer breaks a bound of `wit/`.
    Answer,
    /// Another error of wasmtime.
    Other,
    /// The driver itself failed.
    Driver,
}

/// The statistics of the calls of one policy in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyUsage {
    /// The policy.
    pub policy: String,
    /// SHA-256 of its file, in hex.
    pub digest: String,
    /// Number of calls, including three while loading.
    pub calls: u64,
    /// The maximum of each that one call used.
    pub most: Usage,
    /// The sum over all calls. For memory and tables it shows the turnover.
    pub total: Usage,
    /// Its limits.
    pub limits: Limits,
}

/// One limited resource: the maximum that one call used, and the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The resource.
    pub what: &'static str,
    /// The maximum that one call used, with its unit.
    pub most: String,
    /// The limit, with its unit; empty: no limit for a single call.
    pub limit: String,
}

impl CallResult {
    /// All values of the metrics' label.
    pub const ALL: [Self; 14] = [
        Self::Ok,
        Self::Refused,
        Self::Failed,
        Self::Trap,
        Self::Exit,
        Self::Cpu,
        Self::Wall,
        Self::Memory,
        Self::Tables,
        Self::Handles,
        Self::Data,
        Self::Answer,
        Self::Other,
        Self::Driver,
    ];

    /// As one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Trap => "trap",
            Self::Exit => "exit",
            Self::Cpu => "cpu",
            Self::Wall => "wall",
            Self::Memory => "memory",
            Self::Tables => "tables",
            Self::Handles => "handles",
            Self::Data => "data",
            Self::Answer => "answer",
            Self::Other => "other",
            Self::Driver => "driver",
        }
    }

    /// Whether the policy is to blame: it exceeded a bound or broke. Refusing and reporting failures are its right.
    pub const fn is_fault(self) -> bool {
        !matches!(self, Self::Ok | Self::Refused | Self::Failed | Self::Driver)
    }
}

impl fmt::Display for CallResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Usage {
    fn with(
        &self,
        other: &Self,
        count: fn(u64, u64) -> u64,
        time: fn(Duration, Duration) -> Duration,
    ) -> Self {
        Self {
            cpu: time(self.cpu, other.cpu),
            wall: time(self.wall, other.wall),
            memory: count(self.memory, other.memory),
            table_elements: count(self.table_elements, other.table_elements),
            log_lines: count(self.log_lines, other.log_lines),
            log_lines_dropped: count(self.log_lines_dropped, other.log_lines_dropped),
            events: count(self.events, other.events),
            requests: count(self.requests, other.requests),
            response_bytes: count(self.response_bytes, other.response_bytes),
        }
    }

    /// The maximum of each.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        self.with(other, u64::max, Duration::max)
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add, Duration::saturating_add)
    }
}

impl PolicyUsage {
    /// The limited resources, as rows of a table.
    pub fn measures(&self) -> Vec<Measure> {
        let Self { most, limits, .. } = self;
        let millis = |time: Duration| format!("{} ms", time.as_millis());
        let kib = |bytes: u64| format!("{} KiB", bytes.div_ceil(1024));
        let measure = |what, most, limit| Measure { what, most, limit };
        vec![
            measure(
                "CPU time",
                millis(most.cpu),
                millis(limits.step_cpu.max(limits.plan_cpu)),
            ),
            measure(
                "wall clock",
                millis(most.wall),
                millis(limits.step_wall.max(limits.plan_wall)),
            ),
            measure("memory", kib(most.memory), kib(limits.memory as u64)),
            measure(
                "table elements",
                most.table_elements.to_string(),
                limits.table_elements.to_string(),
            ),
            measure(
                "log lines",
                most.log_lines.to_string(),
                format!("{} a minute", limits.log_lines_per_minute),
            ),
            measure(
                "log lines dropped",
                most.log_lines_dropped.to_string(),
                String::new(),
            ),
            measure("events", most.events.to_string(), String::new()),
            measure(
                "HTTP requests",
                most.requests.to_string(),
                limits.requests.to_string(),
            ),
            measure("HTTP responses", kib(most.response_bytes), String::new()),
        ]
    }
}

/// Counts one call while it runs. The store is gone at the end of the call, so this lives outside of it.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    memory: AtomicU64,
    table_elements: AtomicU64,
    log_lines: AtomicU64,
    log_lines_dropped: AtomicU64,
    events: AtomicU64,
    requests: AtomicU64,
    response_bytes: AtomicU64,
    waits: Mutex<Waits>,
    fetches: Mutex<Waits>,
}

/// How long a call has waited for the API server and for the servers of its requests.
#[derive(Debug, Default)]
struct Waits {
    since: Option<Instant>,
    before: Duration,
}

impl Waits {
    fn total(&self) -> Duration {
        let now = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.before.saturating_add(now)
    }
}

/// Adds the time of this work.
async fn timed<T>(waits: &Mutex<Waits>, work: impl Future<Output = T>) -> T {
    locked(waits).since = Some(Instant::now());
    let done = work.await;
    let mut waits = locked(waits);
    *waits = Waits {
        since: None,
        before: waits.total(),
    };
    done
}

fn total(waits: &Mutex<Waits>) -> Duration {
    locked(waits).total()
}

/// The state is two plain values: a panic cannot leave them half written.
fn locked(waits: &Mutex<Waits>) -> MutexGuard<'_, Waits> {
    waits.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counters {
    /// Waits for something outside of the driver.
    pub(crate) async fn waiting<T>(&self, work: impl Future<Output = T>) -> T {
        timed(&self.waits, work).await
    }

    /// Waits for facts that the host reads. Unlike other waits, these prolong the call's wall-clock limit.
    pub(crate) async fn fetching<T>(&self, work: impl Future<Output = T>) -> T {
        timed(&self.fetches, self.waiting(work)).await
    }

    /// How long it has waited so far for facts.
    pub(crate) fn fetched(&self) -> Duration {
        total(&self.fetches)
    }

    /// How long it has waited so far for servers, including the current wait.
    pub(crate) fn waited(&self) -> Duration {
        total(&self.waits)
    }

    /// Records the current bytes of its memories.
    pub(crate) fn memory(&self, bytes: usize) {
        self.memory.fetch_max(bytes as u64, Ordering::Relaxed);
    }

    /// Records the current elements of its tables.
    pub(crate) fn tables(&self, elements: usize) {
        self.table_elements.fetch_max(elements as u64, Ordering::Relaxed);
    }

    /// Counts a line, logged or dropped.
    pub(crate) fn line(&self, logged: bool) {
        let counter = if logged {
            &self.log_lines
        } else {
            &self.log_lines_dropped
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an Event.
    pub(crate) fn event(&self) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request.
    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds received bytes of a response.
    pub(crate) fn response(&self, bytes: usize) {
        self.response_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn usage(&self, cpu: Duration, wall: Duration) -> Usage {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Usage {
            cpu,
            wall,
            memory: count(&self.memory),
            table_elements: count(&self.table_elements),
            log_lines: count(&self.log_lines),
            log_lines_dropped: count(&self.log_lines_dropped),
            events: count(&self.events),
            requests: count(&self.requests),
            response_bytes: count(&self.response_bytes),
        }
    }
}

/// The calls of one policy in one version, summed up.
#[derive(Debug, Default)]
pub(crate) struct Account(Mutex<Sums>);

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    calls: u64,
    most: Usage,
    total: Usage,
}

impl Account {
    pub(crate) fn add(&self, usage: &Usage) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *sums = Sums {
            calls: sums.calls.saturating_add(1),
            most: sums.most.max(usage),
            total: sums.total.plus(usage),
        };
    }

    pub(crate) fn of(&self, policy: &str, digest: &str, limits: &Limits) -> PolicyUsage {
        let Sums { calls, most, total } = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        PolicyUsage {
            policy: policy.to_owned(),
            digest: digest.to_owned(),
            calls,
            most,
            total,
            limits: limits.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_the_most_and_the_sum() {
        let account = Account::default();
        for (memory, lines) in [(10, 1), (4, 7)] {
            let counters = Counters::default();
            counters.memory(memory);
            counters.memory(memory - 1);
            (0..lines).for_each(|line| counters.line(line < 3));
            account.add(&counters.usage(Duration::from_millis(5), Duration::from_millis(9)));
        }
        let usage = account.of("p", "d", &Limits::default());
        assert_eq!((usage.calls, usage.most.memory, usage.total.memory), (2, 10, 14));
        assert_eq!((usage.most.log_lines, usage.most.log_lines_dropped), (3, 4));
        assert_eq!(
            (usage.total.log_lines, usage.total.cpu),
            (4, Duration::from_millis(10))
        );
        let memory = usage
            .measures()
            .into_iter()
            .find(|measure| measure.what == "memory");
        assert_eq!(
            memory.map(|measure| (measure.most, measure.limit)),
            Some(("1 KiB".to_owned(), "65536 KiB".to_owned()))
        );
    }

    #[test]
    fn every_call_result_has_its_own_label() {
        let words: std::collections::BTreeSet<&str> = CallResult::ALL.map(CallResult::as_str).into();
        assert_eq!(words.len(), CallResult::ALL.len());
    }
}
