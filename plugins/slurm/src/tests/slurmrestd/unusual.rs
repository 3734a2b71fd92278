//! Machines that are off, a slurmctld that restarts, and servers that are not slurmrestd.

use std::time::Duration;

use scupper_sdk::http::Response;
use scupper_sdk::{Outcome, Phase, Subject, http};

use super::fake::{Fake, NODE, OURS, URL, error};
use crate::Slurm;
use crate::tests::slurmd;

#[test]
fn a_machine_that_is_declared_off_and_that_slurm_has_given_up_is_free() {
    let fake = Fake::new();
    fake.node(NODE, &["IDLE", "DRAIN", "NOT_RESPONDING"], OURS);
    fake.host.machine_is_off();
    assert!(
        fake.waits().waiting_for[0].detail.contains("does not respond"),
        "Slurm still waits for it"
    );
    fake.node(NODE, &["DOWN", "DRAIN", "NOT_RESPONDING"], OURS);
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    fake.job(1, &["RUNNING"], NODE);
    assert_eq!(fake.waits().waiting_for[0].what, "job 1");
}

#[test]
fn a_drain_that_slurmctld_has_saved_is_not_lost_by_reset_statistics_or_a_restart() {
    let fake = Fake::busy();
    fake.waits();
    fake.host.advance(Duration::from_secs(30));
    fake.waits();
    fake.node(NODE, &["MIXED"], "");
    fake.restart();
    fake.requests();
    assert!(fake.waits().progress.starts_with("an operator resumed"));
    assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
}

#[test]
fn another_server_is_named_with_its_answer_and_ends_a_drain_that_has_not_begun() {
    let page = || Response::new(200, "<!doctype html><title>Log in</title>");
    let redirect = || Response::new(302, "").with_header("Location", "https://sso.example.com/");
    for (answer, words) in [
        (
            page as fn() -> Response,
            "200 <!doctype html><title>Log in</title>",
        ),
        (redirect, "302, a redirect to https://sso.example.com/"),
    ] {
        let fake = Fake::busy();
        fake.serves(&[44]);
        let says = format!("{URL} is not slurmrestd: it answers {words}; check `url`");
        fake.fault("GET nodes/", false, move || Ok(answer()));
        fake.fails(Phase::BeforeCordon, true, &says);
        // It was slurmrestd before.
        fake.waits();
        fake.fault("GET nodes/", false, move || Ok(answer()));
        fake.fails(Phase::BeforeDrain, false, &says);
    }
}

#[test]
fn a_busy_server_is_asked_again_when_it_says() {
    let fake = Fake::busy();
    fake.serves(&[44]);
    let answer = || Response::new(503, "<h1>Service Unavailable</h1>").with_header("Retry-After", "90");
    fake.fault("GET nodes/", false, move || Ok(answer()));
    let Outcome::Failed(failure) = fake.step(Phase::BeforeCordon) else {
        panic!("it answered")
    };
    assert_eq!(failure.retry_after, Some(90_000));
    let says = format!("{URL} answers 503 <h1>Service Unavailable</h1>");
    assert_eq!(failure.message, says);
    // Without that it may be a server that will never be slurmrestd, unless it has been one before.
    let answer = || Ok(Response::new(503, "<h1>Service Unavailable</h1>"));
    fake.fault("GET nodes/", false, answer);
    fake.fails(Phase::BeforeCordon, true, &says);
    fake.waits();
    fake.fault("GET nodes/", false, answer);
    fake.fails(Phase::BeforeDrain, false, &says);
}

#[test]
fn a_job_is_awaited_since_the_drain_began() {
    let fake = Fake::busy();
    fake.host.advance(Duration::from_secs(600));
    fake.host.drain_named("maintenance");
    fake.host.drain_began();
    let waits = fake.waits();
    assert_eq!(waits.waiting_for[0].since, Some(fake.host.now()));
}

