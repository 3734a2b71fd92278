//! Old records of migrations: Nova keeps all of them.

use std::collections::BTreeSet;

use scupper_engine::HookPhase::BeforeDrain;

use crate::driver::{Drain, Setup, limited};
use crate::proxy::{Fault, Proxy};
use crate::testbed::{A, Testbed};

/// Enough for far more than this needs; without a cursor there is no end.
const STEPS: usize = 30;

pub(crate) async fn seventy(bed: &Testbed) {
    bed.records(70, 62);
    let proxy = Proxy::start(bed.nova_url(), |_| Fault::Pass);
    let setup = Setup {
        proxy: Some(&proxy.url),
        ..limited(&[])
    };
    let mut drain = Drain::new(bed, &setup).await;
    let mut reported = Vec::new();
    let through = drain
        .run_while(BeforeDrain, |progress, _| {
            reported.push(progress.to_owned());
            reported.len() < STEPS
        })
        .await;
    let asked = proxy.paths("GET");
    // The check in advance asks for a server that does not exist.
    let is_of_server = |path: &&String| {
        path.contains("/servers/") && !path.ends_with("/detail") && !path.contains("/servers/00000000-")
    };
    let of_servers: Vec<&String> = asked.iter().filter(is_of_server).collect();
    let distinct: BTreeSet<&String> = of_servers.iter().copied().collect();
    assert_eq!(
        through,
        Ok(true),
        "{} requests, {} about {} servers: {reported:#?}",
        asked.len(),
        of_servers.len(),
        distinct.len()
    );
    assert_eq!((of_servers.len(), distinct.len()), (62, 62), "{of_servers:#?}");
    let checked =
        |reported: &&String| reported.contains("checked ") && reported.contains("of 70 migration records");
    assert!(
        reported.iter().any(|reported| checked(&reported)),
        "{reported:#?}"
    );
    assert_eq!(bed.nova().service(A)["status"], "disabled");
}
