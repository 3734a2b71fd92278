//! How earlier policies of the chain protect a pod: what a later policy may add to, but not take away.

use crate::{Decision, Hold, Verdict, Wave, held::Held};

/// The author of the host's own draft, which no policy has decided.
const HOST: &str = "kubectl";

/// What earlier policies decided for a pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct Protection {
    /// `None`: it is the host's.
    verdict: Option<Verdict>,
    /// By the policies that hold the pod.
    held: Option<Held>,
}

/// What a policy wants for a pod.
pub(crate) struct Wish<'w> {
    pub(crate) verdict: Verdict,
    pub(crate) hold: Option<Hold>,
    pub(crate) reason: &'w str,
}

impl Protection {
    /// None at all.
    pub(crate) const NONE: Self = Self {
        verdict: None,
        held: None,
    };

    /// Of a pod with this decision, in this wave.
    pub(crate) fn of(decision: &Decision, wave: Option<&Wave>) -> Self {
        let is_policys = !decision.policy.is_empty() && decision.policy != HOST;
        let held = wave.filter(|_| decision.verdict.removes());
        Self {
            verdict: is_policys.then_some(decision.verdict),
            held: held.and_then(|wave| Held::of_wave(&wave.name)),
        }
    }

    /// The policies that hold the pod, if any does.
    pub(crate) const fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// How long they hold it.
    fn hold(&self) -> Option<Hold> {
        self.held().map(Held::hold)
    }

    /// Whether it holds the pod for longer than a hold, or than none.
    pub(crate) fn outlasts(&self, other: Option<Hold>) -> bool {
        self.hold().is_some_and(|own| Some(own.longest(other)) != other)
    }

    /// The verdict and the reason if this is wanted as well; `None`: it protects the pod no more than this does. `why`: the
    /// reason so far.
    pub(crate) fn joined(&self, wish: &Wish<'_>, why: &str) -> Option<(Verdict, String)> {
        let earlier = self.verdict.unwrap_or(wish.verdict);
        let is_looser = wish.verdict.is_looser_than(earlier);
        let verdict = if is_looser { earlier } else { wish.verdict };
        let is_shorter = verdict.removes() && self.outlasts(wish.hold);
        if !is_looser && !is_shorter {
            return Some((verdict, wish.reason.to_owned()));
        }
        let is_stricter = earlier.is_looser_than(verdict);
        let own = self.hold();
        let is_longer = |hold: Hold| Some(hold.longest(own)) != own;
        let is_longer = verdict.removes() && wish.hold.is_some_and(is_longer);
        (is_stricter || is_longer).then(|| {
            let hold = wish.hold.map_or(own, |hold| Some(hold.longest(own)));
            let how = if verdict == Verdict::Delete {
                "deleted"
            } else {
                "evicted"
            };
            let when = hold.map_or_else(String::new, |hold| format!(" {hold}"));
            (verdict, format!("{how}{when}: {why}; {}", wish.reason))
        })
    }
}

impl Verdict {
    /// Whether the drain itself removes the pod: it evicts or deletes it.
    pub const fn removes(self) -> bool {
        matches!(self, Self::Evict | Self::Delete)
    }

    /// Whether it protects a pod less than another verdict.
    pub const fn is_looser_than(self, other: Self) -> bool {
        self.strictness() < other.strictness()
    }

    const fn strictness(self) -> u8 {
        match self {
            Self::Delete => 0,
            Self::Evict => 1,
            Self::AwaitCompletion => 2,
            Self::Keep => 3,
            Self::Refuse => 4,
        }
    }
}
