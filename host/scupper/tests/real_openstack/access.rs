//! Permissions, credentials and the paths to Nova.

use scupper_engine::HookPhase::BeforeDrain;
use scupper_policy::Severity;

use crate::driver::{Drain, Setup, limited};
use crate::http;
use crate::proxy::{Fault, Proxy};
use crate::testbed::{A, B, Testbed};

/// Keystone answers the same for revoked and for expired tokens. It cannot revoke tokens that have access rules.
pub(crate) async fn revoked(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--seconds", "2"]);
    let proxy = Proxy::start(bed.nova_url(), |_| Fault::Pass);
    let setup = Setup {
        who: "drain",
        config: &[],
        proxy: Some(&proxy.url),
        keystone: None,
    };
    let mut drain = Drain::new(bed, &setup).await;
    let under_way = drain
        .run_while(BeforeDrain, |progress, _| !progress.contains("2 moving"))
        .await;
    assert_eq!(under_way, Ok(false));
    let token = proxy.tokens()[0].clone();
    let headers = [
        ("X-Auth-Token", token.as_str()),
        ("X-Subject-Token", token.as_str()),
    ];
    let url = format!("{}/auth/tokens", bed.keystone_url());
    assert_eq!(http::send("DELETE", &url, &headers, b"").unwrap().status, 204);
    drain.run(BeforeDrain).await.unwrap();
    assert_eq!(proxy.tokens().len(), 2, "one new token");
    for id in &ids {
        assert_eq!((nova.host_of(id).as_str(), nova.migrations(id).len()), (B, 1));
    }
}

/// Tokens live for twenty seconds, and the drain takes longer.
pub(crate) async fn renewed(bed: &Testbed) {
    let (proxy, at_most) = outlived(bed, None).await;
    let tokens = proxy.tokens().len();
    assert!((2..=at_most).contains(&tokens), "{tokens} tokens");
    assert_eq!(proxy.answered(401), 0, "each was replaced before it ended");
}

/// The same, and Keystone claims that they live for an hour longer: Nova refuses each of them in its turn.
pub(crate) async fn expired(bed: &Testbed) {
    let keystone = Proxy::start(bed.keystone_url(), |seen| match seen.method.as_str() {
        "POST" => Fault::Change(an_hour_more),
        _ => Fault::Pass,
    });
    let (proxy, at_most) = outlived(bed, Some(&keystone.url)).await;
    let (tokens, refused) = (proxy.tokens().len(), proxy.answered(401));
    assert!((2..=at_most).contains(&tokens), "{tokens} tokens");
    assert_eq!(refused, tokens - 1, "one new token for each that was refused");
    assert_eq!(keystone.answered(201), tokens);
}

/// Drains while tokens expire: three servers, one after the other, nine seconds each. With the number of tokens that this
/// may take: a token is used for 18 seconds of its 20 at least, however long a busy machine takes.
async fn outlived(bed: &Testbed, keystone: Option<&str>) -> (Proxy, usize) {
    let ids = bed.boot(3, &["--seconds", "9"]);
    let proxy = Proxy::start(bed.nova_url(), |_| Fault::Pass);
    let setup = Setup {
        proxy: Some(&proxy.url),
        keystone,
        ..limited(&[("parallel", "1"), ("poll-seconds", "2")])
    };
    let mut drain = Drain::new(bed, &setup).await;
    // They stay like this: the scenario that uses this is the last of its run.
    bed.token_ttl(20);
    let begun = std::time::Instant::now();
    drain.run(BeforeDrain).await.unwrap();
    let at_most = 1 + begun.elapsed().as_secs() / 18;
    let nova = bed.nova();
    for id in &ids {
        assert_eq!((nova.host_of(id).as_str(), nova.migrations(id).len()), (B, 1));
    }
    (proxy, usize::try_from(at_most).unwrap())
}

/// `"expires_at": "2026-11-21T13:59:58.000000Z"`: the hour after it.
fn an_hour_more(answer: &str) -> String {
    let Some((before, rest)) = answer.split_once("\"expires_at\": \"") else {
        return answer.to_owned();
    };
    let (at, after) = rest.split_once('"').unwrap();
    let at: jiff::Timestamp = at.parse().unwrap();
    let later = at + jiff::SignedDuration::from_hours(1);
    let later = later.strftime("%Y-%m-%dT%H:%M:%S.000000Z");
    format!("{before}\"expires_at\": \"{later}\"{after}")
}

