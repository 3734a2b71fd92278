//! The phases of a drain, and the names of each: one table for logs, JSON, metrics, checkpoints and people.

use core::fmt;

/// The phase of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Phase {
    /// Pods are listed and the planners asked; nothing has been changed.
    Planning,
    /// Hooks run before the cordon.
    Preparing,
    /// The node is being cordoned.
    Cordoning,
    /// Hooks run before the first pod is asked to leave.
    Holding,
    /// Waves of pods leave.
    Evicting,
    /// A fresh list must show that they are gone, and then their volumes must be detached. Only where the settings say so.
    Detaching,
    /// A fresh list must show that they are gone, and the last hooks run.
    Verifying,
    /// The drain ended without being done; hooks undo what policies changed.
    RollingBack,
    /// Maintenance is over: hooks run and the cordon is lifted.
    Uncordoning,
    /// Over.
    Finished,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 10] = [
        Self::Planning,
        Self::Preparing,
        Self::Cordoning,
        Self::Holding,
        Self::Evicting,
        Self::Detaching,
        Self::Verifying,
        Self::RollingBack,
        Self::Uncordoning,
        Self::Finished,
    ];

    /// Its name, and its text for people. Other programs parse the names, and running drains have saved them, so these
    /// do not change.
    #[rustfmt::skip]
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Planning    => ("planning", "planning"),
            Self::Preparing   => ("preparing", "preparing (before-cordon hooks)"),
            Self::Cordoning   => ("cordoning", "cordoning"),
            Self::Holding     => ("holding", "holding (before-drain hooks)"),
            Self::Evicting    => ("evicting", "evicting"),
            Self::Detaching   => ("detaching", "detaching volumes"),
            Self::Verifying   => ("verifying", "verifying (after-drain hooks)"),
            Self::RollingBack => ("rolling back", "rolling back"),
            Self::Uncordoning => ("uncordoning", "uncordoning"),
            Self::Finished    => ("finished", "finished"),
        }
    }

    /// Its name in JSON, metrics, traces, errors and checkpoints.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// The phase of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// Its text for people: its name, and which hooks run in it.
    pub const fn text(self) -> &'static str {
        self.names().1
    }

    /// The plan is agreed, and the drain may have changed something.
    pub(crate) const fn is_past_planning(self) -> bool {
        !matches!(self, Self::Planning)
    }

    /// The node was cordoned, by this drain or before it.
    pub const fn is_past_cordoning(self) -> bool {
        !matches!(self, Self::Planning | Self::Preparing | Self::Cordoning)
    }

    /// The agreed plan is being carried out.
    pub const fn follows_plan(self) -> bool {
        matches!(self, Self::Preparing | Self::Cordoning) || self.needs_cordon()
    }

    /// The node is being emptied, and must stay cordoned for that.
    pub const fn needs_cordon(self) -> bool {
        matches!(
            self,
            Self::Holding | Self::Evicting | Self::Detaching | Self::Verifying
        )
    }

    /// No pod was asked to leave yet.
    pub(crate) const fn is_before_evictions(self) -> bool {
        matches!(
            self,
            Self::Planning | Self::Preparing | Self::Cordoning | Self::Holding
        )
    }

    /// Nothing comes after it.
    pub(crate) const fn is_last(self) -> bool {
        matches!(self, Self::Finished)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_text_begins_with_the_name_and_a_name_is_read_again() {
        for phase in Phase::ALL {
            assert!(phase.text().starts_with(phase.name()), "{phase}");
            assert_eq!(Phase::from_name(phase.name()), Some(phase));
        }
        assert_eq!(Phase::from_name("resting"), None);
    }

    #[test]
    fn phases_answer_as_in_this_table() {
        let table = [
            (Phase::Planning, ["before evictions"].as_slice()),
            (
                Phase::Preparing,
                &["past planning", "follows plan", "before evictions"],
            ),
            (
                Phase::Cordoning,
                &["past planning", "follows plan", "before evictions"],
            ),
            (
                Phase::Holding,
                &[
                    "past planning",
                    "past cordoning",
                    "follows plan",
                    "needs cordon",
                    "before evictions",
                ],
            ),
            (
                Phase::Evicting,
                &["past planning", "past cordoning", "follows plan", "needs cordon"],
            ),
            (
                Phase::Detaching,
                &["past planning", "past cordoning", "follows plan", "needs cordon"],
            ),
            (
                Phase::Verifying,
                &["past planning", "past cordoning", "follows plan", "needs cordon"],
            ),
            (Phase::RollingBack, &["past planning", "past cordoning"]),
            (Phase::Uncordoning, &["past planning", "past cordoning"]),
            (Phase::Finished, &["past planning", "past cordoning", "last"]),
        ];
        for (phase, expected) in table {
            let answers = [
                ("past planning", phase.is_past_planning()),
                ("past cordoning", phase.is_past_cordoning()),
                ("follows plan", phase.follows_plan()),
                ("needs cordon", phase.needs_cordon()),
                ("before evictions", phase.is_before_evictions()),
                ("last", phase.is_last()),
            ];
            let holds = answers.iter().filter(|(_, holds)| *holds);
            let holds: Vec<&str> = holds.map(|(name, _)| *name).collect();
            assert_eq!(holds, expected, "{phase}");
        }
    }
}
