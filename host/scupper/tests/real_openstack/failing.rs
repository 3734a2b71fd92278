//! Servers that do not move.

use scupper_engine::HookPhase::{BeforeCordon, BeforeDrain, OnCancel};

use crate::driver::{Drain, limited};
use crate::testbed::{A, B, Testbed};

pub(crate) async fn deadline(bed: &Testbed) {
    let nova = bed.nova();
    let stuck = bed.boot(1, &["--mode", "stuck", "--prefix", "stuck"]);
    let fine = bed.boot(1, &["--seconds", "0.5", "--prefix", "fine"]);
    let mut drain = Drain::new(bed, &limited(&[("server-deadline-seconds", "4")])).await;
    let mut bytes = false;
    let reported = drain
        .run_while(BeforeDrain, |_, waiting| {
            bytes |= waiting.iter().any(|on| on.contains("of 256 MiB transferred"));
            true
        })
        .await
        .unwrap_err();
    assert!(
        reported.contains("1 of 2 servers stay") && reported.contains("stuck-0"),
        "{reported}"
    );
    assert!(reported.contains("aborted at its deadline"), "{reported}");
    assert!(bytes, "the progress was not shown in bytes");
    assert_eq!(nova.migrations(&stuck[0]), ["cancelled"]);
    assert_eq!(nova.server(&stuck[0])["status"], "ACTIVE");
    assert_eq!(
        (nova.host_of(&stuck[0]), nova.host_of(&fine[0])),
        (A.to_owned(), B.to_owned())
    );
    drain.run(OnCancel).await.unwrap();
    assert_eq!(nova.service(A)["status"], "enabled");
}

pub(crate) async fn force(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(1, &["--mode", "stuck"]);
    let config = [
        ("server-deadline-seconds", "2"),
        ("on-deadline", "force-complete"),
    ];
    let mut drain = Drain::new(bed, &limited(&config)).await;
    drain.run(BeforeDrain).await.unwrap();
    assert_eq!(nova.host_of(&ids[0]), B);
    assert_eq!(nova.migrations(&ids[0]), ["completed"]);
}

pub(crate) async fn reasons(bed: &Testbed) {
    let nova = bed.nova();
    let half = bed.boot(1, &["--mode", "fail", "--prefix", "half"]);
    let destination = bed.boot(1, &["--mode", "refuse-dest", "--prefix", "destination"]);
    let source = bed.boot(1, &["--mode", "refuse-source", "--prefix", "source"]);
    let config = [("attempts", "2"), ("retry-seconds", "1"), ("parallel", "3")];
    let mut drain = Drain::new(bed, &limited(&config)).await;
    let reported = drain.run(BeforeDrain).await.unwrap_err();
    assert!(
        reported.starts_with("3 of 3 servers stay on compute-a: "),
        "{reported}"
    );
    let of = |name: &str| {
        let part = reported.split("; ").find(|part| part.contains(name));
        part.unwrap_or_else(|| panic!("{name}: {reported}"))
    };
    assert!(
        of("half-0").contains("is failed, and Nova records no cause"),
        "{reported}"
    );
    assert!(of("destination-0").contains("refuses this server"), "{reported}");
    assert!(
        of("source-0").contains("source refuses this server"),
        "{reported}"
    );
    for id in [&half[0], &destination[0], &source[0]] {
        assert_eq!(nova.migrations(id).len(), 2, "tried twice, and not for ever");
        assert_eq!(nova.host_of(id), A);
        assert_eq!(nova.server(id)["status"], "ACTIVE");
    }
    // Called again, it reports the same and tries nothing.
    drain.run(BeforeDrain).await.unwrap_err();
    assert_eq!(nova.migrations(&half[0]).len(), 2);
}

/// Each host has 64 processors, and each of these servers 40.
pub(crate) async fn no_valid_host(bed: &Testbed) {
    let nova = bed.nova();
    bed.boot(1, &["--host", B, "--flavor", "large", "--prefix", "there"]);
    let ids = bed.boot(1, &["--flavor", "large", "--prefix", "here"]);
    let mut drain = Drain::new(bed, &limited(&[("attempts", "1")])).await;
    let reported = drain.run(BeforeDrain).await.unwrap_err();
    assert!(
        reported.contains("here-0") && reported.contains("No valid host"),
        "{reported}"
    );
    assert_eq!(nova.host_of(&ids[0]), A);
}

pub(crate) async fn nowhere(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(1, &[]);
    nova.disable(B, "broken");
    let mut drain = Drain::new(bed, &limited(&[])).await;
    for phase in [BeforeCordon, BeforeDrain] {
        let reported = drain.run(phase).await.unwrap_err();
        assert!(
            reported.contains("no other compute host is enabled and up"),
            "{reported}"
        );
    }
    assert_eq!(nova.service(A)["status"], "enabled");
    assert_eq!(nova.migrations(&ids[0]), [] as [String; 0]);
}

pub(crate) async fn dead(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(1, &["--mode", "stuck"]);
    let mut drain = Drain::new(bed, &limited(&[])).await;
    drain.until_running(1).await;
    bed.stop_compute(A);
    let dead = drain
        .run_while(BeforeDrain, |progress, _| {
            !progress.contains("nova-compute on compute-a is down")
        })
        .await;
    let fresh = dead.is_ok().then_some(Drain::new(bed, &limited(&[])).await);
    let mut words = String::new();
    if let Some(mut fresh) = fresh {
        let reported = fresh
            .run_while(BeforeCordon, |progress, _| {
                progress.clone_into(&mut words);
                false
            })
            .await;
        assert_eq!(reported, Ok(false));
    }
    bed.start_compute(A);
    assert_eq!(dead, Ok(false), "a dead host is not drained");
    assert!(words.contains("evacuate"), "{words}");
    nova.until("Nova has given the migration up", |nova| {
        nova.server(&ids[0])["OS-EXT-STS:task_state"].is_null()
    })
    .await;
    assert_eq!(nova.host_of(&ids[0]), A);
}