/// A user with a password, who may boot servers and do nothing else.
pub(crate) async fn member(bed: &Testbed) {
    let nova = bed.nova();
    let setup = Setup {
        who: "alice",
        config: &[],
        proxy: None,
        keystone: None,
    };
    let reported = Drain::new(bed, &setup).await.run(BeforeDrain).await.unwrap_err();
    assert!(
        reported.contains("403") && reported.contains("os_compute_api:os-services:list"),
        "{reported}"
    );
    assert_eq!(nova.service(A)["status"], "enabled");

    // An administrator's password works like a credential.
    let ids = bed.boot(1, &["--seconds", "0.5"]);
    let setup = Setup {
        who: "drainer",
        ..setup
    };
    Drain::new(bed, &setup).await.run(BeforeDrain).await.unwrap();
    assert_eq!(nova.host_of(&ids[0]), B);
}

pub(crate) async fn wrong_password(bed: &Testbed) {
    let setup = Setup {
        who: "drainer",
        config: &[("username", "nobody")],
        proxy: None,
        keystone: None,
    };
    let reported = Drain::new(bed, &setup).await.run(BeforeDrain).await.unwrap_err();
    assert!(reported.contains("Keystone rejects the credential"), "{reported}");
}

/// `scupper doctor` before the first drain: the minimal credential, and the problems of others.
pub(crate) async fn checked(bed: &Testbed) {
    bed.boot(2, &[]);
    let good = found(bed, &limited(&[])).await;
    let subjects: Vec<&str> = good.iter().map(|(_, subject, _)| subject.as_str()).collect();
    assert_eq!(
        subjects,
        ["credential", "Nova", "rights", "host", "other hosts", "servers"]
    );
    assert!(
        good.iter().all(|(severity, ..)| *severity == Severity::Ok),
        "{good:#?}"
    );
    assert!(
        good[5].2.contains("2 servers on compute-a, 2 to leave"),
        "{good:#?}"
    );

    let alice = Setup {
        who: "alice",
        ..limited(&[])
    };
    let nobody = Setup {
        who: "drainer",
        ..limited(&[("username", "nobody")])
    };
    for (setup, subject, words) in [
        (alice, "rights", "os_compute_api:os-services:list"),
        (nobody, "credential", "rejects the credential"),
        (limited(&[("region-name", "")]), "region", "RegionOne, RegionTwo"),
        (
            limited(&[("host-table", "node-1=compute-z")]),
            "host",
            "compute-z",
        ),
    ] {
        let findings = found(bed, &setup).await;
        let (severity, at, message) = findings.last().unwrap();
        assert_eq!(
            (*severity, at.as_str()),
            (Severity::Error, subject),
            "{findings:#?}"
        );
        assert!(message.contains(words), "{findings:#?}");
    }
    let nova = bed.nova();
    assert_eq!(nova.service(A)["status"], "enabled");
    assert_eq!(nova.servers(A).len(), 2);
}

async fn found(bed: &Testbed, setup: &Setup<'_>) -> Vec<(Severity, String, String)> {
    let findings = Drain::new(bed, setup).await.check().await;
    let lines = findings.into_iter();
    lines
        .map(|found| (found.severity, found.subject, found.message))
        .collect()
}

pub(crate) async fn unknown_host(bed: &Testbed) {
    bed.boot(1, &[]);
    let config = [("host-table", "node-1=compute-z")];
    let reported = Drain::new(bed, &limited(&config))
        .await
        .run(BeforeDrain)
        .await
        .unwrap_err();
    assert!(
        reported.contains("`compute-z`") && reported.contains("compute-a"),
        "{reported}"
    );
}

pub(crate) async fn regions(bed: &Testbed) {
    for (region, words) in [
        ("", "RegionOne, RegionTwo"),
        ("RegionThree", "RegionThree"),
        ("RegionTwo", "compute-url"),
    ] {
        let reported = Drain::new(bed, &limited(&[("region-name", region)]))
            .await
            .run(BeforeDrain)
            .await
            .unwrap_err();
        assert!(reported.contains(words), "{region}: {reported}");
    }
}
