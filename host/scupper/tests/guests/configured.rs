//! Knows one key of its configuration, `mode`, which is `fast` or `slow`.

use guests::{Description, Drain, Node, Plan, Pod, Problem, config};

guests::about!(
    Description::new("configured", "1.2.3", "Is configured")
        .state_version(7)
        .config_schema("{}"),
    problems()
);
guests::planner!(plan);

fn problems() -> Vec<Problem> {
    let unknown = config::keys().into_iter().filter(|key| key != "mode");
    let mut problems: Vec<Problem> = unknown
        .map(|key| Problem::new(key, "no such key; there is mode"))
        .collect();
    match config::get("mode").as_deref() {
        Some("fast" | "slow") => {}
        Some(other) => problems.push(Problem::new(
            "mode",
            format!("`{other}` is neither fast nor slow"),
        )),
        None => problems.push(Problem::new("", "mode is missing")),
    }
    problems
}

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    Err(config::get("mode").unwrap_or_default())
}
