//! How earlier policies of the chain protect a pod: what a later policy may add to, but not take away.

use crate::{Decision, Hold, Verdict, Wave};

/// The author of the host's own draft, which no policy has decided.
const HOST: &str = "kubectl";

/// What earlier policies decided for a pod.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Protection {
    /// `None`: it is the host's.
    verdict: Option<Verdict>,
    hold: Option<Hold>,
}

/// What a policy wants for a pod.
pub(crate) struct Wish<'w> {
    pub(crate) verdict: Verdict,
    pub(crate) hold: Option<Hold>,
    pub(crate) reason: &'w str,
}

impl Protection {
    /// Of a pod with this decision, in this wave.
    pub(crate) fn of(decision: &Decision, wave: Option<&Wave>) -> Self {
        let is_policys = !decision.policy.is_empty() && decision.policy != HOST;
        let hold = wave.and_then(|wave| Hold::of_wave(&wave.name));
        Self {
            verdict: is_policys.then_some(decision.verdict),
            hold: hold.map(|(_, hold)| hold).filter(|_| decision.verdict.removes()),
        }
    }

    /// Whether it holds the pod for longer than a hold, or than none.
    pub(crate) fn outlasts(&self, other: Option<Hold>) -> bool {
        self.hold.is_some_and(|own| Some(own.longest(other)) != other)
    }

    /// The hold that counts beside this one; `None`: the pod is held like this already.
    pub(crate) fn longest(&self, hold: Hold) -> Option<Hold> {
        let longest = hold.longest(self.hold);
        (longest == hold || Some(longest) != self.hold).then_some(longest)
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
        let is_longer = |hold: Hold| Some(hold.longest(self.hold)) != self.hold;
        let is_longer = verdict.removes() && wish.hold.is_some_and(is_longer);
        (is_stricter || is_longer).then(|| {
            let hold = wish.hold.map_or(self.hold, |hold| Some(hold.longest(self.hold)));
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
