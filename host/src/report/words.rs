//! Small pieces of English that several reporters need.

use scupper_engine::{HookPhase, Phase};

/// `1 pod`, `2 pods`.
pub(crate) fn count(n: usize, one: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {one}s")
    }
}

/// What a phase of a drain is called.
pub(crate) const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Planning => "planning",
        Phase::Preparing => "preparing",
        Phase::Cordoning => "cordoning",
        Phase::Holding => "holding",
        Phase::Evicting => "evicting",
        Phase::Verifying => "verifying",
        Phase::RollingBack => "rolling back",
        Phase::Uncordoning => "uncordoning",
        Phase::Finished => "finished",
    }
}

/// What a hook's phase is called, as policy authors write it.
pub(crate) const fn hook_phase(phase: HookPhase) -> &'static str {
    match phase {
        HookPhase::BeforeCordon => "before-cordon",
        HookPhase::BeforeDrain => "before-drain",
        HookPhase::BeforeWave => "before-wave",
        HookPhase::BeforeEvict => "before-evict",
        HookPhase::AfterDrain => "after-drain",
        HookPhase::OnCancel => "on-cancel",
        HookPhase::BeforeUncordon => "before-uncordon",
        HookPhase::AfterUncordon => "after-uncordon",
    }
}

/// Whatever others wrote, on one line and without control characters, so that it cannot pass for our own lines.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
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
    }
}
