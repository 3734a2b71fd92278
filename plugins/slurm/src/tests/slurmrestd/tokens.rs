//! Tokens that Slurm rejects, or that lack a permission.

use std::time::Duration;

use scupper_sdk::{Outcome, Phase, http};

use super::fake::{Fake, NODE, OURS, error};

const REFUSED: &str = "Slurm rejects the token";
const NOT_ALLOWED: &str = "only Slurm's operators may";

/// The next request that begins like this is rejected as with an invalid token.
fn refuse(fake: &Fake, begins: &'static str) {
    fake.fault(begins, false, || {
        Ok(error(511, 1007, "Protocol authentication error"))
    });
}

#[test]
fn a_token_that_was_never_valid_ends_the_drain_before_any_change() {
    for phase in [Phase::BeforeCordon, Phase::BeforeDrain] {
        let fake = Fake::busy();
        refuse(&fake, "GET nodes/");
        fake.fails(phase, true, REFUSED);
        fake.fault("GET nodes/", false, || {
            Err(http::Error::NoSecret("token: no such file".to_owned()))
        });
        fake.fails(phase, true, "no such file");
        fake.fault("POST", false, || Ok(error(500, 2010, "Invalid user id")));
        fake.fails(phase, true, NOT_ALLOWED);
        assert_eq!(
            (fake.state(NODE), fake.reason(NODE)),
            (vec!["MIXED".to_owned()], String::new())
        );
    }
}

#[test]
fn a_token_that_expired_is_awaited_for_token_timeout() {
    for (timeout, words) in [(None, "within 5m"), (Some("90s"), "within 90s")] {
        let fake = Fake::busy();
        if let Some(timeout) = timeout {
            fake.host.config("token-timeout", timeout);
        }
        fake.waits();
        refuse(&fake, "GET nodes/");
        let waits = fake.waits();
        assert!(waits.progress.starts_with(REFUSED), "{}", waits.progress);
        assert!(
            waits
                .progress
                .contains("waiting for a valid token until 2027-01-15 08:0")
        );
        assert_eq!(waits.waiting_for[0].since, Some(fake.host.now()));
        // It is renewed and expires again: the timeout starts again.
        fake.host.advance(Duration::from_secs(80));
        fake.waits();
        refuse(&fake, "GET nodes/");
        fake.waits();
        fake.host
            .advance(Duration::from_secs(if timeout.is_some() { 89 } else { 299 }));
        refuse(&fake, "GET nodes/");
        fake.waits();
        fake.host.advance(Duration::from_secs(1));
        refuse(&fake, "GET nodes/");
        fake.fails(Phase::BeforeDrain, true, words);
    }
}

#[test]
fn a_lost_permission_is_awaited_and_a_missing_one_is_not() {
    let fake = Fake::busy();
    fake.host.config("ladder", "5m cancel");
    fake.host.deadline_in(Duration::from_secs(360));
    fake.waits();
    fake.host.advance(Duration::from_secs(60));
    fake.fault("POST", false, || Ok(error(500, 2010, "Invalid user id")));
    assert!(fake.waits().progress.contains(NOT_ALLOWED));
    fake.waits();
    assert!(fake.requests().contains(&"DELETE job/4711".to_owned()));
    // So far the token was only used to read the node.
    let fake = Fake::busy();
    fake.node(NODE, &["ALLOCATED", "POWERING_UP"], "");
    fake.waits();
    fake.node(NODE, &["ALLOCATED"], "");
    fake.fault("POST", false, || Ok(error(500, 2010, "Invalid user id")));
    fake.fails(Phase::BeforeDrain, true, NOT_ALLOWED);
}

#[test]
fn under_our_own_cordon_the_token_was_valid_before() {
    let fake = Fake::busy();
    fake.host.cordon(true);
    refuse(&fake, "GET nodes/");
    assert!(fake.waits().progress.starts_with(REFUSED));
}

#[test]
fn a_cancel_does_not_wait_for_a_token_and_an_uncordon_does() {
    let fake = Fake::new();
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    refuse(&fake, "GET nodes/");
    fake.fails(Phase::OnCancel, true, "stays until the node is uncordoned");
    fake.fault("POST", false, || Ok(error(500, 2010, "Invalid user id")));
    fake.fails(Phase::OnCancel, true, NOT_ALLOWED);
    refuse(&fake, "GET nodes/");
    assert!(matches!(fake.step(Phase::AfterUncordon), Outcome::Pending(_)));
    assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE"]);
}
