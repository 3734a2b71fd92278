//! `testing::Host` is as strict as the real host: what the host refuses also fails in a policy's tests.
#![expect(clippy::panic, reason = "helpers of tests")]

use std::time::Duration;

use scupper_sdk::{
    Call, Condition, Description, Draft, Drain, Finding, Grant, Hooks, Node, Outcome, Phase, Planner, Policy,
    Problem, Severity, Subject, Surroundings, cluster, config, description, events,
    http::{Request, Response},
    log,
    testing::{Host, pod},
};

/// Does whatever the configuration says.
struct Puppet;

scupper_sdk::export!(Puppet with planner, hooks);

impl Policy for Puppet {
    fn describe() -> Description {
        description!("Does what its configuration says")
            .wants(Grant::pod_annotations("example.com/"))
            .wants(Grant::events_of_node())
            .state_version(3)
    }
}

impl Planner for Puppet {
    fn plan(_drain: &Drain, _node: &Node, _draft: &mut Draft<'_>) -> Result<(), String> {
        cluster::get_node().map(drop).map_err(|error| error.to_string())
    }
}

impl Hooks for Puppet {
    fn phases() -> Vec<Phase> {
        vec![Phase::BeforeDrain, Phase::BeforeWave]
    }

    fn step(call: &Call) -> Outcome {
        let first = call.pods.first();
        match (config::get("do").as_deref(), first) {
            (Some("annotate the node"), _) => cluster::annotate_node("example.com/a", "b").into_outcome(),
            (Some("annotate the pod"), Some(pod)) => {
                cluster::annotate_pod(pod, "example.com/a", "b").into_outcome()
            }
            (Some("unmark the pod"), Some(pod)) => {
                cluster::remove_pod_annotation(pod, "example.com/a").into_outcome()
            }
            (Some("use another key"), Some(pod)) => {
                cluster::annotate_pod(pod, "example.org/a", "b").into_outcome()
            }
            (Some("name a pod that is gone"), _) => {
                cluster::annotate_pod(&pod("no/where"), "example.com/a", "b").into_outcome()
            }
            (Some("emit"), _) => {
                let note = config::get("note").unwrap_or_default();
                events::emit_for_node("Emitted", &note).into_outcome()
            }
            (Some("remember too much"), _) => Outcome::pending("").state(vec![0; 1025]).into(),
            (Some("count"), _) => {
                let count = call.state.first().map_or(1, |count| count + 1);
                Outcome::pending(count.to_string())
                    .state([count])
                    .again_after(Duration::from_millis(1))
                    .into()
            }
            _ => Outcome::failed("nothing to do").into(),
        }
    }
}

