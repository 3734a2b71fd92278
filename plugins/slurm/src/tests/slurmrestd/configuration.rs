//! The configuration of this way, its grants, and the node's name in Slurm.

use scupper_sdk::{Outcome, Phase, Policy, testing::pod};

use super::fake::{Fake, NODE, URL};
use crate::Slurm;
use crate::tests::slurmd;

#[test]
fn only_the_url_is_required() {
    let fake = Fake::new();
    assert_eq!(Slurm::check_config(), []);
    fake.host.config("url", "");
    assert_eq!(Slurm::check_config()[0].key, "url");
}

#[test]
fn a_wrong_value_is_reported_with_the_valid_ones() {
    for (key, value, words) in [
        ("way", "rest", "`slurmrestd`"),
        ("url", "slurm.example.com:6820", "https://"),
        ("url", "https://", "https://slurm"),
        ("url", "http://user@slurm.example.com", "https://slurm"),
        ("url", "http://slurm.example.com/?a", "https://slurm"),
        ("api-version", "42", "v0.0.39 to v0.0.45"),
        ("api-version", "v0.0.38", "v0.0.39 to v0.0.45"),
        ("slurm-node", "label:", "label:KEY"),
        ("slurm-node", "node", "short-name"),
        ("slurm-node-table", "a=b,c", "`c`"),
        ("slurm-node-table", "a=", "`a=`"),
        ("not-in-slurm", "skip", "refuse or ignore"),
        ("ladder", "5m kill", "`cancel`"),
        ("ladder-too-long", "shorten", "refuse or scale"),
        ("token-timeout", "5", "90s, 5m or 1h"),
        ("registration-timeout", "soon", "90s, 5m or 1h"),
        ("ladders", "", "no such key"),
    ] {
        let fake = Fake::new();
        fake.host.config(key, value);
        let problems = Slurm::check_config();
        assert!(
            problems.len() == 1 && problems[0].key == key,
            "{key}={value}: {problems:?}"
        );
        assert!(problems[0].message.contains(words), "{key}={value}: {problems:?}");
        let outcome = fake.step(Phase::BeforeDrain);
        assert!(
            matches!(outcome, Outcome::Failed(_)),
            "{key}={value}: {outcome:?}"
        );
        assert!(fake.requests().is_empty());
    }
}

#[test]
fn a_key_of_slurmrestd_is_a_problem_with_operator() {
    let fake = Fake::new();
    fake.host.config("way", "operator");
    let problems = Slurm::check_config();
    assert_eq!((problems.len(), problems[0].key.as_str()), (1, "url"));
}

#[test]
fn it_wants_only_the_grants_that_its_configuration_needs() {
    let fake = Fake::new();
    let wants = || -> Vec<String> {
        let wants = Slurm::describe().wants.into_iter();
        wants
            .map(|grant| format!("{}:{}", grant.capability, grant.target))
            .collect()
    };
    let slurm = |methods: &str| format!("http:{methods} {URL}/slurm/");
    assert_eq!(
        wants(),
        [
            slurm("GET,POST"),
            "secret:token".to_owned(),
            "events:node".to_owned()
        ]
    );
    fake.host.config("ladder", "5m requeue, 2m down");
    assert_eq!(wants()[0], slurm("GET,POST"));
    for deletes in ["5m signal USR1", "1m cancel"] {
        fake.host.config("ladder", deletes);
        assert_eq!(wants()[0], slurm("GET,POST,DELETE"));
    }
    fake.host.config("way", "operator");
    assert_eq!(wants(), ["node-annotations:nodeset.slinky.slurm.net/"]);
}

/// The node that is drained when the Kubernetes node is `node-1.example.com`.
fn drained(keys: &[(&str, &str)]) -> Vec<&'static str> {
    let fake = Fake::new();
    let names = ["node-1.example.com", "gpu-07", "worker-a", "worker-b", "node-1"];
    for name in names {
        fake.node(name, &["IDLE"], "");
    }
    fake.host.node_named("node-1.example.com");
    fake.host.label_node("example.com/slurm", "gpu-07");
    fake.host.annotate_node("example.com/slurm-name", " gpu-07 ");
    let mut hostname = slurmd("x", &[]);
    hostname.hostname = "worker-a".to_owned();
    fake.host
        .pods([hostname, slurmd("worker-b", &[]), pod("shop/cart")]);
    for (key, value) in keys {
        fake.host.config(key, value);
    }
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    let is_drained = |name: &&str| fake.state(name).contains(&"DRAIN".to_owned());
    names.into_iter().filter(is_drained).collect()
}

#[test]
fn the_name_in_slurm_is_configurable() {
    assert_eq!(drained(&[]), ["node-1.example.com"]);
    assert_eq!(drained(&[("slurm-node", "short-name")]), ["node-1"]);
    assert_eq!(drained(&[("slurm-node", "label:example.com/slurm")]), ["gpu-07"]);
    assert_eq!(
        drained(&[("slurm-node", "annotation:example.com/slurm-name")]),
        ["gpu-07"]
    );
    assert_eq!(drained(&[("slurm-node", "pods")]), ["worker-a", "worker-b"]);
    let table = ("slurm-node-table", "other=worker-b, node-1.example.com=worker-a");
    assert_eq!(drained(&[table]), ["worker-a"]);
}

#[test]
fn a_node_that_is_not_in_slurm_is_refused_before_any_change() {
    for (key, value, words) in [
        ("slurm-node", "label:nope", "the node has no label nope"),
        ("slurm-node-table", "node-1=gpu-99", "gpu-99 is not among its 2"),
    ] {
        let fake = Fake::new();
        fake.host.config(key, value);
        fake.fails(Phase::BeforeCordon, true, words);
        fake.fails(Phase::BeforeDrain, true, words);
        assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
        fake.host.config("not-in-slurm", "ignore");
        assert_eq!(fake.step(Phase::BeforeDrain), Outcome::Done);
        assert_eq!(fake.state(NODE), ["IDLE"]);
    }
}

#[test]
fn the_configured_user_is_sent() {
    let fake = Fake::new();
    fake.host.config("user", "slurm");
    assert_eq!(fake.run_until_stable(), Outcome::Done);
}
