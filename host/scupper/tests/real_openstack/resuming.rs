//! A driver that is killed, and one after it.

use scupper_engine::HookPhase::BeforeDrain;

use crate::driver::{Drain, limited};
use crate::testbed::{A, B, Testbed};

pub(crate) async fn killed(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(3, &["--seconds", "3"]);
    let setup = limited(&[]);
    let mut drain = Drain::new(bed, &setup).await;
    // Killed three times: right after the first requests, and while migrations run.
    for _ in 0..3 {
        let under_way = drain
            .run_while(BeforeDrain, |progress, _| !progress.contains("2 moving"))
            .await;
        assert_eq!(under_way, Ok(false), "two are under way");
        drain = drain.killed(bed, &setup).await;
    }
    drain.run(BeforeDrain).await.unwrap();
    assert_eq!(nova.servers(A), [] as [String; 0]);
    for id in &ids {
        assert_eq!(nova.host_of(id), B);
        assert_eq!(nova.migrations(id), ["completed"], "a second migration of {id}");
    }
}
