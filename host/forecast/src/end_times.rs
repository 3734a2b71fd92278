//! When a drain that has begun will probably end.

use std::time::Duration;

use scupper_engine::Time;

use crate::Forecast;

/// The ends of the plays of a drain that has begun.
#[derive(Clone, Debug)]
pub struct EndTimes {
    /// When all of them began.
    began: Time,
    plays: usize,
    /// How long those took that drained the node, the shortest first.
    drained: Vec<Duration>,
}

impl EndTimes {
    /// Those of a forecast that was made at this time.
    pub fn of(forecast: Forecast, began: Time) -> Self {
        Self {
            began,
            plays: forecast.plays,
            drained: forecast.drained,
        }
    }

    /// The ends before which one of ten plays ends, one of two, and nine of ten, among those that have not ended by now.
    /// `None`: fewer of these drain the node, or all have ended.
    pub fn estimate(&self, now: Time) -> Option<[Time; 3]> {
        let elapsed = now.since(self.began);
        let over = self.drained.partition_point(|took| *took <= elapsed);
        let open = self.plays - over;
        let quantile = |tenths: usize| {
            let place = over + (open * tenths).div_ceil(10).max(1) - 1;
            self.drained.get(place).map(|took| self.began + *took)
        };
        Some([quantile(1)?, quantile(5)?, quantile(9)?])
    }
}