trait IntoOutcome {
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Result<(), cluster::Error> {
    fn into_outcome(self) -> Outcome {
        self.map_or_else(Outcome::from, |()| Outcome::Done)
    }
}

impl IntoOutcome for Result<(), events::Error> {
    fn into_outcome(self) -> Outcome {
        self.map_or_else(
            |error| Outcome::failed(error.to_string()).into(),
            |()| Outcome::Done,
        )
    }
}

fn run_configured(what: &str) -> (Host, Outcome) {
    let host = Host::new();
    host.config("do", what);
    host.pods([pod("shop/cart")]);
    let outcome = host.step::<Puppet>(Phase::BeforeDrain, Subject::Node);
    (host, outcome)
}

fn failure(outcome: Outcome) -> (String, Option<u64>) {
    match outcome {
        Outcome::Failed(failure) => (failure.message, failure.retry_after),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_planner_has_no_cluster() {
    let host = Host::new();
    assert_eq!(
        host.plan::<Puppet>().unwrap_err(),
        "not granted: a planner has no cluster"
    );
}

#[test]
fn a_policy_gets_only_the_grants_that_it_wants() {
    let (host, outcome) = run_configured("annotate the pod");
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(
        host.pod("shop/cart").unwrap().annotation("example.com/a"),
        Some("b")
    );
    host.config("do", "unmark the pod");
    assert_eq!(
        host.step::<Puppet>(Phase::BeforeDrain, Subject::Node),
        Outcome::Done
    );
    assert_eq!(host.pod("shop/cart").unwrap().annotation("example.com/a"), None);

    for (what, message) in [
        ("annotate the node", "not granted: node-annotations example.com/a"),
        ("use another key", "not granted: pod-annotations example.org/a"),
        ("name a pod that is gone", "not found: pod uid-of-no-where"),
    ] {
        let (host, outcome) = run_configured(what);
        assert_eq!(failure(outcome), (message.to_owned(), None));
        assert_eq!(host.node_annotation("example.com/a"), None);
    }
}

#[test]
fn an_outage_is_retried() {
    let (host, _) = run_configured("annotate the pod");
    host.outage(Some("no route to host"));
    let outcome = host.step::<Puppet>(Phase::BeforeDrain, Subject::Node);
    assert_eq!(failure(outcome), ("no route to host".to_owned(), Some(5_000)));
}

#[test]
fn each_hook_keeps_its_own_state() {
    let (host, first) = run_configured("count");
    let progress = |outcome| match outcome {
        Outcome::Pending(pending) => pending.progress,
        other => panic!("{other:?}"),
    };
    assert_eq!(progress(first), "1");
    let step = || progress(host.step::<Puppet>(Phase::BeforeDrain, Subject::Node));
    let wave = |name: &str| {
        let wave = Subject::Wave(name.to_owned());
        progress(host.step::<Puppet>(Phase::BeforeWave, wave))
    };
    assert_eq!(step(), "2");
    assert_eq!(wave("all"), "1", "another phase is another hook");
    assert_eq!(wave("last"), "1", "another subject is another hook");
    assert_eq!((wave("all"), step()), ("2".to_owned(), "3".to_owned()));
    host.drain_named("another");
    assert_eq!(step(), "1", "another drain begins anew");
}

#[test]
#[should_panic(expected = "no host calls the hook Phase::OnCancel: `phases` does not name it")]
fn a_phase_that_the_policy_does_not_name_fails_the_test() {
    Host::new().step::<Puppet>(Phase::OnCancel, Subject::Node);
}

#[test]
#[should_panic(expected = "no host calls the hook Phase::BeforeWave for Subject::Node")]
fn a_subject_of_another_phase_fails_the_test() {
    Host::new().step::<Puppet>(Phase::BeforeWave, Subject::Node);
}

#[test]
#[should_panic(expected = "1025 bytes of state, the host keeps 1024")]
fn too_much_state_fails_the_test() {
    run_configured("remember too much");
}

/// Breaks the plan in a way that the draft cannot prevent.
struct InvalidWaves;

impl Policy for InvalidWaves {
    fn describe() -> Description {
        description!("Makes waves that let no pod leave")
    }

    fn check_config() -> Vec<Problem> {
        config::unknown_keys(&["a", "b"])
    }
}

impl Planner for InvalidWaves {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        draft.wave("all").max_parallel(0);
        Ok(())
    }
}

#[test]
#[should_panic(expected = "wave `all` lets no pod leave")]
fn an_invalid_plan_fails_the_test() {
    let host = Host::new();
    host.pods([pod("shop/cart")]);
    drop(host.plan::<InvalidWaves>());
}

#[test]
fn a_problem_with_a_misspelt_key_lists_the_known_keys() {
    let host = Host::new();
    host.config("a", "1");
    host.config("c", "1");
    assert_eq!(
        InvalidWaves::check_config(),
        [Problem::new("c", "no such key; there are a, b")]
    );
}

#[test]
fn pods_may_be_built_inside_the_call_that_sets_them() {
    let host = Host::new();
    host.pods((0..3).map(|number| pod(&format!("shop/cart-{number}"))));
    assert_eq!(host.draft().waves(), ["all: shop/cart-0 shop/cart-1 shop/cart-2"]);
}

#[test]
fn a_new_host_starts_empty() {
    let host = Host::new();
    host.config("a", "1");
    host.annotate_node("example.com/a", "b");
    log::warn!("{} things", 2);
    assert_eq!(host.log(), [(log::Level::Warn, "2 things".to_owned())]);
    let host = Host::new();
    assert_eq!(
        (config::get("a"), host.node_annotation("example.com/a")),
        (None, None)
    );
    assert_eq!(host.log(), []);
}

#[test]
fn accessors_read_labels_annotations_and_conditions() {
    let host = Host::new();
    let now = host.now();
    host.node_condition(Condition::new("Ready", "Unknown", Some(now)));
    host.cordon(true);
    let planned = host.plan::<Reader>();
    assert_eq!(planned.unwrap_err(), "Ready is Unknown, cordoned by us: true");
    let marked = pod("shop/cart")
        .with_annotation("a", "b")
        .with_label("c", "d")
        .with_condition("Ready", "False");
    assert_eq!(
        (marked.annotation("a"), marked.label("c"), marked.label("a")),
        (Some("b"), Some("d"), None)
    );
    let ready = marked.condition("Ready").unwrap();
    assert!(ready.is_false() && !ready.is_true());
    assert!(marked.is_controlled_by("ReplicaSet") && !marked.is_finished());
}

/// Reports what a check can do.
struct Checker;

impl Policy for Checker {
    fn describe() -> Description {
        description!("Checks")
            .wants(Grant::http("GET,PUT", "https://jobs.example.com/"))
            .wants(Grant::node_annotations("example.com/"))
            .wants(Grant::events_of_node())
    }
}

impl Surroundings for Checker {
    fn check(node: Option<&Node>) -> Vec<Finding> {
        let changed = cluster::annotate_node("example.com/checked", "");
        let emitted = events::emit_for_node("Checked", "the node");
        let put = Request::put("https://jobs.example.com/").send();
        let got = Request::get("https://jobs.example.com/").send();
        vec![
            Finding::ok("node", node.map_or("none", |node| &node.name)),
            Finding::warning("writes", format!("{changed:?} {emitted:?} {put:?}"), "ignore it"),
            Finding::error(
                "server",
                got.map_or_else(|error| error.to_string(), |got| got.text().to_string()),
                "",
            ),
        ]
    }
}

scupper_sdk::export!(Checker with surroundings);

#[test]
fn a_check_may_send_requests_but_changes_nothing() {
    let host = Host::new();
    host.on_request(|_| Ok(Response::new(200, "pong")));
    let findings = host.check::<Checker>();
    assert_eq!(findings[0], Finding::ok("node", "node-1"));
    assert_eq!(
        findings[1].message.matches("NotGranted").count(),
        3,
        "{findings:?}"
    );
    assert_eq!(
        (findings[1].severity, findings[2].severity),
        (Severity::Warning, Severity::Error)
    );
    assert_eq!(findings[2].message, "pong");
    assert_eq!(
        host.check_without_node::<Checker>()[0],
        Finding::ok("node", "none")
    );
    assert_eq!(host.node_annotation("example.com/checked"), None);
}

#[test]
fn a_hook_sees_that_the_drain_is_held() {
    let host = Host::new();
    assert!(!host.call(Phase::OnCancel, Subject::Node).drain.held);
    host.held();
    assert!(host.call(Phase::OnCancel, Subject::Node).drain.held);
    host.drain_named("another");
    assert!(!host.call(Phase::OnCancel, Subject::Node).drain.held);
}

struct Reader;

impl Policy for Reader {
    fn describe() -> Description {
        description!("Reads")
    }
}

impl Planner for Reader {
    fn plan(_drain: &Drain, node: &Node, _draft: &mut Draft<'_>) -> Result<(), String> {
        let ready = node.condition("Ready").ok_or("no condition Ready")?;
        assert!(!ready.is_true() && !ready.is_false(), "unknown is neither");
        Err(format!(
            "Ready is {}, cordoned by us: {}",
            ready.status, node.own_cordon
        ))
    }
}

#[test]
fn a_note_has_no_invisible_characters() {
    use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory};
    use icu_properties::{CodePointMapData, CodePointSetData};

    let category = CodePointMapData::<GeneralCategory>::new();
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    // Characters are added with each version of Unicode: the properties count.
    for c in '\0'..=char::MAX {
        let is_invisible = ignorable.contains(c)
            || matches!(
                category.get(c),
                GeneralCategory::Control
                    | GeneralCategory::Format
                    | GeneralCategory::LineSeparator
                    | GeneralCategory::ParagraphSeparator
            );
        let expected = if is_invisible {
            " ".to_owned()
        } else {
            c.to_string()
        };
        assert_eq!(events::note(&c.to_string()), expected, "{}", c.escape_unicode());
    }
}

#[test]
fn note_turns_any_text_into_a_valid_note() {
    let long = "é".repeat(600);
    for (text, expected) in [
        ("two\nlines", "two lines"),
        ("up\u{202e}side", "up side"),
        (long.as_str(), ""),
    ] {
        let host = Host::new();
        host.config("do", "emit");
        host.config("note", text);
        let outcome = host.step::<Puppet>(Phase::BeforeDrain, Subject::Node);
        assert!(matches!(outcome, Outcome::Failed(_)), "{text}");
        let note = events::note(text);
        host.config("note", &note);
        assert_eq!(
            host.step::<Puppet>(Phase::BeforeDrain, Subject::Node),
            Outcome::Done
        );
        assert!(
            note.len() <= 1024 && (expected.is_empty() || note == expected),
            "{note}"
        );
        assert_eq!(host.events(), [format!("Normal Emitted of node-1: {note}")]);
    }
    assert!(events::note(&long).ends_with("é…"));
    let fits = "x".repeat(1024);
    assert_eq!(events::note(&fits), fits);
}

/// Says which pods leave.
struct Tells;

impl Policy for Tells {
    fn describe() -> Description {
        description!("Says which pods leave")
    }
}

impl Hooks for Tells {
    fn phases() -> Vec<Phase> {
        vec![
            Phase::BeforeDrain,
            Phase::BeforeWave,
            Phase::AfterDrain,
            Phase::OnCancel,
            Phase::BeforeUncordon,
            Phase::AfterUncordon,
        ]
    }

    fn step(call: &Call) -> Outcome {
        let names: Vec<_> = call
            .leaving()
            .into_iter()
            .map(scupper_sdk::Pod::full_name)
            .collect();
        Outcome::failed(names.join(" ")).into()
    }
}

#[test]
fn a_step_learns_which_pods_leave_as_from_the_host() {
    let host = Host::new();
    host.pods([pod("a/one"), pod("a/agent").of_daemon_set(), pod("b/two")]);
    let told = |phase, subject| match host.step::<Tells>(phase, subject) {
        Outcome::Failed(failure) => failure.message,
        other => panic!("{other:?}"),
    };
    assert_eq!(told(Phase::BeforeDrain, Subject::Node), "a/one b/two");
    let wave = |name: &str| Subject::Wave(name.to_owned());
    assert_eq!(told(Phase::BeforeWave, wave("all")), "a/one b/two");
    assert_eq!(told(Phase::BeforeWave, wave("other")), "");
    host.pods([pod("b/two")]);
    assert_eq!(told(Phase::AfterDrain, Subject::Node), "b/two");
    for phase in [Phase::OnCancel, Phase::BeforeUncordon, Phase::AfterUncordon] {
        assert_eq!(told(phase, Subject::Node), "", "{phase:?}");
    }
}
