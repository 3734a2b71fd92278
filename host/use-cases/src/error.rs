//! Why a command failed.

use scupper_cluster::{ReadError, WriteError};
use scupper_driver::{DrainRequestPlanError, DriverError};
use scupper_runner::NoPlan;

use super::HandOverError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// As in the driver: connecting, reading the node, loading policies, draining in this process.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The driver could not be asked to drain or to cancel.
    #[error(transparent)]
    HandOver(#[from] HandOverError),
    /// The API server did not say which rights this account has.
    #[error("could not ask the API server for this account's rights")]
    Rights(#[source] ReadError),
    /// There is no plan.
    #[error(transparent)]
    NoPlan(#[from] NoPlan),
    /// The drain of a DrainRequest cannot be planned.
    #[error(transparent)]
    DrainRequest(#[from] DrainRequestPlanError),
    /// Something could not be removed.
    #[error("could not clean up")]
    Cleanup(#[source] WriteError),
}
