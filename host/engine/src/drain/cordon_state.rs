//! Whose cordon is on the node, as far as this drain knows.
//!
//! ```text
//!             ask                answer lost
//! Unknown ◄────────► Asked ───────────────────► Unsure ──► Unknown
//!    │      refused    │                          │
//!    └─────────────────┴───────────┬──────────────┘   the node shows it, or the answer comes
//!                                  ▼
//!          Ours, Inherited, Foreign ──► Lifted        someone lifts it
//!                           Foreign, Lifted ──► Unknown   while cordoning: it is made anew
//! ```
//!
//! Only a cordon that is made, or found with the mark of this drain, becomes [`Cordon::Ours`].

use alloc::string::String;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Cordon {
    /// Not looked at yet, or there is none.
    #[default]
    Unknown,
    /// The write that makes it is under way.
    Asked,
    /// The answer to that write was lost: the cordon may stand. It may be asked for again meanwhile.
    Unsure,
    /// This drain made it.
    Ours,
    /// An earlier drain of ours made it: giving this one up does not lift it.
    Inherited,
    /// Others made it.
    Foreign,
    /// It was lifted, by us or by others: one that is seen later is not ours.
    Lifted,
}

/// Every move there is.
const MOVES: &[(Cordon, &[Cordon])] = &[
    (
        Cordon::Unknown,
        &[
            Cordon::Asked,
            Cordon::Ours,
            Cordon::Inherited,
            Cordon::Foreign,
            Cordon::Lifted,
        ],
    ),
    (
        Cordon::Asked,
        &[
            Cordon::Unknown,
            Cordon::Unsure,
            Cordon::Ours,
            Cordon::Inherited,
            Cordon::Foreign,
            Cordon::Lifted,
        ],
    ),
    (
        Cordon::Unsure,
        &[
            Cordon::Unknown,
            Cordon::Ours,
            Cordon::Inherited,
            Cordon::Foreign,
            Cordon::Lifted,
        ],
    ),
    (Cordon::Ours, &[Cordon::Lifted]),
    (Cordon::Inherited, &[Cordon::Lifted]),
    (Cordon::Foreign, &[Cordon::Unknown, Cordon::Lifted]),
    (Cordon::Lifted, &[Cordon::Unknown]),
];

/// The cordon, and what an unsure one was asked for on.
#[derive(Debug, Default)]
pub(super) struct CordonState {
    cordon: Cordon,
    /// While [`Cordon::Unsure`]: the node's version that the write was decided on.
    asked_on: Option<String>,
    /// The cordon of the mark that this drain has found was seen lifted: what stands there later is not of that mark.
    found_lifted: bool,
}

impl CordonState {
    /// As a checkpoint or the node says.
    pub(super) fn known(cordon: Cordon) -> Self {
        Self {
            cordon,
            ..Self::default()
        }
    }

    /// We made it, in this drain or an earlier one, and it was not lifted.
    pub(super) const fn is_ours(&self) -> bool {
        matches!(self.cordon, Cordon::Ours | Cordon::Inherited)
    }

    pub(super) fn is_inherited(&self) -> bool {
        self.cordon == Cordon::Inherited
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.cordon == Cordon::Unknown
    }

    pub(super) fn is_unsure(&self) -> bool {
        self.cordon == Cordon::Unsure
    }

    /// Its owner is known, or that it was lifted.
    pub(super) const fn is_decided(&self) -> bool {
        match self.cordon {
            Cordon::Unknown | Cordon::Asked | Cordon::Unsure => false,
            Cordon::Ours | Cordon::Inherited | Cordon::Foreign | Cordon::Lifted => true,
        }
    }

    /// The node has moved on from the version on which an unsure cordon was asked for: it was made by now, or never
    /// will be.
    pub(super) fn is_outdated_by(&self, version: Option<&String>) -> bool {
        self.is_unsure() && self.asked_on.as_ref() != version
    }

    /// The write goes out. One that follows a lost answer changes nothing: the first may have worked.
    pub(super) fn ask(&mut self) {
        if !self.is_unsure() {
            self.enter(Cordon::Asked);
        }
    }

