//! Checks its environment as its configuration says: `findings` has lines of severity, subject, message and fix, split
//! by `|`; `url` is requested with the method `method`, and the answer is also a finding; `do` is `trap`, or `touch` to
//! annotate the node and emit an Event. Each check names its node. With `waits`, `WHAT|DETAIL`, its drains never begin.
//! In `on-cancel` it reports whether the drain is held, and in `before-uncordon` it emits an Event.

use guests::{Call, Description, Finding, Grant, Node, Outcome, Phase, cluster, config, http, log};
use http::{Method, Request};
use scupper_sdk::events;

guests::about!(about());
guests::hooks!(phases(), step);
guests::surroundings!(check);

fn phases() -> Vec<Phase> {
    let mut phases = vec![Phase::OnCancel, Phase::BeforeUncordon];
    phases.extend(config::get("waits").map(|_| Phase::BeforeDrain));
    phases
}

fn about() -> Description {
    let about = Description::new("surrounded", "0.1.0", "Looks at its surroundings")
        .wants(Grant::node_annotations("seen.example.com/"))
        .wants(Grant::events_of_node());
    match config::get("wants") {
        Some(wants) => {
            let (methods, url) = wants.split_once(' ').unwrap_or_default();
            about.wants(Grant::http(methods, url))
        }
        None => about,
    }
}

fn check(node: Option<Node>) -> Vec<Finding> {
    match config::get("do").as_deref() {
        Some("trap") => panic!("as configured"),
        Some("spin") => guests::spin(),
        Some("touch") => {
            let annotated = cluster::annotate_node("seen.example.com/check", "");
            let emitted = events::emit_for_node("Looked", "it looked");
            return vec![Finding::ok("touch", format!("{annotated:?} {emitted:?}"))];
        }
        _ => {}
    }
    let mut findings = vec![Finding::ok(
        "node",
        node.map_or_else(|| "none".to_owned(), |node| node.name),
    )];
    let lines = config::get("findings").unwrap_or_default();
    findings.extend(lines.lines().map(finding));
    findings.extend(config::get("url").map(ask));
    findings
}

fn finding(line: &str) -> Finding {
    let mut parts = line.split('|');
    let mut part = || parts.next().unwrap_or_default();
    let (severity, subject, message, fix) = (part(), part(), part(), part());
    match severity {
        "error" => Finding::error(subject, message, fix),
        "warning" => Finding::warning(subject, message, fix),
        _ => Finding::ok(subject, message),
    }
}

fn ask(url: String) -> Finding {
    let method = match config::get("method").as_deref() {
        Some("PUT") => Method::Put,
        Some("PATCH") => Method::Patch,
        Some("DELETE") => Method::Delete,
        Some("POST") => Method::Post,
        _ => Method::Get,
    };
    match Request::new(method, url).send() {
        Ok(answer) => Finding::ok("server", answer.text()),
        Err(error) => Finding::error("server", error.to_string(), "start it"),
    }
}

fn step(call: &Call) -> Outcome {
    match call.phase {
        Phase::OnCancel => {
            log::info!("held: {}", call.drain.held);
            let reported = cluster::annotate_node("seen.example.com/held", &call.drain.held.to_string());
            reported.map_or_else(Outcome::from, |()| Outcome::Done)
        }
        Phase::BeforeDrain => {
            let waits = config::get("waits").unwrap_or_default();
            let (what, detail) = waits.split_once('|').unwrap_or_default();
            Outcome::pending("jobs run")
                .waiting_for(what, detail, None)
                .into()
        }
        _ => {
            let reported =
                events::warn_for_node("StaysDrained", "the node stays drained elsewhere: ticket 7");
            reported.map_or_else(
                |error| Outcome::failed(error.to_string()).into(),
                |()| Outcome::Done,
            )
        }
    }
}
