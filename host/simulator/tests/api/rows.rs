//! The rows of [`semantics`], run against the simulator.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::sync::Arc;
use std::time::Duration;

use crate::semantics::subject::{Control, Subject};
use crate::semantics::{self, Needs};
use kube::Client;
use scupper_simulator::api::{ApiServer, Forbidden, Lifecycle, Options, objects};

struct Handle(ApiServer);

impl Control for Handle {
    fn pause_server(&self) {
        self.0.pause();
    }
    fn resume_server(&self) {
        self.0.resume();
    }
    fn pause_controllers(&self) {
        self.0.pause_controllers();
    }
    fn resume_controllers(&self) {
        self.0.resume_controllers();
    }
}

const NOBODY: &str = "system:serviceaccount:default:nobody";

async fn subject(lifecycle: Lifecycle) -> Subject {
    let options = Options {
        lifecycle,
        bookmark_every: Duration::from_secs(60),
        ..Options::default()
    };
    let server = ApiServer::start(options).await.unwrap();
    server.store().apply(objects::node("node-0").build()).unwrap();
    server.set_forbidden(Forbidden {
        user: NOBODY.to_owned(),
        ..Forbidden::default()
    });
    let client = Client::try_from(server.client_config()).unwrap();
    let mut config = server.client_config();
    config.auth_info.token = Some(NOBODY.to_owned().into());
    let nobody = Client::try_from(config).unwrap();
    let crds = lifecycle == Lifecycle::Crd;
    Subject {
        client,
        nobody,
        control: Arc::new(Handle(server)),
        crds,
        namespace: "default".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_holds() {
    let subject = subject(Lifecycle::Native).await;
    let cases = semantics::all();
    let mut failed = semantics::run(
        &cases,
        &[Needs::Nothing, Needs::Lifecycle, Needs::NativeLifecycle],
        &subject,
    )
    .await;
    for alone in cases.iter().filter(|it| it.needs == Needs::Alone) {
        failed.extend(semantics::run(std::slice::from_ref(alone), &[Needs::Alone], &subject).await);
    }
    println!(
        "{} rows ran; {} left out: {:?}",
        cases.len(),
        semantics::LEFT_OUT.len(),
        semantics::LEFT_OUT
    );
    assert!(
        failed.is_empty(),
        "{} of {} rows failed: {failed:#?}",
        failed.len(),
        cases.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lifecycle_rows_hold_for_crds() {
    let subject = subject(Lifecycle::Crd).await;
    let failed = semantics::run(&semantics::all(), &[Needs::Lifecycle], &subject).await;
    assert!(failed.is_empty(), "{failed:#?}");
}
