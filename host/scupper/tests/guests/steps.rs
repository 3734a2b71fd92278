//! A hook of three steps, and one that fails.

use std::time::Duration;

use guests::{Call, Outcome, Phase};

guests::about!();
guests::hooks!([Phase::OnCancel, Phase::BeforeDrain], step);

fn step(call: &Call) -> Outcome {
    if call.phase == Phase::OnCancel {
        let failure = Outcome::failed("the job server is away");
        return match call.state.as_slice() {
            b"final" => failure.into(),
            _ => failure.retry_after(Duration::from_secs(7)).into(),
        };
    }
    match call.state.as_slice() {
        b"" => Outcome::pending("asked the jobs to end")
            .state(*b"asked")
            .again_after(Duration::from_secs(3))
            .into(),
        b"asked" => {
            let mut pending = Outcome::pending("waiting\nfor jobs").state(*b"waiting");
            for job in 0..250 {
                pending = pending.waiting_for(
                    format!("job-{job}"),
                    "to checkpoint\u{7}",
                    Some(call.drain.started),
                );
            }
            pending.into()
        }
        _ => Outcome::Done,
    }
}
