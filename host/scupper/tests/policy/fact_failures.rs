//! Facts that no policy gets: of pods that are not in the call, and while the API server is away.

use std::sync::Arc;

use scupper_engine::PlanAnswer;

use crate::facts::{asked, asks, learned, load, plan_of};
use crate::support::{FakeCluster, pod};

#[tokio::test]
async fn only_pods_of_the_call_have_facts() {
    for fact in ["resources", "volumes", "peers"] {
        let cluster = Arc::new(FakeCluster::default());
        let policies = load(&[asks(&format!("{fact} stranger"))], &cluster)
            .await
            .unwrap();
        let reported = learned(&policies, &[pod(1)], None).await;
        assert_eq!(reported, "not found: no pod of this call has the UID", "{fact}");
        assert!(asked(&cluster).is_empty(), "{fact}");
    }
}

#[tokio::test]
async fn what_could_not_be_read_makes_no_plan() {
    for fact in ["resources", "volumes", "peers"] {
        let cluster = Arc::new(FakeCluster {
            away: true,
            ..FakeCluster::default()
        });
        let policies = load(&[asks(fact)], &cluster).await.unwrap();
        let answer = plan_of(&policies, "p", &[pod(1)], None).await;
        assert!(
            matches!(&answer, PlanAnswer::Failed { message, .. }
                if message == "a fact that it asked for could not be read: the API server is away"),
            "{fact}: {answer:?}"
        );
        assert_eq!(asked(&cluster).len(), 1, "{fact}");
    }
}
