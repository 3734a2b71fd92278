//! Who may, who may not, and where.

use scupper_engine::HookPhase::BeforeDrain;

use crate::driver::{Drain, Setup, limited};
use crate::http;
use crate::proxy::{Fault, Proxy};
use crate::testbed::{A, B, Testbed};

/// What is revoked and what has expired is answered alike. Keystone cannot revoke tokens that have access rules.
pub(crate) async fn revoked(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--seconds", "2"]);
    let proxy = Proxy::start(bed.nova_url(), |_| Fault::Pass);
    let setup = Setup {
        who: "drain",
        config: &[],
        proxy: Some(&proxy.url),
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

/// A user with a password, who may boot servers and no more.
pub(crate) async fn member(bed: &Testbed) {
    let nova = bed.nova();
    let setup = Setup {
        who: "alice",
        config: &[],
        proxy: None,
    };
    let told = Drain::new(bed, &setup).await.run(BeforeDrain).await.unwrap_err();
    assert!(
        told.contains("403") && told.contains("os_compute_api:os-services:list"),
        "{told}"
    );
    assert_eq!(nova.service(A)["status"], "enabled");

    // An administrator's password is as good as a credential.
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
    };
    let told = Drain::new(bed, &setup).await.run(BeforeDrain).await.unwrap_err();
    assert!(told.contains("Keystone refuses the credential"), "{told}");
}

pub(crate) async fn unknown_host(bed: &Testbed) {
    bed.boot(1, &[]);
    let config = [("host-table", "node-1=compute-z")];
    let told = Drain::new(bed, &limited(&config))
        .await
        .run(BeforeDrain)
        .await
        .unwrap_err();
    assert!(
        told.contains("`compute-z`") && told.contains("compute-a"),
        "{told}"
    );
}

pub(crate) async fn regions(bed: &Testbed) {
    for (region, words) in [
        ("", "RegionOne, RegionTwo"),
        ("RegionThree", "RegionThree"),
        ("RegionTwo", "compute-url"),
    ] {
        let told = Drain::new(bed, &limited(&[("region-name", region)]))
            .await
            .run(BeforeDrain)
            .await
            .unwrap_err();
        assert!(told.contains(words), "{region}: {told}");
    }
}
