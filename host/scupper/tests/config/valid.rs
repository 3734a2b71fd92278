//! The settings of a valid file reach the policies.

use std::path::{Path, PathBuf};
use std::time::Duration;

use scupper_config::{ConfigError, Configuration, DrainRequestsFile, DrainSettings, read};
use scupper_engine::{ForceAtDeadline, ForcedPods, LocalData, SurgeMethod, SurgeSettings, VolumeWait};
use scupper_policy_spec::{
    FailurePolicy, HttpGrant, Limits, Networks, OnFailure, PolicyMode, SecretGrant, SecretSource, SpecSource,
};

use crate::{HEAD, good};

/// Every setting.
const ALL: &str = include_str!("everything.yaml");

fn all() -> Configuration {
    good(ALL.strip_prefix(HEAD).unwrap())
}

#[test]
fn everything_reaches_the_specs() {
    let configuration = all();
    let [slurm, second] = &configuration.policies[..] else {
        panic!("{configuration:#?}")
    };
    assert_eq!(slurm.name, "slurm");
    assert_eq!(slurm.file, Path::new("/etc/scupper/policies/slurm.wasm"));
    assert_eq!(
        slurm.sha256.as_deref(),
        Some("abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789")
    );
    let grants: Vec<_> = slurm.grants.iter().map(ToString::to_string).collect();
    assert_eq!(
        grants,
        [
            "node-annotations:nodeset.slinky.slurm.net/",
            "pod-annotations:example.com/drain-",
            "events:node",
            "events:pods",
            "facts:request",
            "facts:namespaces",
            "facts:budgets",
            "facts:owners",
            "facts:resources",
            "facts:volumes",
            "facts:peers"
        ]
    );
    assert!(slurm.wasi);
    assert_eq!(
        slurm.on_failure,
        OnFailure::new(Some(FailurePolicy::Refuse), Some(FailurePolicy::Ignore))
    );
    let labels: Vec<_> = slurm.node_selector.iter().map(|(k, v)| (&**k, &**v)).collect();
    assert_eq!(labels, [("empty", ""), ("scupper.dev/slurm", "true")]);
    assert_eq!(slurm.spec_source, SpecSource::File);
    assert_eq!(second.file, Path::new("/opt/second.wasm"));
    assert_eq!(second.limits, Limits::default());
    assert_eq!(second.on_failure, OnFailure::default());
    assert_eq!(slurm.mode, PolicyMode::Active);
    let instead_of = Some("slurm".to_owned());
    assert_eq!(second.mode, PolicyMode::Shadow { instead_of });
}

