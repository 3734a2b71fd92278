//! The limits for reloading policies. Every default is a named constant with its reason.

use std::time::Duration;

use scupper_engine::{Time, whole_millis};

/// The thresholds for rejection and rollback, and their durations.
#[derive(Clone, Copy, Debug)]
pub struct ReloadRules {
    /// Candidates of one policy that may follow each other without a pause.
    pub burst: u32,
    /// The interval between the end of a candidate's load and the next candidate that counts as calm. Compile time does
    /// not count: a slow candidate would otherwise keep the compiler busy for ever.
    pub calm: Duration,
    /// The first pause after a burst; each further one is twice as long.
    pub pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// Failed calls within `window` after which the previous revision replaces this one.
    pub faults: usize,
    /// See `faults`.
    pub window: Duration,
    /// The first quarantine of a revision that was rolled back; each further one is twice as long.
    pub quarantine: Duration,
    /// The longest quarantine.
    pub longest_quarantine: Duration,
    /// The pause before a retry of a candidate that failed for an external reason, such as a full disk. If each retry
    /// is a compilation, each pause is twice as long, up to the first quarantine.
    pub retry: Duration,
}

impl Default for ReloadRules {
    fn default() -> Self {
        Self {
            // An author who saves every few seconds is never slowed down; a flapping tag is, to one candidate a minute.
            burst: 3,
            calm: Duration::from_secs(4),
            pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(60),
            // One failure can be caused by the input; three in ten minutes are caused by the policy.
            faults: 3,
            window: Duration::from_secs(600),
            quarantine: Duration::from_secs(600),
            longest_quarantine: Duration::from_secs(24 * 3600),
            retry: Duration::from_secs(30),
        }
    }
}

/// Doubles each time, plus up to a quarter at random: nodes that failed together must not retry together.
pub(super) fn backoff(first: Duration, longest: Duration, times: u32, random: u64) -> Duration {
    let doubled = first.saturating_mul(1_u32 << times.min(20));
    let span = whole_millis(doubled.min(longest));
    Duration::from_millis(span + (span / 4 + 1) * (random % 1024) / 1024)
}

/// The rate limit for candidates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CandidateRate {
    /// The time when the last candidate was finished, or, if it is unfinished, when it was started.
    last: Option<Time>,
    /// Candidates since the last calm.
    hurried: u32,
    /// The earliest time of the next try.
    next: Time,
}

impl CandidateRate {
    /// The time when the next candidate may be tried, if not now. A try counts.
    pub(super) fn admit(&mut self, now: Time, rules: &ReloadRules, random: u64) -> Result<(), Time> {
        if now < self.next {
            return Err(self.next);
        }
        let gap = self.last.map(|last| now.since(last));
        let enough = self.last.map_or(rules.calm, |last| {
            self.next.since(last).saturating_mul(2).max(rules.calm)
        });
        self.hurried = match gap {
            Some(gap) if gap < enough => self.hurried.saturating_add(1),
            _ => 1,
        };
        self.last = Some(now);
        self.next = match self.hurried.checked_sub(rules.burst) {
            Some(over) => now + backoff(rules.pause, rules.longest_pause, over, random),
            None => now,
        };
        Ok(())
    }

    /// The last admitted candidate is active or rejected. Pauses that began with it start again now.
    pub(super) fn through(&mut self, now: Time) {
        if let Some(last) = self.last.replace(now) {
            self.next = now + self.next.since(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tries of a candidate that arrives every this many milliseconds, for a minute.
    fn tried_in_a_minute(every: u64) -> usize {
        let (mut pace, rules) = (CandidateRate::default(), ReloadRules::default());
        (0..60_000 / every)
            .filter(|turn| {
                pace.admit(Time::from_millis(1 + turn * every), &rules, 512)
                    .is_ok()
            })
            .count()
    }

    #[test]
    fn who_saves_every_few_seconds_is_never_slowed_down() {
        assert_eq!(tried_in_a_minute(5_000), 12);
    }

    #[test]
    fn a_thousand_pushes_a_minute_are_a_handful_of_tries() {
        let tried = tried_in_a_minute(60);
        assert!((3..=10).contains(&tried), "{tried}");
    }

    /// The candidates tried in ten minutes if there is always another one, and each takes this long.
    fn tried_in_ten_minutes(takes: u64) -> usize {
        let (mut pace, rules) = (CandidateRate::default(), ReloadRules::default());
        let (mut now, mut tried) = (1, 0);
        while now < 600_000 {
            match pace.admit(Time::from_millis(now), &rules, 512) {
                Ok(()) => {
                    tried += 1;
                    now += takes;
                    pace.through(Time::from_millis(now));
                }
                Err(next) => now = next.as_millis(),
            }
        }
        tried
    }

    #[test]
    fn slow_compilations_are_rate_limited_like_any_other() {
        let quick = tried_in_ten_minutes(50);
        assert!((10..=20).contains(&quick), "{quick}");
        for takes in [3_900, 4_100, 6_000, 30_000] {
            let slow = tried_in_ten_minutes(takes);
            assert!((6..=quick).contains(&slow), "{takes} ms each: {slow} of {quick}");
        }
    }

    #[test]
    fn a_candidate_after_a_calm_period_is_tried_at_once() {
        let (mut pace, rules) = (CandidateRate::default(), ReloadRules::default());
        for turn in 0..20 {
            let begun = turn * 12_000 + 1;
            assert_eq!(pace.admit(Time::from_millis(begun), &rules, 512), Ok(()));
            pace.through(Time::from_millis(begun + 8_000));
        }
    }

    #[test]
    fn pauses_grow_to_their_bound_and_vary_by_a_quarter() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
        assert_eq!(backoff(first, longest, 0, 0), first);
        assert_eq!(backoff(first, longest, 3, 0), Duration::from_secs(8));
        for times in [6, 30, u32::MAX] {
            let span = backoff(first, longest, times, 1023);
            assert!((60_000..=75_001).contains(&whole_millis(span)), "{span:?}");
        }
    }
}
