//! Faults between the policy and Nova.

use scupper_engine::HookPhase::{BeforeDrain, OnCancel};

use crate::driver::{Drain, Setup, limited};
use crate::proxy::{Fault, Proxy};
use crate::testbed::{A, B, Testbed};

pub(crate) async fn overload(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--seconds", "0.5"]);
    let mut number = 0;
    let proxy = Proxy::start(bed.nova_url(), move |_| {
        number += 1;
        match number {
            2 => Fault::Answer(429, "Retry-After: 1\r\n"),
            6 => Fault::Answer(503, "Retry-After: 1\r\n"),
            9 => Fault::CutBefore,
            _ => Fault::Pass,
        }
    });
    let setup = Setup {
        proxy: Some(&proxy.url),
        ..limited(&[])
    };
    let mut reported = Vec::new();
    let mut drain = Drain::new(bed, &setup).await;
    drain
        .run_while(BeforeDrain, |progress, _| {
            reported.push(progress.to_owned());
            true
        })
        .await
        .unwrap();
    let reported = reported.join("\n");
    assert!(reported.contains("429") && reported.contains("503"), "{reported}");
    for id in &ids {
        assert_eq!((nova.host_of(id).as_str(), nova.migrations(id).len()), (B, 1));
    }
}

/// Nova carries out the request, and its answer never arrives: for the first request of each kind.
pub(crate) async fn lost(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--seconds", "0.5"]);
    let (mut puts, mut posts) = (0, 0);
    let proxy = Proxy::start(bed.nova_url(), move |seen| {
        let count = match seen.method.as_str() {
            "PUT" => &mut puts,
            "POST" => &mut posts,
            _ => return Fault::Pass,
        };
        *count += 1;
        if *count == 1 { Fault::CutAfter } else { Fault::Pass }
    });
    let setup = Setup {
        proxy: Some(&proxy.url),
        ..limited(&[])
    };
    let mut drain = Drain::new(bed, &setup).await;
    drain.run(BeforeDrain).await.unwrap();
    for id in &ids {
        assert_eq!(nova.host_of(id), B);
        assert_eq!(nova.migrations(id), ["completed"], "a second migration of {id}");
    }
    assert_eq!(proxy.count("POST", "/action"), 2);
    drain.run(OnCancel).await.unwrap();
    assert_eq!(nova.service(A)["status"], "enabled");
}