#[test]
fn an_undrain_with_a_lost_answer_is_reported_when_it_worked() {
    let fake = Fake::new();
    fake.run_until_stable();
    fake.fault("POST", true, || Err(http::Error::Timeout("20 s".to_owned())));
    assert!(matches!(fake.step(Phase::AfterUncordon), Outcome::Pending(_)));
    let undrained = || {
        let events = fake.host.events();
        events
            .iter()
            .filter(|event| event.contains("SlurmNodeUndrained"))
            .count()
    };
    assert_eq!(undrained(), 0);
    assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
    assert_eq!(undrained(), 1);
}

#[test]
fn an_undrain_with_a_lost_answer_is_reported_once_while_another_node_holds_the_uncordon() {
    let undrained = |fake: &Fake| {
        let events = fake.host.events();
        let of_first = |event: &&String| event.contains("Slurm gives jobs to worker-0 again");
        events.iter().filter(of_first).count()
    };
    let with_second = |state: &[&str]| {
        let fake = Fake::new();
        fake.host.config("slurm-node", "pods");
        fake.node("worker-0", &["IDLE", "DRAIN"], OURS);
        fake.node("worker-1", &["IDLE", "DRAIN"], OURS);
        fake.fault("POST node/worker-0 ", true, || {
            Err(http::Error::Timeout("20 s".to_owned()))
        });
        assert!(matches!(fake.step(Phase::AfterUncordon), Outcome::Pending(_)));
        fake.node("worker-1", state, OURS);
        fake
    };
    // Its slurmd is silent.
    let fake = with_second(&["IDLE", "DRAIN", "NOT_RESPONDING"]);
    for _ in 0..3 {
        assert!(matches!(fake.step(Phase::AfterUncordon), Outcome::Pending(_)));
    }
    assert_eq!(undrained(&fake), 1, "{:#?}", fake.host.events());
    // Slurm refuses its undrain.
    let fake = with_second(&["IDLE", "DRAIN"]);
    for _ in 0..3 {
        fake.fault("POST node/worker-1 ", false, || {
            Ok(error(500, 2028, "Invalid node state specified"))
        });
        fake.step(Phase::AfterUncordon);
    }
    assert_eq!(undrained(&fake), 1, "{:#?}", fake.host.events());
}

#[test]
fn a_node_that_returns_by_itself_is_not_reported_as_out_of_service() {
    let fake = Fake::new();
    fake.node(
        NODE,
        &["DOWN", "DRAIN", "NOT_RESPONDING"],
        &format!("{OURS} : Not responding"),
    );
    fake.host.advance(Duration::from_secs(600));
    assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
    assert_eq!(fake.reason(NODE), "Not responding");
    let events = fake.host.events();
    assert!(
        events.iter().any(|event| event.contains("SlurmNodeSilent"))
            && events
                .iter()
                .all(|event| !event.contains("Scupper did not do this")),
        "{events:?}"
    );
}

#[test]
fn only_a_node_with_slurms_own_reason_alone_is_said_to_return() {
    let after = |state: &[&str], reason: &str| {
        let fake = Fake::new();
        fake.node(NODE, state, reason);
        assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
        let events = fake.host.events();
        events.last().cloned().unwrap_or_default()
    };
    // Its slurmd has answered a moment ago, and Slurm returns it in the next one.
    assert!(after(&["DOWN"], "Not responding").contains("SlurmNodeSilent"));
    let twice = after(&["DOWN", "NOT_RESPONDING"], "Not responding : Not responding");
    assert!(twice.contains("SlurmNodeStaysOut"), "{twice}");
}

#[test]
fn the_check_names_the_uncordon_for_our_own_drain() {
    let fake = Fake::new();
    fake.run_until_stable();
    let findings = fake.host.check::<Slurm>();
    let found = findings
        .iter()
        .find(|found| found.subject == "node name")
        .unwrap();
    assert!(found.fix.ends_with("scupper uncordon node-1"), "{found:?}");
}

