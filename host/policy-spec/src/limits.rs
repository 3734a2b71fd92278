//! The limits of a policy's resources and answers. Every default is a named constant with its reason.

use std::time::Duration;

/// The resource limits of one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all its memories together.
    pub memory: usize,
    /// Elements of all its tables together.
    pub table_elements: usize,
    /// Core instances in its component; those of Python have up to 64.
    pub instances: usize,
    /// Memories, and the same number of tables for each core instance.
    pub memories: usize,
    /// CPU time of `describe`, `check-config` and `phases`, each.
    pub probe_cpu: Duration,
    /// CPU time of one plan.
    pub plan_cpu: Duration,
    /// CPU time of one hook step.
    pub step_cpu: Duration,
    /// Wall-clock limit for one plan, and for each call while loading.
    pub plan_wall: Duration,
    /// Wall-clock limit for one hook step, including its calls to the cluster.
    pub step_wall: Duration,
    /// Bytes that the guest may pass to the host in one answer or one call.
    pub answer_bytes: usize,
    /// Handles to resources that the guest may hold at once.
    pub handles: usize,
    /// Lines it may log in a minute, a twelfth of them at once.
    pub log_lines_per_minute: u32,
    /// Bytes it may log in a minute, a quarter of them at once.
    pub log_bytes_per_minute: u32,
    /// Requests that one step may send.
    pub requests: u32,
    /// Wall-clock limit for one request, from the name lookup to the last byte of the response.
    pub request_wall: Duration,
    /// Bytes of a response's body.
    pub response_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 * 1024 * 1024,
            table_elements: 20_000,
            instances: 128,
            memories: 8,
            probe_cpu: Duration::from_millis(250),
            plan_cpu: Duration::from_secs(1),
            step_cpu: Duration::from_secs(5),
            plan_wall: Duration::from_secs(5),
            step_wall: Duration::from_secs(30),
            // A plan for 5000 pods has 2 MiB.
            answer_bytes: 4 * 1024 * 1024,
            // Our own interfaces have no resources; a standard library holds a dozen.
            handles: 1000,
            // As much as people can read, and as a log collector keeps for a whole fleet.
            log_lines_per_minute: 600,
            log_bytes_per_minute: 256 * 1024,
            // A step handles some servers or jobs; the rest waits for the next one.
            requests: 64,
            // slurmrestd takes nine seconds to report that its controller is unreachable. Less than `step_wall`, so
            // that a policy receives the error.
            request_wall: Duration::from_secs(20),
            // The jobs of a busy Slurm cluster in slurmrestd's format.
            response_bytes: 4 * 1024 * 1024,
        }
    }
}
