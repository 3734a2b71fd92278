//! Servers in front of slurmrestd, or in its place: login pages, load balancers, redirects, lost answers.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::driver::{WORKER, policy};
use crate::driver_mode::DriverMode;
use crate::proxy::{Fault, ProxiedRequest, Proxy};
use crate::testbed::{NODE, Testbed, until};

const LOG_IN: &str = "<html><title>Log in</title></html>";

fn page(status: u16, text: &str) -> String {
    let length = text.len();
    format!("HTTP/1.1 {status} Page\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{text}")
}

/// The driver reaches Slurm through this proxy alone.
async fn behind(testbed: &Testbed, proxy: &Proxy) -> DriverMode {
    let policies: Value = json!([policy(&proxy.url, &testbed.token_file(), &[])]);
    let mut driver = DriverMode::new(WORKER, Vec::new(), json!({}), policies).await;
    driver.start().await;
    driver
}

#[tokio::test]
async fn in_driver_mode_another_server_ends_a_drain_that_has_not_begun_and_is_named() {
    let Some(testbed) = Testbed::up("another-server", &[]) else {
        return;
    };
    for (fault, words) in [
        (
            (|| Fault::Change(|_| page(200, LOG_IN))) as fn() -> Fault,
            format!("is not slurmrestd: it answers 200 {LOG_IN}; check `url`"),
        ),
        (
            || Fault::Answer(302, "Location: https://sso.example.com/\r\n"),
            "is not slurmrestd: it answers 302, a redirect to https://sso.example.com/; check `url`"
                .to_owned(),
        ),
        (
            || Fault::Change(|_| page(503, "<h1>Service Unavailable</h1>")),
            "answers 503 <h1>Service Unavailable</h1>".to_owned(),
        ),
    ] {
        // Before the cordon, and on a node that is cordoned already.
        for cordoned in [false, true] {
            let proxy = Proxy::start(&testbed.url(), move |_| fault());
            let driver = behind(&testbed, &proxy).await;
            let cordon = |node: &mut Value| node["spec"]["unschedulable"] = json!(cordoned);
            driver.api.store().edit("nodes", "", WORKER, cordon).unwrap();
            assert_eq!(driver.drain("drain").await, "Failed", "{}", driver.reported());
            let words = format!("{} {words}", proxy.url);
            assert!(
                driver.reported().contains(&words),
                "{words}: {}",
                driver.reported()
            );
            assert_eq!(driver.is_cordoned(), cordoned);
        }
    }
    assert_eq!(testbed.node(), "idle none");
}

type Decide = fn(&ProxiedRequest) -> Fault;

/// A proxy whose fault a test changes, and the times of the requests that met one.
struct Balancer {
    proxy: Proxy,
    fault: Arc<Mutex<Decide>>,
    met: Arc<Mutex<Vec<Instant>>>,
}

impl Balancer {
    fn start(testbed: &Testbed) -> Self {
        let pass: Decide = |_| Fault::Pass;
        let (fault, met) = (Arc::new(Mutex::new(pass)), Arc::new(Mutex::new(Vec::new())));
        let (now, times) = (Arc::clone(&fault), Arc::clone(&met));
        let proxy = Proxy::start(&testbed.url(), move |request| {
            let fault = now.lock().unwrap()(request);
            if !matches!(fault, Fault::Pass) {
                times.lock().unwrap().push(Instant::now());
            }
            fault
        });
        Self { proxy, fault, met }
    }

    fn set(&self, fault: Decide) {
        *self.fault.lock().unwrap() = fault;
    }
}

#[tokio::test]
async fn in_driver_mode_a_busy_server_is_asked_again_when_it_says_and_one_that_has_worked_is_waited_for() {
    let Some(testbed) = Testbed::up("balancer", &[]) else {
        return;
    };
    let balancer = Balancer::start(&testbed);
    let driver = behind(&testbed, &balancer.proxy).await;
    let job = testbed.submit(300, &[]);
    driver
        .until("it has checked the policy", || {
            driver.reported().contains(" listed, with up to 90 bytes ")
        })
        .await;
    balancer.set(|_| Fault::Answer(503, "Retry-After: 3\r\n"));
    driver.begin_drain("drain");
    driver
        .until("it was asked twice", || balancer.met.lock().unwrap().len() > 1)
        .await;
    let met = balancer.met.lock().unwrap().clone();
    // Otherwise it polls every second.
    assert!(met[1] - met[0] >= Duration::from_secs(3), "{met:?}");
    balancer.set(|_| Fault::Pass);
    let waits = format!("waits for job {job}: ");
    driver
        .until("it waits for the job", || driver.reported().contains(&waits))
        .await;
    balancer.set(|_| Fault::Change(|_| page(502, "<h1>Bad Gateway</h1>")));
    let words = format!("{} answers 502 <h1>Bad Gateway</h1>", balancer.proxy.url);
    driver
        .until("it reports that", || driver.reported().contains(&words))
        .await;
    balancer.set(|_| Fault::Pass);
    testbed.client(&["scancel", &job.to_string()]);
    assert_eq!(driver.ends("drain").await, "Succeeded", "{}", driver.reported());
}

#[tokio::test]
async fn in_driver_mode_an_undrain_with_a_lost_answer_is_reported_once() {
    let Some(testbed) = Testbed::up("lost-answer", &[]) else {
        return;
    };
    let balancer = Balancer::start(&testbed);
    let driver = behind(&testbed, &balancer.proxy).await;
    assert_eq!(driver.drain("drain").await, "Succeeded", "{}", driver.reported());
    balancer.set(|request| match request.method.as_str() {
        "POST" => Fault::CutAfter,
        _ => Fault::Pass,
    });
    assert_eq!(
        driver.uncordon("uncordon").await,
        "Succeeded",
        "{}",
        driver.reported()
    );
    let posts = balancer.proxy.paths("POST");
    assert_eq!(
        balancer.met.lock().unwrap().len(),
        1,
        "{posts:?}: {}",
        driver.reported()
    );
    until("it is idle", async || testbed.node().starts_with("idle ")).await;
    let again = format!("policy   slurm: Slurm gives jobs to {NODE} again");
    assert_eq!(
        driver.reported().matches(&again).count(),
        1,
        "{}",
        driver.reported()
    );
    assert_eq!(driver.events("SlurmNodeUndrained").len(), 1);
}
