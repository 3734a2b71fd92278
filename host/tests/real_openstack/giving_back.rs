//! What is ours, and what is not.

use scupper_engine::HookPhase::{AfterUncordon, BeforeDrain, OnCancel};

use crate::driver::{Drain, limited};
use crate::testbed::{A, B, Testbed};

pub(crate) async fn foreign(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(1, &["--seconds", "0.5"]);
    for reason in ["kernel update", "AUTO: Connection to libvirt lost: 1"] {
        nova.disable(A, reason);
        let mut drain = Drain::new(bed, &limited(&[])).await;
        drain.run(BeforeDrain).await.unwrap();
        drain.run(OnCancel).await.unwrap();
        drain.run(AfterUncordon).await.unwrap();
        let service = nova.service(A);
        assert_eq!(
            (&service["status"], &service["disabled_reason"]),
            (&"disabled".into(), &reason.into())
        );
    }
    assert_eq!(nova.host_of(&ids[0]), B);
}

pub(crate) async fn cancel(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(3, &["--mode", "stuck"]);
    let mut drain = Drain::new(bed, &limited(&[("parallel", "3")])).await;
    // Two run, one is queued behind them.
    let under_way = drain
        .run_while(BeforeDrain, |_, waiting| {
            waiting.iter().filter(|on| on.contains("running")).count() < 2
        })
        .await;
    assert_eq!(under_way, Ok(false));
    drain.run(OnCancel).await.unwrap();
    for id in &ids {
        assert_eq!(nova.migrations(id), ["cancelled"]);
        assert_eq!(nova.host_of(id), A);
        assert_eq!(nova.server(id)["status"], "ACTIVE");
    }
    assert_eq!(nova.service(A)["status"], "enabled");
}
