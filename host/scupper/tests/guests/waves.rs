//! Reverses the pods into waves of one, and keeps the first with a reason that is too long.

use std::mem::take;

use guests::{Drain, Node, Plan, Pod, Verdict, Wave};

guests::about!();
guests::planner!(plan);

fn plan(_drain: Drain, _node: Node, pods: Vec<Pod>, mut draft: Plan) -> Result<Plan, String> {
    for wave in take(&mut draft.waves) {
        for uid in wave.pods.into_iter().rev() {
            if Some(&uid) == pods.first().map(|pod| &pod.uid) {
                continue;
            }
            let mut wave = Wave::new(format!("of {uid}"), vec![uid]);
            wave.max_parallel = Some(1);
            wave.timeout = Some(60_000);
            wave.max_grace_period_seconds = Some(if draft.waves.is_empty() { 30 } else { 0 });
            draft.waves.push(wave);
        }
    }
    if let Some(first) = draft.decisions.first_mut() {
        first.verdict = Verdict::Keep;
        first.reason = format!("two\nlines and {}", "much too long ".repeat(40));
        first.policy = "somebody else".to_owned();
    }
    Ok(draft)
}
