//! Waits for what the driver needs of the cluster. It fails at once if waiting cannot help,
//! and after the `forbidden-timeout` if access stays refused.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::DriverError;
use crate::chain;
use crate::plugin::readiness;
use scupper_cluster::{Cluster, ConnectError, ConnectOptions, ReadError};
use scupper_common::health::Health;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How often the log repeats what is missing.
const REMIND: Duration = Duration::from_secs(60);

/// How long something may keep the driver from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartupWaitLimit {
    /// As long as it takes: a person or a controller is about to provide it.
    Unlimited,
    /// For [`scupper_engine::Settings::forbidden_timeout`].
    ForbiddenTimeout,
    /// Waiting does not fix it.
    DoNotWait,
}

/// Tries until it works. Meanwhile the log and the readiness probe say what is missing.
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
    let mut reported: Option<(String, Instant)> = None;
    loop {
        let error = match attempt().await {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        let now = Instant::now();
        match wait_limit(&error) {
            StartupWaitLimit::Unlimited => forbidden_since = None,
            StartupWaitLimit::ForbiddenTimeout => {
                let since = *forbidden_since.get_or_insert(now);
                if now.duration_since(since) >= forbidden_timeout {
                    return Err(error);
                }
            }
            StartupWaitLimit::DoNotWait => return Err(error),
        }
        let missing = chain(&error);
        readiness::waiting(health, &missing);
        let is_news =
            |(words, at): &(String, Instant)| *words != missing || now.duration_since(*at) >= REMIND;
        if reported.as_ref().is_none_or(is_news) {
            tracing::warn!("the driver waits before it can start: {missing}");
            reported = Some((missing, now));
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Connects. Fails unless the driver may read its node and the API server serves LifecycleEvents.
pub(crate) async fn cluster(connect: &ConnectOptions, node: &str) -> Result<Cluster, DriverError> {
    let cluster = Cluster::connect(connect).await.map_err(DriverError::Connect)?;
    cluster
        .preflight(node)
        .await
        .map_err(DriverError::of_node(node))?;
    let served = cluster.in_served_group().await.map_err(DriverError::Discovery)?;
    served.ok_or(DriverError::LifecycleNotServed)
}

const fn wait_limit(error: &DriverError) -> StartupWaitLimit {
    match error {
        DriverError::LifecycleNotServed
        | DriverError::Connect(ConnectError::Unreachable { .. } | ConnectError::Unexpected { .. }) => {
            StartupWaitLimit::Unlimited
        }
        DriverError::Connect(ConnectError::Unauthorized { .. }) => StartupWaitLimit::ForbiddenTimeout,
        DriverError::Node { source, .. } | DriverError::Discovery(source) => match source {
            ReadError::Unavailable { .. } => StartupWaitLimit::Unlimited,
            ReadError::Unauthorized { .. } | ReadError::Forbidden { .. } => {
                StartupWaitLimit::ForbiddenTimeout
            }
            ReadError::NotFound { .. } | ReadError::NotSaved { .. } | ReadError::Unexpected { .. } => {
                StartupWaitLimit::DoNotWait
            }
        },
        _ => StartupWaitLimit::DoNotWait,
    }
}
