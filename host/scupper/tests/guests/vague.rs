//! Describes itself and its blockers with the texts of its configuration; with nothing, if there are none.

use guests::{Call, Description, Outcome, Phase, config};

guests::about!(description());
guests::hooks!([Phase::BeforeDrain], step);

fn said(key: &str) -> String {
    config::get(key).unwrap_or_default()
}

fn description() -> Description {
    Description::new(&said("name"), &said("version"), &said("summary")).config_schema(&said("schema"))
}

fn step(call: &Call) -> Outcome {
    match call.state.as_slice() {
        b"" => Outcome::pending(said("progress"))
            .state(*b"asked")
            .waiting_for(said("what"), said("detail"), None)
            .waiting_for("job-2", said("detail"), None)
            .into(),
        _ => Outcome::Done,
    }
}
