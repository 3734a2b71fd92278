//! What a policy undoes when a drain ends without being done: one rule for all policies that have the key `on-failure`.

/// Whether what the drain changed is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// As the cordon: undone if it is lifted, kept if it stays.
    Follow,
    /// It is undone.
    Undo,
    /// It stays, and the uncordon undoes it.
    Keep,
}

impl OnFailure {
    /// The words of the key `on-failure`.
    pub const CHOICES: [(&'static str, Self); 3] = [
        ("follow", Self::Follow),
        ("undo", Self::Undo),
        ("keep", Self::Keep),
    ];

    /// `held`: the cordon stays (`drain.held`).
    #[must_use]
    pub const fn undoes(self, held: bool) -> bool {
        match self {
            Self::Follow => !held,
            Self::Undo => true,
            Self::Keep => false,
        }
    }
}
