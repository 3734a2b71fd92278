//! Takes part in a drain and undoes that as its configuration says. The keys `before-drain`, `on-cancel` and `after-uncordon`
//! are `failed|MESSAGE` or `pending|PROGRESS|WHAT`; without the key, the hook succeeds.

use guests::{Call, Outcome, Phase, config};

guests::about!();
guests::hooks!([Phase::BeforeDrain, Phase::OnCancel, Phase::AfterUncordon], step);

fn step(call: &Call) -> Outcome {
    let key = match call.phase {
        Phase::BeforeDrain => "before-drain",
        Phase::OnCancel => "on-cancel",
        _ => "after-uncordon",
    };
    let text = config::get(key).unwrap_or_default();
    match text.splitn(3, '|').collect::<Vec<_>>().as_slice() {
        ["failed", message] => Outcome::failed(*message).into(),
        ["pending", progress, what] => Outcome::pending(*progress)
            .waiting_for(*what, "an answer", None)
            .into(),
        _ => Outcome::Done,
    }
}
