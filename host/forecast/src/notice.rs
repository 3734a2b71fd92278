//! The notice to workloads before their pods leave (`drain.notify-before`).

use std::time::Duration;

use scupper_engine::{HumanDuration, Settings};

/// The name of its hooks, which are the host's. No policy can have it.
pub const NOTICE: &str = "notify before";

/// Why a drain does not begin that would end before its first pod may leave. `left`: until its deadline; pods that have
/// finished do not count.
pub fn notice_refusal(settings: &Settings, left: Duration, has_leaving_pods: bool) -> Option<String> {
    let before = settings.notice()?;
    (has_leaving_pods && before >= left).then(|| {
        format!(
            "no pod may leave for {} (drain.notify-before), and the drain's deadline is in {}: give it more time, or \
             notify later",
            HumanDuration(before),
            // A deadline that was asked for now is a whole number of seconds.
            HumanDuration(Duration::from_secs_f64(left.as_secs_f64().round()))
        )
    })
}