    /// The write did not work, and never will.
    pub(super) fn refuse(&mut self) {
        if self.cordon == Cordon::Asked {
            self.enter(Cordon::Unknown);
        }
    }

    /// The answer to the write that was decided on this version was lost. That leaves no doubt where the node has shown
    /// already what became of it.
    pub(super) fn lose_answer(&mut self, version: String) {
        if matches!(self.cordon, Cordon::Asked | Cordon::Unsure) {
            self.enter(Cordon::Unsure);
            self.asked_on = Some(version);
        }
    }

    /// The write worked.
    pub(super) fn make(&mut self) {
        self.enter(Cordon::Ours);
    }

    /// The node shows whose it is.
    pub(super) fn find(&mut self, cordon: Cordon) {
        self.enter(cordon);
    }

    /// The node bears a mark that this drain has found, without its cordon.
    pub(super) const fn found_is_lifted(&mut self) {
        self.found_lifted = true;
    }

    /// A mark that this drain has found still says whose the cordon is.
    pub(super) const fn found_counts(&self) -> bool {
        !self.found_lifted
    }

    /// It is not there any more.
    pub(super) fn lift(&mut self) {
        self.enter(Cordon::Lifted);
    }

    /// The node is not cordoned and is to be: what was known of an earlier cordon does not count.
    pub(super) fn forget(&mut self) {
        if self.is_decided() {
            self.enter(Cordon::Unknown);
        }
    }

    fn enter(&mut self, next: Cordon) {
        debug_assert!(
            is_allowed(self.cordon, next),
            "no move from {:?} to {next:?}",
            self.cordon
        );
        self.cordon = next;
        self.asked_on = None;
    }
}

fn is_allowed(from: Cordon, to: Cordon) -> bool {
    from == to
        || MOVES
            .iter()
            .any(|(cordon, next)| *cordon == from && next.contains(&to))
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    const ALL: [Cordon; 7] = [
        Cordon::Unknown,
        Cordon::Asked,
        Cordon::Unsure,
        Cordon::Ours,
        Cordon::Inherited,
        Cordon::Foreign,
        Cordon::Lifted,
    ];

    /// A row for each state: the states that it can become, by their first letters. `s` is Unsure.
    const TABLE: &str = "
        Unknown    . A . O I F L
        Asked      U . s O I F L
        Unsure     U . . O I F L
        Ours       . . . . . . L
        Inherited  . . . . . . L
        Foreign    U . . . . . L
        Lifted     U . . . . . .
    ";

    #[test]
    fn the_moves_are_those_of_the_table() {
        let mut drawn = String::from("\n");
        for from in ALL {
            drawn.push_str(&format!("        {:<10}", format!("{from:?}")));
            for (to, letter) in ALL.into_iter().zip(["U", "A", "s", "O", "I", "F", "L"]) {
                let moves = from != to && is_allowed(from, to);
                drawn.push_str(&format!(" {}", if moves { letter } else { "." }));
            }
            drawn.push('\n');
        }
        drawn.push_str("    ");
        assert_eq!(drawn, TABLE);
    }

    #[test]
    fn each_state_has_one_row() {
        for state in ALL {
            let rows = MOVES.iter().filter(|(from, _)| *from == state);
            assert_eq!(rows.count(), 1, "{state:?}");
        }
    }

    #[test]
    fn a_cordon_of_others_or_a_lifted_one_never_becomes_ours() {
        for from in [Cordon::Foreign, Cordon::Lifted] {
            for to in [Cordon::Ours, Cordon::Inherited] {
                assert!(!is_allowed(from, to), "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn a_lost_answer_leaves_doubt_until_the_node_moves_on() {
        let (old, new) = (String::from("5"), String::from("6"));
        let mut cordon = CordonState::default();
        cordon.ask();
        assert!(!cordon.is_outdated_by(Some(&new)));
        cordon.lose_answer(old.clone());
        cordon.ask();
        cordon.refuse();
        assert!(cordon.is_unsure(), "the second try says nothing of the first");
        assert!(!cordon.is_outdated_by(Some(&old)));
        assert!(cordon.is_outdated_by(Some(&new)));
        cordon.find(Cordon::Ours);
        cordon.lose_answer(old);
        assert!(cordon.is_ours(), "the node has shown it");
    }
}
