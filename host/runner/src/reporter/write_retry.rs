//! How often, and after which pauses, to retry a write that the API server does not accept.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use scupper_cluster::{Cluster, KubernetesEvent, WriteError};

/// After the first failure; doubled after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// One write's failures.
#[derive(Clone, Copy, Debug)]
pub struct WriteRetry {
    failed: u32,
    refused: u32,
    unanswered_since: Option<Instant>,
    limits: WriteRetryLimits,
}

/// When to give a write up.
#[derive(Clone, Copy, Debug)]
pub struct WriteRetryLimits {
    /// So many refusals. More than one, because an API server also refuses for a short time after its restart.
    pub refusals: u32,
    /// So long without an answer; `None`: never.
    pub unanswered_for: Option<Duration>,
}

impl WriteRetryLimits {
    /// For an Event that is of little use later.
    pub const FOR_A_MINUTE: Self = Self {
        refusals: 3,
        unanswered_for: Some(Duration::from_secs(60)),
    };
}

impl WriteRetry {
    /// Of a write that has not been tried.
    pub const fn new(limits: WriteRetryLimits) -> Self {
        Self {
            failed: 0,
            refused: 0,
            unanswered_since: None,
            limits,
        }
    }

    /// It has failed before.
    pub const fn has_failed(&self) -> bool {
        self.failed > 0
    }

    /// It failed again: the pause before the next attempt; `None`: give up.
    pub fn failed(&mut self, error: &WriteError) -> Option<Duration> {
        self.failed = self.failed.saturating_add(1);
        let is_over = if matches!(error, WriteError::Rejected { .. }) {
            self.refused = self.refused.saturating_add(1);
            self.unanswered_since = None;
            error.is_not_found() || self.refused >= self.limits.refusals
        } else {
            let since = *self.unanswered_since.get_or_insert_with(Instant::now);
            let limit = self.limits.unanswered_for;
            limit.is_some_and(|limit| since.elapsed() >= limit)
        };
        (!is_over).then(|| pause(self.failed))
    }
}

/// Emits an Event about a node, and retries until it is written or the limits are reached.
pub async fn emit(cluster: &Cluster, event: &KubernetesEvent, limits: WriteRetryLimits) {
    let mut retry = WriteRetry::new(limits);
    while let Err(error) = cluster.emit(event).await {
        let KubernetesEvent { node, reason, .. } = event;
        let Some(pause) = retry.failed(&error) else {
            tracing::warn!(node, %error, "the Event {reason} could not be written");
            return;
        };
        tracing::debug!(node, %error, "the Event {reason} could not be written yet");
        sleep(pause).await;
    }
}

fn pause(failed: u32) -> Duration {
    let doublings = failed.saturating_sub(1).min(16);
    FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WriteRetryLimits = WriteRetryLimits {
        refusals: 3,
        unanswered_for: None,
    };

    fn rejected(code: u16) -> WriteError {
        WriteError::Rejected {
            what: "write".into(),
            code,
            message: "no".into(),
        }
    }

    fn unavailable() -> WriteError {
        WriteError::Unavailable {
            what: "write".into(),
            message: "503".into(),
        }
    }

    #[test]
    fn no_answer_is_waited_out_with_pauses_that_grow() {
        let mut retry = WriteRetry::new(LIMITS);
        let pauses: Vec<_> = (0..50).map(|_| retry.failed(&unavailable()).unwrap()).collect();
        assert_eq!(pauses.first(), Some(&FIRST_PAUSE));
        assert_eq!(pauses.last(), Some(&LONGEST_PAUSE));
        assert!(pauses.is_sorted());
    }

    #[test]
    fn a_refusal_is_retried_a_few_times_and_a_missing_object_is_not() {
        let mut retry = WriteRetry::new(LIMITS);
        let pauses = [(); 3].map(|()| retry.failed(&rejected(403)).is_some());
        assert_eq!(pauses, [true, true, false]);
        assert_eq!(WriteRetry::new(LIMITS).failed(&rejected(404)), None);
    }

    #[test]
    fn a_write_without_an_answer_does_not_count_as_a_refusal() {
        // The API server restarts: first no answers, then some 403 until its rights are read.
        let mut retry = WriteRetry::new(LIMITS);
        for _ in 0..7 {
            assert!(retry.failed(&unavailable()).is_some());
        }
        let pauses = [(); 3].map(|()| retry.failed(&rejected(403)).is_some());
        assert_eq!(pauses, [true, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_without_an_answer_is_given_up_after_its_time() {
        let mut retry = WriteRetry::new(WriteRetryLimits {
            unanswered_for: Some(Duration::from_secs(60)),
            ..LIMITS
        });
        assert!(retry.failed(&unavailable()).is_some());
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(retry.failed(&unavailable()), None);
    }
}
