//! The phases of a drain and the moves between them.

use super::Drain;
use crate::{HookPhase, Notice, Phase, Subject};

/// Every move there is. A drain that resumes after a restart moves from planning to where it was.
const MOVES: &[(Phase, &[Phase])] = &[
    (
        Phase::Planning,
        &[
            Phase::Preparing,
            Phase::Cordoning,
            Phase::Holding,
            Phase::RollingBack,
            Phase::Uncordoning,
            Phase::Finished,
        ],
    ),
    (
        Phase::Preparing,
        &[Phase::Cordoning, Phase::RollingBack, Phase::Finished],
    ),
    (
        Phase::Cordoning,
        &[
            Phase::Preparing,
            Phase::Holding,
            Phase::RollingBack,
            Phase::Finished,
        ],
    ),
    // What had ended well before is over without being rolled back.
    (
        Phase::Holding,
        &[Phase::Evicting, Phase::RollingBack, Phase::Finished],
    ),
    (
        Phase::Evicting,
        &[
            Phase::Detaching,
            Phase::Verifying,
            Phase::RollingBack,
            Phase::Finished,
        ],
    ),
    (
        Phase::Detaching,
        &[
            Phase::Evicting,
            Phase::Verifying,
            Phase::RollingBack,
            Phase::Finished,
        ],
    ),
    (
        Phase::Verifying,
        &[Phase::Evicting, Phase::RollingBack, Phase::Finished],
    ),
    (Phase::RollingBack, &[Phase::Finished]),
    (Phase::Uncordoning, &[Phase::Finished]),
    (Phase::Finished, &[]),
];

impl Drain {
    /// Moves to the next phase and reports it.
    pub(super) fn enter(&mut self, next: Phase) {
        debug_assert!(
            is_allowed(self.phase, next),
            "no move from {} to {next}",
            self.phase
        );
        self.phase = next;
        self.outbox.notify(Notice::Phase(next));
    }

    /// Does everything that can be done now. Looks at the state, not at what has just happened: an event that
    /// comes twice changes nothing, and a drain that is taken up again goes on by itself.
    pub(super) fn advance(&mut self) {
        self.timer = None;
        if self.phase.is_last() {
            return;
        }
        self.check_deadline();
        self.take_back_removals();
        self.take_back_surges();
        self.note_cordon();
        self.prune_deleted();
        loop {
            let before = (self.phase, self.outcome.is_some());
            self.run_phase();
            if (self.phase, self.outcome.is_some()) == before {
                break;
            }
        }
        self.take_raises_back();
        self.save();
        self.measure();
        self.report_reasons();
    }

    fn run_phase(&mut self) {
        if self.outcome.is_none() && self.phase.follows_plan() {
            self.plan_newcomers();
            self.skip_overdue();
        }
        match self.phase {
            Phase::RollingBack => self.roll_back(),
            Phase::Finished => {}
            _ if self.outcome.is_some() => self.finalize(),
            Phase::Planning => self.plan_first(),
            Phase::Preparing => self.prepare(),
            Phase::Cordoning => self.cordon(),
            Phase::Holding => self.hold(),
            Phase::Evicting => self.empty_node(),
            Phase::Detaching => self.detach(),
            Phase::Verifying => self.verify(),
            Phase::Uncordoning => self.uncordon(),
        }
    }

    fn hold(&mut self) {
        if self.gate(HookPhase::BeforeDrain, &Subject::Node).is_open() {
            self.begin_evictions();
            self.enter(Phase::Evicting);
        }
    }
}

fn is_allowed(from: Phase, to: Phase) -> bool {
    MOVES
        .iter()
        .any(|(phase, next)| *phase == from && next.contains(&to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_has_its_moves_and_only_the_last_has_none() {
        for phase in Phase::ALL {
            let rows: alloc::vec::Vec<_> = MOVES.iter().filter(|(from, _)| *from == phase).collect();
            assert_eq!(rows.len(), 1, "{phase}");
            assert_eq!(rows[0].1.is_empty(), phase == Phase::Finished, "{phase}");
            assert!(!is_allowed(phase, phase), "{phase}");
        }
    }
}
