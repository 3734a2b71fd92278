//! What the driver needs of the cluster before it can begin, waited for. It ends only for what waiting cannot mend.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::DriverError;
use crate::chain;
use crate::plugin::readiness;
use scupper_cluster::{Cluster, ConnectError, ConnectOptions, ReadError};
use scupper_report::Health;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// What is waited for is logged again after so long.
const REMIND: Duration = Duration::from_secs(60);

/// How long something may keep the driver from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitLimit {
    /// As long as it takes: a person or a controller is about to provide it.
    Endless,
    /// For [`scupper_engine::Settings::forbidden_timeout`].
    Forbidden,
    /// Waiting does not mend it.
    None,
}

/// Tries until it works. What is missing is logged and is the answer of the readiness probe meanwhile.
pub(crate) async fn wait_for<T, F>(
    health: &Health,
    forbidden_timeout: Duration,
    attempt: impl Fn() -> F,
) -> Result<T, DriverError>
where
    F: Future<Output = Result<T, DriverError>>,
{
    let mut pause = FIRST_PAUSE;
    let mut forbidden_since = None;
    let mut told: Option<(String, Instant)> = None;
    loop {
        let error = match attempt().await {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        let now = Instant::now();
        match patience(&error) {
            WaitLimit::Endless => forbidden_since = None,
            WaitLimit::Forbidden => {
                let since = *forbidden_since.get_or_insert(now);
                if now.duration_since(since) >= forbidden_timeout {
                    return Err(error);
                }
            }
            WaitLimit::None => return Err(error),
        }
        let missing = chain(&error);
        readiness::waiting(health, &missing);
        let is_news =
            |(words, at): &(String, Instant)| *words != missing || now.duration_since(*at) >= REMIND;
        if told.as_ref().is_none_or(is_news) {
            tracing::warn!("the driver waits before it can start: {missing}");
            told = Some((missing, now));
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The cluster, once it answers, shows us the node and serves LifecycleEvents.
pub(crate) async fn cluster(connect: &ConnectOptions, node: &str) -> Result<Cluster, DriverError> {
    let cluster = Cluster::connect(connect).await.map_err(DriverError::Connect)?;
    cluster
        .preflight(node)
        .await
        .map_err(DriverError::of_node(node))?;
    let served = cluster.in_served_group().await.map_err(DriverError::Discovery)?;
    served.ok_or(DriverError::LifecycleNotServed)
}

const fn patience(error: &DriverError) -> WaitLimit {
    match error {
        DriverError::LifecycleNotServed
        | DriverError::Connect(ConnectError::Unreachable { .. } | ConnectError::Unexpected { .. }) => {
            WaitLimit::Endless
        }
        DriverError::Connect(ConnectError::Unauthorized { .. }) => WaitLimit::Forbidden,
        DriverError::Node { source, .. } | DriverError::Discovery(source) => match source {
            ReadError::Unavailable { .. } => WaitLimit::Endless,
            ReadError::Unauthorized { .. } | ReadError::Forbidden { .. } => WaitLimit::Forbidden,
            ReadError::NotFound { .. } | ReadError::Unexpected { .. } => WaitLimit::None,
        },
        _ => WaitLimit::None,
    }
}