#[test]
fn configuration_values_are_text_and_nested_ones_json() {
    let configuration = all();
    let config: Vec<_> = configuration.policies[0]
        .config
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        config,
        [
            ("dry", "true"),
            ("list", r#"["x"]"#),
            ("nested", r#"{"a":[1,2.5,"3",true,null],"b":{}}"#),
            ("no", "no"),
            ("poll-seconds", "10"),
            ("quoted", "10"),
            ("ratio", "1.50"),
            ("way", "slurmrestd"),
        ]
    );
}

#[test]
fn requests_and_secrets() {
    let configuration = all();
    let slurm = &configuration.policies[0];
    let keystone = "https://keystone.example.com:5000";
    let grants = [
        HttpGrant {
            origin: keystone.to_owned(),
            methods: vec!["GET".to_owned(), "POST".to_owned()],
            paths: vec!["/v3/".to_owned()],
            networks: Networks {
                private: true,
                loopback: false,
            },
            ca: Some("/etc/scupper/ca.pem".into()),
        },
        HttpGrant {
            origin: "http://[::1]".to_owned(),
            networks: Networks {
                private: false,
                loopback: true,
            },
            ..HttpGrant::default()
        },
    ];
    assert_eq!(slurm.http, grants);
    let secrets = [
        SecretGrant {
            name: "password".to_owned(),
            source: SecretSource::File("/etc/secrets/password".into()),
            origins: vec![keystone.to_owned()],
        },
        SecretGrant {
            name: "key".to_owned(),
            source: SecretSource::Kubernetes {
                namespace: "scupper".to_owned(),
                name: "slurm".to_owned(),
                key: "token".to_owned(),
            },
            origins: vec!["http://[::1]".to_owned()],
        },
        SecretGrant {
            name: "token".to_owned(),
            source: SecretSource::Captured {
                origin: keystone.to_owned(),
                header: "X-Subject-Token".to_owned(),
            },
            origins: Vec::new(),
        },
    ];
    assert_eq!(slurm.secrets, secrets);
}

#[test]
fn unset_limits_keep_their_defaults() {
    let limits = all().policies[0].limits.clone();
    let expected = Limits {
        memory: 128 << 20,
        table_elements: 1,
        log_lines_per_minute: 12,
        log_bytes_per_minute: 1024,
        step_cpu: Duration::from_secs(60),
        step_wall: Duration::from_millis(1500),
        ..Limits::default()
    };
    assert_eq!(limits, expected);
}

/// What the settings of this file are for a driver without flags.
fn settings(drain: &str) -> DrainSettings {
    let given = good(&format!("policies: []\ndrain: {drain}\n")).drain;
    DrainSettings::default().with(&given)
}

#[test]
fn the_drain() {
    let drain = DrainSettings::default().with(&all().drain);
    let engine = drain.engine;
    assert_eq!(drain.time_limit, Some(Duration::from_secs(5400)));
    assert_eq!(drain.eviction_timeout, Duration::from_secs(10));
    assert_eq!(engine.forbidden_timeout, Duration::from_secs(45));
    assert_eq!(engine.grace_seconds, None);
    assert!(engine.filters.force);
    assert!(!engine.filters.delete_emptydir_data);
    assert!(!engine.filters.ignore_daemonsets);
    assert_eq!(engine.returning_pod_evictions, 3);
    assert!(engine.uncordon_on_failure);
    assert!(engine.refuse_certain);
    assert_eq!(engine.local_data, LocalData::Refuse);
    let volumes = |seconds, or_fail| VolumeWait {
        at_most: Duration::from_secs(seconds),
        or_fail,
    };
    assert_eq!(engine.wait_for_volumes, Some(volumes(300, true)));
    let short = settings("{wait-for-volumes: {at-most: 10s}}").engine;
    assert_eq!(short.wait_for_volumes, Some(volumes(10, false)));
    let force = ForceAtDeadline {
        pods: ForcedPods {
            namespaces: Some(["batch".to_owned(), "shop".to_owned()].into()),
            priority_below: Some(1_000_000),
            await_completion: true,
        },
        grace_seconds: 20,
        within: Duration::from_secs(90),
    };
    assert_eq!(engine.at_deadline, Some(force));
    let short = settings("{at-deadline: {delete: {everything: true}, within: 41s}}").engine;
    let all = ForceAtDeadline {
        pods: ForcedPods::default(),
        grace_seconds: 30,
        within: Duration::from_secs(41),
    };
    assert_eq!(short.at_deadline, Some(all));
    let surge = |method, namespaces: &[&str], timeout| SurgeSettings {
        method,
        namespaces: namespaces.iter().map(|&name| name.to_owned()).collect(),
        timeout: Duration::from_secs(timeout),
    };
    assert_eq!(
        engine.surge,
        Some(surge(SurgeMethod::Scale, &["shop", "web"], 600))
    );
    let short = settings("{surge: {timeout: 5m}}").engine.surge;
    assert_eq!(short, Some(surge(SurgeMethod::Restart, &[], 300)));
    let named = settings("{surge: {timeout: 5m, method: restart}}").engine.surge;
    assert_eq!(named, short);
    assert_eq!(
        drain.allowed_overrides,
        [
            "force",
            "delete-emptydir-data",
            "ignore-daemonsets",
            "local-data",
            "grace-period",
            "timeout",
            "at-deadline"
        ]
    );
}

#[test]
fn what_the_file_does_not_give_is_as_without_a_file() {
    let (read, usual) = (settings("{}"), DrainSettings::default());
    assert_eq!(read.engine, usual.engine);
    assert_eq!((read.time_limit, settings("{sla: 0}").time_limit), (None, None));
    assert_eq!(settings("{sla: 5m}").time_limit, Some(Duration::from_secs(300)));
    let warns = settings("{pre-flight: warn, on-failure: keep, local-data: warn, grace-period: 7}").engine;
    assert!(!warns.refuse_certain && !warns.uncordon_on_failure);
    assert_eq!(
        (warns.local_data, warns.grace_seconds),
        (LocalData::Warn, Some(7))
    );
}

#[test]
fn a_file_is_read_from_its_own_directory_and_knows_its_digest() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("scupper.yaml");
    let text = format!("{HEAD}policies:\n- name: a\n  module: a.wasm\n");
    std::fs::write(&file, &text).unwrap();
    let first = read(&file).unwrap();
    assert_eq!(first.file, file);
    assert_eq!(first.policies[0].file, dir.path().join("a.wasm"));
    assert_eq!(first.digest.len(), 64);
    assert_eq!(read(&file).unwrap().digest, first.digest);
    std::fs::write(&file, format!("{text}# more\n")).unwrap();
    assert_ne!(read(&file).unwrap().digest, first.digest);
}

