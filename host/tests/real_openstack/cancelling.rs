//! A cancel at the worst moment: Nova has taken the requests, and its conductor has recorded no migration yet.

use scupper_engine::HookPhase::{BeforeDrain, OnCancel};
use scupper_engine::StepOutcome;

use crate::driver::{Drain, limited};
use crate::testbed::{A, Testbed};

const CONDUCTOR: &str = "nova-conductor";

pub(crate) async fn before_the_record(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--mode", "stuck"]);
    let mut drain = Drain::new(bed, &limited(&[])).await;
    // To disable it takes the conductor, and that is to stand still when the servers are asked to move.
    nova.disable(A, &drain.mark());
    bed.pause(CONDUCTOR);
    let asked = drain.step(BeforeDrain).await;
    let standing: Vec<(String, Vec<String>)> = ids
        .iter()
        .map(|id| {
            let task = nova.server(id)["OS-EXT-STS:task_state"].clone();
            (task.as_str().unwrap_or_default().to_owned(), nova.migrations(id))
        })
        .collect();
    let mut looks = 0;
    let mut enabled_early = false;
    let cancelled = drain
        .run_while(OnCancel, |_, _| {
            looks += 1;
            enabled_early |= nova.service(A)["status"] == "enabled";
            if looks == 1 {
                bed.resume(CONDUCTOR);
            }
            true
        })
        .await;
    bed.resume(CONDUCTOR);
    assert!(matches!(asked, StepOutcome::Pending { .. }), "{asked:?}");
    for (task, migrations) in standing {
        assert_eq!((task.as_str(), migrations.len()), ("migrating", 0));
    }
    assert_eq!(cancelled, Ok(true));
    nova.until("the conductor has recorded the migrations", |nova| {
        ids.iter().all(|id| !nova.migrations(id).is_empty())
    })
    .await;
    for id in &ids {
        assert_eq!(nova.migrations(id), ["cancelled"], "it leaves after the cancel");
        assert_eq!(nova.host_of(id), A);
    }
    assert!(
        !enabled_early,
        "the host was enabled while servers were leaving it"
    );
    assert_eq!(nova.service(A)["status"], "enabled");
}
