//! The driver's metrics, scraped while it drains.

use std::net::TcpStream;

use crate::collector::{Collector, Manner};
use crate::policies;
use crate::rig::{DRIVER, Rig};
use crate::scrape::{address, scrape};

#[tokio::test]
async fn metrics_show_policy_calls_and_the_active_version() {
    let rig = Rig::start().await;
    rig.pods(&["a", "b"]);
    let policy = policies::argument("priority");
    let driver = rig.driver(&["--metrics-address", "0", "--policy", &policy]).await;
    let active = r#"scupper_policy_info{policy="priority",digest=""#;
    rig.until("the policy is active", || {
        scrape(&driver, "GET", "/metrics").contains(active)
    })
    .await;
    rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    let text = scrape(&driver, "GET", "/metrics");
    for part in [
        "HTTP/1.1 200 OK",
        "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8",
        r#"scupper_policy_calls_total{policy="priority",function="make-plan",result="ok"} "#,
        r#"scupper_policy_calls_total{policy="priority",function="describe",result="ok"} 1"#,
        r#"scupper_policy_reloads_total{policy="priority",result="activated",reason=""} 1"#,
        r#"scupper_policy_peak_memory_bytes{policy="priority"} "#,
        r#"state="active""#,
        r#"scupper_drains_total{intent="drain",outcome="Drained"} 1"#,
        r#"scupper_drains_total{intent="drain",outcome="DeadlineExceeded"} 0"#,
        r#"scupper_drain_duration_seconds_count{intent="drain",outcome="Drained"} 1"#,
        "scupper_drain_pods_gone_total 2",
        "scupper_drain_in_progress 0",
        r#"scupper_api_requests_total{verb="create",resource="pods/eviction",code="201"} 2"#,
        "# EOF",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(scrape(&driver, "GET", "/").starts_with("HTTP/1.1 404"));
    assert!(scrape(&driver, "POST", "/metrics").starts_with("HTTP/1.1 405"));
    // A client that sends nothing blocks no other.
    let silent: Vec<_> = (0..4)
        .map(|_| TcpStream::connect(address(&driver)).unwrap())
        .collect();
    assert!(scrape(&driver, "GET", "/metrics").ends_with("# EOF\n"));
    drop(silent);
}

#[tokio::test]
async fn spans_that_no_collector_took_are_counted() {
    let collector = Collector::start(Manner::Refuses).await;
    let rig = Rig::start().await;
    rig.pods(&["a"]);
    let driver = rig
        .driver(&["--metrics-address", "0", "--otlp-endpoint", &collector.url])
        .await;
    assert!(scrape(&driver, "GET", "/metrics").contains("scupper_trace_spans_dropped_total 0\n"));
    rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    rig.until("it has refused the last spans", || {
        let text = scrape(&driver, "GET", "/metrics");
        let (_, dropped) = text.rsplit_once("scupper_trace_spans_dropped_total ").unwrap();
        // The drain, its five phases, its wave, the pod and the cordon, at least.
        dropped.lines().next().unwrap().parse::<u64>().unwrap() >= 9
    })
    .await;
    assert!(driver.log().contains("400 Bad Request"), "{}", driver.log());
}