#[test]
fn json_is_yaml_and_a_byte_order_mark_says_nothing() {
    let text = "\u{feff}{\"apiVersion\": \"scupper.dev/v1alpha1\",\n\t\"kind\": \"Configuration\",\n\t\"policies\": []}";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("scupper.json");
    std::fs::write(&file, text).unwrap();
    assert!(read(&file).unwrap().policies.is_empty());
}

#[test]
fn a_file_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let error = |name: PathBuf| read(&name).unwrap_err();
    assert!(matches!(error(dir.path().join("none")), ConfigError::Read { .. }));
    assert!(matches!(error(dir.path().into()), ConfigError::NotAFile(_)));
    let pipe = dir.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    assert!(matches!(error(pipe), ConfigError::NotAFile(_)));
    let long = dir.path().join("long");
    std::fs::write(&long, format!("{HEAD}policies: []\n#{}", "x".repeat(1 << 20))).unwrap();
    assert!(matches!(error(long), ConfigError::TooLarge(_)));
    let latin = dir.path().join("latin");
    std::fs::write(&latin, b"kind: Configuration\nkey: gr\xfc\xdfe\n").unwrap();
    assert!(
        error(latin.clone())
            .to_string()
            .ends_with("latin:2:8: this byte is not UTF-8")
    );
}

#[test]
fn drain_requests_have_the_names_of_nvsentinel_unless_the_file_says_otherwise() {
    assert_eq!(good("policies: []\n").drain_requests, None);
    let usual = good("policies: []\ndrain-requests: {}\n").drain_requests;
    assert_eq!(usual, Some(DrainRequestsFile::default()));
    let given = DrainRequestsFile {
        group: "drains.example.com".to_owned(),
        version: "v1beta1".to_owned(),
        plural: "noderequests".to_owned(),
        namespaces: vec!["health".to_owned(), "gpu".to_owned()],
        complete: "Complete".to_owned(),
        in_progress: "example.com/Draining".to_owned(),
        deferred: "Held".to_owned(),
        failed: "Failed".to_owned(),
        timeout: Some(Duration::from_secs(1800)),
        partial: true,
    };
    assert_eq!(all().drain_requests, Some(given));
    let unlimited = good("policies: []\ndrain-requests: {timeout: 0}\n").drain_requests;
    assert_eq!(unlimited.unwrap().timeout, None);
}