#[test]
fn an_uncordon_waits_for_a_silent_slurmd_which_may_only_boot_now() {
    let fake = Fake::new();
    fake.node(NODE, &["IDLE", "DRAIN", "NOT_RESPONDING"], OURS);
    let waits = |words: &str| {
        let Outcome::Pending(waits) = fake.step(Phase::AfterUncordon) else {
            panic!("Slurm would add to the new reason, or keep the node down")
        };
        assert!(waits.progress.ends_with(words), "{}", waits.progress);
        assert_eq!(waits.waiting_for[0].what, NODE);
        assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
    };
    waits("the undrain waits for its slurmd, or until the node is DOWN");
    let down = ["DOWN", "DRAIN", "NOT_RESPONDING"];
    fake.node(NODE, &down, OURS);
    waits("the undrain waits for its slurmd, at most 600s (`registration-timeout`)");
    let given_back = |reason: &str| {
        assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
        assert_eq!(fake.reason(NODE), reason);
        fake.requests();
    };
    // It was off before the drain.
    fake.node(NODE, &down, &format!("{OURS}; was down: Not responding"));
    waits("at most 600s (`registration-timeout`)");
    // It was down before the drain.
    fake.node(NODE, &down, &format!("{OURS}; was down: bad disk"));
    given_back("bad disk");
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    given_back("Not responding");
    fake.node(NODE, &["DOWN", "DRAIN"], OURS);
    given_back("Not responding");
    fake.node(NODE, &down, OURS);
    waits("(`registration-timeout`)");
    fake.host.deadline_in(Duration::from_secs(30));
    given_back("Not responding");
    fake.host.deadline_in(Duration::from_secs(3600));
    fake.node(NODE, &down, OURS);
    waits("(`registration-timeout`)");
    fake.host.advance(Duration::from_secs(600));
    given_back("Not responding");
    // A cancel has no time for that.
    fake.node(NODE, &["IDLE", "DRAIN", "NOT_RESPONDING"], OURS);
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
}

#[test]
fn a_slurm_node_that_registers_during_the_drain_is_drained_in_each_phase() {
    let fake = Fake::new();
    fake.host.config("slurm-node", "pods");
    let mut pods = vec![slurmd("worker-0", &[])];
    fake.host.pods(pods.clone());
    fake.node("worker-0", &["MIXED"], "");
    fake.job(1, &["RUNNING"], "worker-0");
    fake.waits();
    let mut register = |name: &str| {
        fake.host.advance(Duration::from_secs(60));
        pods.push(slurmd(name, &[]).replaced_at(fake.host.now()));
        fake.host.pods(pods.clone());
        fake.node(name, &["IDLE"], "");
        fake.host.advance(Duration::from_secs(60));
    };
    register("worker-1");
    assert!(fake.waits().progress.starts_with("1 job on worker-0, worker-1"));
    assert_eq!(
        (fake.state("worker-1"), fake.reason("worker-1").as_str()),
        (vec!["IDLE".to_owned(), "DRAIN".to_owned()], OURS)
    );
    // From now on an operator may resume it, also beside one that registers.
    fake.node("worker-1", &["IDLE"], "");
    assert!(
        fake.waits()
            .progress
            .starts_with("an operator resumed worker-1 in Slurm")
    );
    register("worker-2");
    assert!(
        fake.waits()
            .progress
            .starts_with("an operator resumed worker-1 in Slurm")
    );
    assert_eq!(
        (fake.state("worker-1").len(), fake.state("worker-2").len()),
        (1, 2)
    );
    fake.node("worker-1", &["IDLE", "DRAIN"], "ops");
    fake.waits();

    fake.host.cordon(true);
    register("worker-3");
    let later = || {
        fake.host
            .step::<Slurm>(Phase::BeforeWave, Subject::Wave("slurm".to_owned()))
    };
    assert!(matches!(later(), Outcome::Pending(_)));
    assert_eq!(fake.state("worker-3"), ["IDLE", "DRAIN"]);
    fake.node("worker-0", &["MIXED"], "");
    let Outcome::Pending(waits) = later() else {
        panic!("it may get jobs")
    };
    assert!(
        waits
            .progress
            .starts_with("an operator resumed worker-0 in Slurm"),
        "{}",
        waits.progress
    );
}
