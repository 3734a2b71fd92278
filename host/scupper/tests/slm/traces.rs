//! A drain as one OpenTelemetry trace: with a collector that accepts it, that is unreachable, that hangs; before and
//! after a `kill -9`.

use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::collector::{Collector, Manner, Span};
use crate::limit::LIMIT;
use crate::objects::{closed_budget, pod};
use crate::policies;
use crate::rig::{DRIVER, NODE, Rig};

fn only(spans: Vec<Span>) -> Span {
    assert_eq!(spans.len(), 1, "{spans:#?}");
    spans.into_iter().next().unwrap()
}

fn trace_of(event: &Value) -> String {
    event["metadata"]["uid"].as_str().unwrap().replace('-', "")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The status: 1 is success, 2 an error.
fn status(span: &Span) -> Option<u64> {
    span.status.as_ref().map(|(code, _)| *code)
}

/// All spans belong to this trace, are connected, and have plausible times.
fn check_whole(collector: &Collector, trace: &str, begun: u64) {
    let spans = collector.spans();
    let numbers: BTreeSet<_> = spans.iter().map(|span| span.id.clone()).collect();
    assert_eq!(numbers.len(), spans.len(), "a span came twice: {spans:#?}");
    for span in &spans {
        assert_eq!(hex(&span.trace), trace, "{span:#?}");
        assert_eq!(span.id.len(), 8);
        let is_root = span.name == "drain";
        assert_eq!(span.parent.is_empty(), is_root, "{span:#?}");
        assert!(is_root || numbers.contains(&span.parent), "{span:#?}");
        assert!(begun <= span.begun, "{span:#?}");
        assert!(span.begun <= span.ended, "{span:#?}");
    }
}

fn now() -> u64 {
    // The driver's clock shows whole milliseconds.
    let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap();
    now * 1_000_000
}

#[tokio::test]
async fn a_drain_is_one_trace_with_the_number_of_its_log_lines_also_after_kill_9() {
    let collector = Collector::start(Manner::Takes).await;
    let rig = Rig::start().await;
    rig.apply(policies::slurm_pod(pod("slurm-worker")));
    rig.pods(&["a"]);
    let policy = policies::argument("slurm");
    // Compiled once for both, in a directory that the driver creates.
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let more = [
        ["--otlp-endpoint", &collector.url],
        ["--policy", &policy],
        ["--grant", "slurm=node-annotations:nodeset.slinky.slurm.net/"],
        ["--policy-config", "slurm.poll-seconds=1"],
        ["--policy-cache", cache.to_str().unwrap()],
    ]
    .concat();
    let begun = now();
    let mut driver = rig.driver(&more).await;
    let event = rig.event("drain", DRIVER);
    // The hook waits for a job, and the earlier spans are sent.
    rig.until("the first spans have come", || {
        !collector.named("step slurm before-drain").is_empty() && !collector.named("cordon").is_empty()
    })
    .await;
    let held = rig.kubelet.hold().await;
    driver.kill();
    let killed = now();
    assert!(collector.named("drain").is_empty(), "it has not ended");
    let next = rig.driver(&more).await;
    rig.until("the dead endpoint is gone", || rig.endpoints().len() == 1)
        .await;
    drop(held);
    policies::finish_jobs(&rig, "slurm-worker");
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    rig.until("the drain itself has come", || {
        !collector.named("drain").is_empty()
    })
    .await;

    let trace = trace_of(&event);
    check_whole(&collector, &trace, begun);
    for log in [driver.log(), next.log()] {
        assert!(log.contains(&format!("trace=\"{trace}\"")), "{log}");
    }
    let drain = only(collector.named("drain"));
    assert_eq!(status(&drain), Some(1));
    let attributes = &drain.said;
    for (key, value) in [
        ("k8s.node.name", NODE),
        ("scupper.drain.name", "drain"),
        ("scupper.drain.trigger", "LifecycleEvent"),
        ("scupper.outcome", "Drained"),
        ("scupper.pods.gone", "2"),
    ] {
        assert_eq!(attributes[key], value, "{attributes:?}");
    }
    // Begun by one process, ended by the other.
    let hook = only(collector.named("hook slurm before-drain"));
    assert_eq!(hook.said["scupper.policy"], "slurm");
    for span in [&drain, &hook] {
        assert!(span.begun < killed, "{span:#?}");
        assert!(killed < span.ended, "{span:#?}");
    }
    let steps = collector.named("step slurm before-drain");
    let (before, after): (Vec<_>, Vec<_>) = steps.iter().partition(|it| it.ended < killed);
    assert!(!before.is_empty() && !after.is_empty(), "{steps:#?}");
    assert!(steps.iter().all(|step| step.parent == hook.id));
    let evictions = collector.named("evict").into_iter();
    let pods = evictions.map(|span| {
        let said = span.said;
        assert_eq!(said["scupper.answer"], "accepted");
        assert_eq!(said["k8s.namespace.name"], "default");
        said["k8s.pod.name"].clone()
    });
    assert_eq!(
        pods.collect::<BTreeSet<_>>(),
        BTreeSet::from(["a".into(), "slurm-worker".into()])
    );
    assert_eq!(collector.named("pod").len(), 2);
    assert_eq!(collector.named("plan slurm").len(), 2, "once in each process");
    assert_eq!(only(collector.named("evicting")).parent, drain.id);
    assert_eq!(collector.resource()["service.name"], "scupper");
}

#[tokio::test]
async fn a_collector_that_is_away_or_hangs_delays_neither_a_drain_nor_the_drivers_end() {
    let hangs = Collector::start(Manner::Hangs).await;
    // A port without a listener.
    let away = Collector::start(Manner::Takes).await.url.clone();
    for (url, left) in [(&away, "dropped="), (&hangs.url, "could not be sent in time")] {
        let rig = Rig::start().await;
        rig.pods(&["a", "b"]);
        let mut driver = rig.driver(&["--otlp-endpoint", url]).await;
        let begun = Instant::now();
        rig.event("drain", DRIVER);
        assert_eq!(rig.end_of("drain").await, "Succeeded");
        // The driver tries for half a minute, and waits for one answer for ten seconds.
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        if *url == hangs.url {
            rig.until("the collector was asked", || hangs.asked() > 0).await;
        } else {
            rig.until("it is reported", || {
                driver.log().contains("do not reach the collector")
            })
            .await;
        }
        driver.terminate();
        assert!(driver.ended(LIMIT).await.success(), "{}", driver.log());
        let log = driver.log();
        assert!(log.contains(left), "{log}");
        let warnings = log
            .lines()
            .filter(|line| line.contains("the spans of drains"))
            .count();
        assert!(warnings <= 1, "{log}");
    }
}

#[tokio::test]
async fn an_invalid_endpoint_is_one_clear_error() {
    let rig = Rig::start().await;
    let mut driver = rig.spawn(&["--otlp-endpoint", "127.0.0.1:4318"]);
    let status = driver.ended(LIMIT).await;
    assert_eq!(status.code(), Some(3), "{}", driver.log());
    assert_eq!(
        driver.log(),
        "error: --otlp-endpoint: does not begin with http:// or https://; it must be a URL such as \
         http://127.0.0.1:4318\n"
    );
}

#[tokio::test]
async fn a_local_drain_sends_its_trace_where_the_environment_says_and_reports_failures() {
    let collector = Collector::start(Manner::Takes).await;
    let rig = Rig::start().await;
    rig.pods(&["a"]);
    rig.apply(closed_budget());
    let begun = now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command
        .args(["drain", NODE, "--local", "--timeout", "2s", "--kubeconfig"])
        .arg(rig.kubeconfig())
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hidden")
        .env("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=eu-1")
        .env_remove("POD_NAME");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = output.await.unwrap();
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    // It waited for its last spans.
    let drain = only(collector.named("drain"));
    check_whole(&collector, &hex(&drain.trace), begun);
    assert_eq!(status(&drain), Some(2));
    assert!(drain.status.as_ref().unwrap().1.contains("the deadline passed"));
    assert_eq!(drain.said["scupper.outcome"], "DeadlineExceeded");
    let stayed = only(collector.named("pod"));
    assert_eq!(stayed.said["scupper.pod.remains"], "true");
    let wait = only(collector.named("wait BudgetExhausted"));
    assert_eq!(wait.parent, stayed.id);
    // However late a busy machine checks the budget, the pod waits for it until the drain's deadline.
    assert!(wait.ended - begun >= 2_000_000_000, "{}", wait.ended - begun);
    assert_eq!(wait.ended, stayed.ended);
    let lasted = Duration::from_nanos(wait.ended - wait.begun);
    assert!(lasted > Duration::ZERO && lasted.as_secs() <= 3, "{lasted:?}");
    assert_eq!(collector.resource()["k8s.cluster.name"], "eu-1");
    assert!(
        collector
            .headers()
            .iter()
            .all(|it| it["authorization"] == "Bearer hidden")
    );
    assert!(!String::from_utf8_lossy(&output.stderr).contains("hidden"));
}

/// `scupper drain --local` that exports to a collector over TLS and trusts the certificates in this file.
async fn secure_drain(rig: &Rig, url: &str, protocol: &str, believed: &str) -> Output {
    rig.pods(&["a"]);
    let file = rig.kubeconfig().with_file_name("believed.pem");
    std::fs::write(&file, believed).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command
        .args(["drain", NODE, "--local", "--kubeconfig"])
        .arg(rig.kubeconfig())
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        .env("OTEL_EXPORTER_OTLP_CERTIFICATE", file)
        .env_remove("POD_NAME");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    output.await.unwrap()
}

#[tokio::test]
async fn a_collector_over_tls_is_trusted_only_by_the_named_certificate() {
    let stranger = Collector::secure().await.authority.unwrap();
    for protocol in ["http/protobuf", "grpc"] {
        let collector = Collector::secure().await;
        let rig = Rig::start().await;
        let output = secure_drain(&rig, &collector.url, protocol, &stranger).await;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let log = String::from_utf8(output.stderr).unwrap();
        let reported: Vec<_> = log.lines().filter(|line| line.contains("do not reach")).collect();
        let [reported] = reported.as_slice() else {
            panic!("{protocol}: {log}")
        };
        for words in [
            "invalid peer certificate: ",
            "name a file with its CA's certificate in OTEL_EXPORTER_OTLP_CERTIFICATE",
            &collector.url,
        ] {
            assert!(reported.contains(words), "{protocol}: {words}: {log}");
        }
        assert!(collector.turned_away() > 0, "{protocol}");
        assert!(collector.spans().is_empty(), "{protocol}");

        let believed = format!("{stranger}{}", collector.authority.as_ref().unwrap());
        let begun = now();
        let output = secure_drain(&rig, &collector.url, protocol, &believed).await;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let drain = only(collector.named("drain"));
        check_whole(&collector, &hex(&drain.trace), begun);
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(!log.contains("do not reach"), "{protocol}: {log}");
    }
}

#[tokio::test]
async fn a_file_without_a_certificate_that_works_is_one_clear_error() {
    let rig = Rig::start().await;
    let garbled = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for text in ["", "hello", garbled] {
        let output = secure_drain(&rig, "https://127.0.0.1:4318", "http/protobuf", text).await;
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(
            log.contains("OTEL_EXPORTER_OTLP_CERTIFICATE: ")
                && log.contains("contains no usable certificate"),
            "{text}: {log}"
        );
        assert_eq!(rig.pod_names(), ["a"], "{text}: nothing was begun");
    }
}
