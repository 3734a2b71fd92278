//! The progress of the drain, in one line.

use super::decide::Decision;

const GIB: u64 = 1024;

/// How many servers have left.
pub(super) fn count(decision: &Decision, host: &str) -> String {
    let all = decision.present + decision.gone;
    if all == 0 {
        return format!("no servers on {host}");
    }
    let have = if all == 1 { "has" } else { "have" };
    format!(
        "{} of {} {have} left {host}",
        decision.gone,
        scupper_sdk::count(all, "server")
    )
}

/// How many servers are migrating, and how much memory remains.
pub(super) fn moving(decision: &Decision) -> String {
    let mut words = format!("{} moving", decision.moving);
    if decision.memory_left > 0 {
        words.push_str(&format!(", {} of memory to go", size(decision.memory_left)));
        if decision.rate > 0 {
            words.push_str(&format!(" at {} MiB/s", decision.rate));
        }
    }
    words
}

/// From MiB.
fn size(mib: u64) -> String {
    if mib < 10 * GIB {
        return format!("{mib} MiB");
    }
    format!("{}.{} GiB", mib / GIB, mib % GIB * 10 / GIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shown_if_known_and_in_large_units_if_large() {
        let of = |memory_left, rate| {
            moving(&Decision {
                moving: 2,
                memory_left,
                rate,
                ..Decision::default()
            })
        };
        assert_eq!(of(0, 0), "2 moving");
        assert_eq!(of(512, 0), "2 moving, 512 MiB of memory to go");
        assert_eq!(of(32_000, 750), "2 moving, 31.2 GiB of memory to go at 750 MiB/s");
    }
}
