//! Small pieces of English that several reporters need, and what is worth none.

use scupper_engine::Reason;

use crate::text::spaced_line;

/// `1 pod`, `2 pods`.
pub(crate) fn count(n: usize, one: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {one}s")
    }
}

/// Whatever others wrote, on one line and with nothing in it that cannot be seen, so that it cannot pass for our own
/// lines.
pub(crate) fn one_line(text: &str) -> String {
    spaced_line(text)
}

/// What every pod goes through: other lines tell of it.
pub(crate) const fn is_ordinary(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::NotPlanned
            | Reason::PlannerFailed { .. }
            | Reason::Kept
            | Reason::WaveNotStarted { .. }
            | Reason::HookRunning { .. }
            | Reason::ParallelLimit
            | Reason::EvictionRequested
            | Reason::NodeUncordoned
            | Reason::Terminating { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_the_plural_from_two_on() {
        assert_eq!(count(1, "pod"), "1 pod");
        assert_eq!(count(0, "pod"), "0 pods");
        assert_eq!(count(12, "wave"), "12 waves");
    }

    #[test]
    fn foreign_text_stays_on_its_line() {
        assert_eq!(one_line("a\nb\x1b[2Jc"), "a b [2Jc");
        assert_eq!(one_line("web\u{200b}-1\u{e0041}"), r"web\u{200b}-1\u{e0041}");
    }
}
