//! The deadline ladder: actions on jobs that still run shortly before the drain's deadline, one per rung. Empty by default.

use std::time::Duration;

use scupper_sdk::{Drain, config, time};

/// One rung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rung {
    /// How long before the deadline.
    pub(crate) before: Duration,
    pub(crate) action: Action,
}

/// What to do to the jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Send them a signal.
    Signal(String),
    /// Requeue them, if Slurm supports it (26.05).
    Requeue,
    /// Set the node down: Slurm requeues the jobs that allow it and kills the others.
    Down,
    /// Cancel them.
    Cancel,
}

/// The allowed signals. To end a job, use `cancel`.
const SIGNALS: [&str; 8] = ["USR1", "USR2", "TERM", "INT", "HUP", "QUIT", "ALRM", "CONT"];

/// Reads `15m signal USR1, 5m signal TERM, 2m requeue, 1m cancel`.
pub(crate) fn read(text: &str) -> Result<Vec<Rung>, String> {
    let rungs = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let rungs: Vec<Rung> = rungs.map(rung).collect::<Result<_, _>>()?;
    let mut pairs = rungs.iter().zip(rungs.iter().skip(1));
    match pairs.find(|(first, second)| first.before <= second.before) {
        Some((first, second)) => Err(format!(
            "the rung {}s before the deadline must come before that of {}s",
            second.before.as_secs(),
            first.before.as_secs()
        )),
        None => Ok(rungs),
    }
}

/// When a rung is due, in milliseconds. A ladder longer than the drain is scaled down in proportion. `None`: no such rung, or
/// no deadline.
pub(crate) fn due(ladder: &[Rung], rung: usize, drain: &Drain) -> Option<u64> {
    let (deadline, before) = (drain.deadline?, milliseconds(ladder.get(rung)?.before));
    let (drain, whole) = (deadline.saturating_sub(drain.started), length(ladder));
    let before = if whole > drain {
        let share = u128::from(before).saturating_mul(u128::from(drain));
        u64::try_from(share.checked_div(u128::from(whole))?).unwrap_or(drain)
    } else {
        before
    };
    Some(deadline.saturating_sub(before))
}

/// Why this drain is too short for the ladder; `None` if it is not.
pub(crate) fn misfit(ladder: &[Rung], drain: &Drain) -> Option<String> {
    let (has, needs) = (drain.deadline?.saturating_sub(drain.started), length(ladder));
    (needs > has).then(|| {
        format!(
            "the ladder begins {} before the deadline, and this drain has {}: give the drain more time, shorten \
             `ladder`, or set `ladder-too-long` to `scale`",
            time::length(Duration::from_millis(needs)),
            time::length(Duration::from_millis(has))
        )
    })
}

/// The time from the first rung to the deadline.
fn length(ladder: &[Rung]) -> u64 {
    ladder.first().map_or(0, |rung| milliseconds(rung.before))
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Action {
    /// Whether it needs the method DELETE.
    pub(crate) const fn deletes(&self) -> bool {
        matches!(self, Self::Signal(_) | Self::Cancel)
    }
}

fn rung(text: &str) -> Result<Rung, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let wrong = || {
        format!(
            "`{text}`: must be a time before the deadline and an action, such as `15m signal USR1` or `1m cancel`"
        )
    };
    let (time, action) = words.split_first().ok_or_else(wrong)?;
    let before = config::duration(time).ok_or_else(wrong)?;
    let action = match action {
        ["signal", name] => {
            let name = name.strip_prefix("SIG").unwrap_or(name);
            let known = SIGNALS.contains(&name);
            known.then(|| Action::Signal(name.to_owned())).ok_or_else(|| {
                format!(
                    "`{name}`: must be one of {}; to end jobs use `cancel`",
                    SIGNALS.join(", ")
                )
            })?
        }
        ["requeue"] => Action::Requeue,
        ["down"] => Action::Down,
        ["cancel"] => Action::Cancel,
        _ => {
            return Err(format!(
                "`{text}`: the actions are `signal NAME`, `requeue`, `down` and `cancel`"
            ));
        }
    };
    Ok(Rung { before, action })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use scupper_sdk::Drain;

    use super::{Action, due, misfit, read};

    #[test]
    fn rungs_are_read_in_order() {
        let rungs = read("1h signal SIGUSR1, 5m signal TERM, 2m requeue, 90s down, 1m cancel").unwrap();
        let actions: Vec<_> = rungs.iter().map(|rung| &rung.action).collect();
        assert_eq!(
            actions,
            [
                &Action::Signal("USR1".to_owned()),
                &Action::Signal("TERM".to_owned()),
                &Action::Requeue,
                &Action::Down,
                &Action::Cancel
            ]
        );
        assert_eq!(rungs[0].before, Duration::from_secs(3600));
        assert_eq!(read(" "), Ok(Vec::new()));
    }

    #[test]
    fn a_wrong_rung_is_reported_with_the_valid_ones() {
        for (text, words) in [
            ("cancel", "`15m signal USR1`"),
            ("5 cancel", "`15m signal USR1`"),
            ("0m cancel", "`15m signal USR1`"),
            ("m cancel", "`15m signal USR1`"),
            ("ö cancel", "`15m signal USR1`"),
            ("5m kill", "`down` and `cancel`"),
            ("5m signal", "`signal NAME`"),
            ("5m signal KILL", "use `cancel`"),
            ("5m signal USR1&x=1", "use `cancel`"),
            ("1m signal TERM, 5m cancel", "must come before"),
            ("5m signal TERM, 5m cancel", "must come before"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }

    /// A drain that began at 1,000 s.
    fn drain(deadline: Option<u64>) -> Drain {
        Drain {
            id: String::new(),
            name: String::new(),
            trigger: String::new(),
            started: 1_000_000,
            found_drained: false,
            held: false,
            deadline,
            now: 1_000_000,
        }
    }

    #[test]
    fn a_scaled_ladder_keeps_its_proportions() {
        let ladder = read("15m signal USR1, 5m signal TERM, 1m cancel").unwrap();
        let rungs = |deadline| [0, 1, 2, 3].map(|rung| due(&ladder, rung, &drain(deadline)));
        assert_eq!(rungs(None), [None; 4]);
        // Half an hour: as configured.
        assert_eq!(
            rungs(Some(2_800_000)),
            [Some(1_900_000), Some(2_500_000), Some(2_740_000), None]
        );
        // Thirty seconds: at once, after 20 s, after 28 s.
        assert_eq!(
            rungs(Some(1_030_000)),
            [Some(1_000_000), Some(1_020_000), Some(1_028_000), None]
        );
        assert_eq!(
            rungs(Some(1_000_000)),
            [Some(1_000_000), Some(1_000_000), Some(1_000_000), None]
        );
    }

    #[test]
    fn a_misfit_names_the_time_the_ladder_needs_and_the_drain_has() {
        let ladder = read("15m signal USR1, 1m cancel").unwrap();
        assert_eq!(misfit(&ladder, &drain(Some(1_900_000))), None);
        assert_eq!(misfit(&ladder, &drain(None)), None);
        assert_eq!(misfit(&[], &drain(Some(1_000_000))), None);
        let reported = misfit(&ladder, &drain(Some(1_030_000))).unwrap();
        assert!(
            reported.starts_with("the ladder begins 15m before the deadline, and this drain has 30s: "),
            "{reported}"
        );
    }
}
