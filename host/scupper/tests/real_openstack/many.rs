//! A full host.

use std::time::Instant;

use scupper_engine::HookPhase::BeforeDrain;

use crate::driver::{Drain, limited};
use crate::testbed::{A, B, Testbed};

const SERVERS: usize = 50;
const LARGE: usize = 5;
const PARALLEL: usize = 10;

pub(crate) async fn fifty(bed: &Testbed) {
    let nova = bed.nova();
    let small = bed.boot(SERVERS - LARGE, &["--seconds", "2", "--prefix", "small"]);
    let large = bed.boot(
        LARGE,
        &["--seconds", "4", "--prefix", "large", "--flavor", "medium"],
    );
    let parallel = PARALLEL.to_string();
    let mut drain = Drain::new(bed, &limited(&[("parallel", &parallel)])).await;
    let begun = Instant::now();
    let (mut reported, mut first, mut rates, mut most) = (Vec::new(), Vec::new(), 0, 0);
    drain
        .run_while(BeforeDrain, |progress, waiting| {
            reported.push(progress.to_owned());
            rates += usize::from(waiting.iter().any(|on| on.contains("MiB/s")));
            let moving = waiting.iter().filter(|on| !on.contains("more servers"));
            most = most.max(moving.count());
            if first.is_empty() {
                first = waiting.to_vec();
            }
            true
        })
        .await
        .unwrap();
    println!("{SERVERS} servers left in {:.0} s", begun.elapsed().as_secs_f32());
    assert_eq!(nova.servers(A), [] as [String; 0]);
    for id in small.iter().chain(&large) {
        assert_eq!((nova.host_of(id).as_str(), nova.migrations(id).len()), (B, 1));
    }
    assert_eq!(most, PARALLEL, "side by side, and no more than configured");
    let of_large = first
        .iter()
        .take(PARALLEL)
        .filter(|on| on.contains("large-"))
        .count();
    assert_eq!(of_large, LARGE, "the largest go first: {first:#?}");
    let memory = |reported: &&String| reported.contains("GiB of memory to go") && reported.contains("MiB/s");
    assert!(reported.iter().any(|reported| memory(&reported)), "{reported:#?}");
    assert!(rates > 0, "no server's rate was shown");
}
