//! Emits the Events in its state: `WHOM REASON NOTE`, one a line. Answers with each result.

use guests::bindings::imports::scupper::drain::events::{self, Kind, Regarding};
use guests::{Call, Description, Drain, Grant, Node, Outcome, Phase, Plan, Pod};

guests::about!(
    Description::new("emits", "0.1.0", "Emits Events")
        .wants(events("node"))
        .wants(events("pods"))
);
guests::planner!(plan);
guests::hooks!([Phase::BeforeDrain], step);

fn events(target: &str) -> Grant {
    Grant {
        capability: "events".to_owned(),
        target: target.to_owned(),
    }
}

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    Err(emit(&Regarding::Node, "Planned", "a plan is made"))
}

fn step(call: &Call) -> Outcome {
    let script = String::from_utf8_lossy(&call.state).into_owned();
    let results: Vec<String> = script.lines().map(|line| act(call, line)).collect();
    Outcome::failed(results.join("; ")).into()
}

fn act(call: &Call, line: &str) -> String {
    let mut words = line.splitn(3, ' ');
    let (whom, reason) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let note = words.next().unwrap_or_default().replace("\\n", "\n");
    match whom {
        "pod" => {
            let pod = call.pods.first().map(|pod| pod.uid.clone()).unwrap_or_default();
            emit(&Regarding::Pod(pod), reason, &note)
        }
        "stranger" => emit(&Regarding::Pod("another-pod".to_owned()), reason, &note),
        "many" => {
            let results = (0..1000).map(|number| emit(&Regarding::Node, reason, &format!("{note} {number}")));
            let refused = results.filter(|result| result != "done");
            format!("{} refused", refused.count())
        }
        _ => emit(&Regarding::Node, reason, &note),
    }
}

fn emit(regarding: &Regarding, reason: &str, note: &str) -> String {
    match events::emit(regarding, Kind::Warning, reason, note) {
        Ok(()) => "done".to_owned(),
        Err(error) => format!("{error:?}"),
    }
}
