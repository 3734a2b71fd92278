//! Describes itself and its blockers with the texts of its configuration; with nothing, if there are none.

use guests::{Call, Description, Outcome, Phase, config};

guests::about!(description());
guests::hooks!([Phase::BeforeDrain], step);

fn text_of(key: &str) -> String {
    config::get(key).unwrap_or_default()
}

fn description() -> Description {
    Description::new(&text_of("name"), &text_of("version"), &text_of("summary"))
        .config_schema(&text_of("schema"))
}

fn step(call: &Call) -> Outcome {
    match call.state.as_slice() {
        b"" => Outcome::pending(text_of("progress"))
            .state(*b"asked")
            .waiting_for(text_of("what"), text_of("detail"), None)
            .waiting_for("job-2", text_of("detail"), None)
            .into(),
        _ => Outcome::Done,
    }
}
