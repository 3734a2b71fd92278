//! The memory of a process, as the kernel has it.

/// A field of `/proc/PID/status`, in KiB; `None`: the process has just ended.
pub(crate) fn kib(pid: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let text = status.lines().find_map(|line| line.strip_prefix(field))?;
    text.split_whitespace().next()?.parse().ok()
}
