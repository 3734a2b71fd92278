//! A hook of five steps, and one that reverts them: each logs that it was taken. A pod named `hold-N` blocks the step
//! of that number, and `hold-cancel` the last one.

use std::time::Duration;

use guests::{Call, Outcome, Phase, log};

guests::about!();
guests::hooks!([Phase::OnCancel, Phase::BeforeDrain], step);

fn step(call: &Call) -> Outcome {
    let is_held = |by: &str| call.pods.iter().any(|pod| pod.name == by);
    let wait = Duration::from_secs(1);
    if call.phase == Phase::OnCancel {
        if is_held("hold-cancel") {
            return Outcome::pending("putting back").again_after(wait).into();
        }
        log::info!("five steps were put back");
        return Outcome::Done;
    }
    let number = call.state.first().copied().unwrap_or_default() + 1;
    if is_held(&format!("hold-{number}")) {
        return Outcome::pending("held")
            .state([number - 1])
            .again_after(wait)
            .into();
    }
    log::info!("step {number} of five was taken");
    if number == 5 {
        Outcome::Done
    } else {
        let next = Outcome::pending(format!("step {number} of five"));
        next.state([number]).again_after(wait).into()
    }
}
