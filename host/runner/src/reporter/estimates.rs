//! When the drain will probably end, told to readers. It must not know how that is found out.

use scupper_engine::{Request, Time};
use scupper_forecast::EndTimes;

use super::Reporter;

impl Reporter {
    /// When the drain will probably end is known.
    pub(crate) fn on_end_times(&mut self, now: Time, request: &Request, played: EndTimes) {
        if let Some(estimate) = self.publisher.set_end_times(now, played) {
            self.sink.estimate(now, &estimate);
            self.blocked.estimated(now, &estimate);
            if let Some(event) = estimate.event(now, request) {
                self.tell(now, request, [event]);
            }
        }
    }

    /// It was played again, from where it is. Told to whoever reads on only if what was known before would mislead.
    pub(crate) fn on_other_end_times(&mut self, now: Time, played: EndTimes) {
        let before = self.publisher.estimate(now);
        if let Some(estimate) = self.publisher.set_end_times(now, played)
            && before.is_none_or(|before| !before.covers(&estimate))
        {
            self.sink.estimate(now, &estimate);
            self.blocked.estimated(now, &estimate);
        }
    }
}
