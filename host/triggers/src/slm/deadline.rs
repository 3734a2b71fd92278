//! Computes a deadline early enough to report the end before the event expires. It must not know whose deadline it is.

use std::time::Duration;

use scupper_engine::Time;

/// Maximum margin: the time that the engine gives hooks to roll back their changes.
const LONGEST_MARGIN: Duration = Duration::from_secs(15);

/// The driver's own deadline for an event that expires at `sla`, was first seen claimed at `claimed`, and had `length`
/// (if known) when it was claimed. It is never before the claim.
pub(super) fn own_deadline(sla: Time, length: Option<Duration>, claimed: Time) -> Time {
    let seen = sla.since(claimed);
    let margin = LONGEST_MARGIN.min(length.unwrap_or(seen) / 5);
    (sla - margin).max(claimed.min(sla))
}

/// The event length that leaves a drain `own` of working time.
pub(super) fn with_margin(own: Duration) -> Duration {
    own.saturating_add(LONGEST_MARGIN.min(own / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_fifth_back_but_at_most_fifteen_seconds() {
        let claimed = Time::from_millis(1_000_000);
        let own = |sla_secs: u64, length: Option<u64>| {
            let sla = Time::from_millis(1_000_000 + sla_secs * 1000);
            own_deadline(sla, length.map(Duration::from_secs), claimed)
                .since(claimed)
                .as_secs()
        };
        assert_eq!(own(1800, Some(1800)), 1785);
        assert_eq!(own(75, Some(75)), 60);
        assert_eq!(own(60, Some(60)), 48);
        assert_eq!(own(10, Some(10)), 8);
        assert_eq!(own(0, Some(0)), 0);
        // The length is unknown: the time that remains when the claim is first seen counts.
        assert_eq!(own(50, None), 40);
        // Seen late, a minute before its end: the margin is that of the whole length.
        assert_eq!(own(60, Some(300)), 45);
        // Never before the claim was first seen.
        assert_eq!(own(4, Some(300)), 0);
    }

    #[test]
    fn the_margin_leaves_the_requested_time_intact() {
        let claimed = Time::from_millis(1_000_000);
        for seconds in [1, 4, 10, 60, 75, 3600] {
            let wanted = Duration::from_secs(seconds);
            let length = with_margin(wanted);
            let sla = claimed + length;
            assert_eq!(own_deadline(sla, Some(length), claimed), claimed + wanted);
        }
    }

    #[test]
    fn a_deadline_before_the_claim_stays_where_it_is() {
        let claimed = Time::from_millis(50_000);
        assert_eq!(
            own_deadline(Time::from_millis(40_000), None, claimed),
            Time::from_millis(40_000)
        );
    }
}
