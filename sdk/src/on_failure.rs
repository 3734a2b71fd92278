//! What a policy undoes when a drain is cancelled or fails: one rule for all policies with the key `on-failure`.

/// Whether a policy undoes its changes when a drain is cancelled or fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Undo them if the cordon is lifted, keep them if it stays.
    Follow,
    /// Undo them.
    Undo,
    /// Keep them until the uncordon. If the cordon is lifted, the hook that keeps a change must fail, with a text that says what
    /// stays: Scupper reports it until an uncordon has undone it.
    Keep,
}

impl OnFailure {
    /// The values of the key `on-failure`.
    pub const CHOICES: [(&'static str, Self); 3] = [
        ("follow", Self::Follow),
        ("undo", Self::Undo),
        ("keep", Self::Keep),
    ];

    /// Whether to undo, where `held` says that the cordon stays (`drain.held`).
    #[must_use]
    pub const fn undoes(self, held: bool) -> bool {
        match self {
            Self::Follow => !held,
            Self::Undo => true,
            Self::Keep => false,
        }
    }
}
