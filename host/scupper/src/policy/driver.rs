//! Where the driver is that `list` and `rollback` ask, and what it means when it does not answer.

use std::path::PathBuf;

use super::args::DriverArgs;
use crate::exit::Exit;
use crate::options::state_dir;
use scupper_policy_reload::ControlError;

/// Why the driver could not be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriverError {
    #[error("which driver? pass the driver's --state-dir, or set SCUPPER_STATE_DIR")]
    Where,
    #[error(transparent)]
    Ask(#[from] ControlError),
}

pub(super) fn state(args: &DriverArgs) -> Result<PathBuf, DriverError> {
    state_dir(args.state_dir.as_deref(), args.policy_cache.as_deref()).ok_or(DriverError::Where)
}

pub(super) const fn exit(error: &DriverError) -> Exit {
    match error {
        DriverError::Where => Exit::Usage,
        DriverError::Ask(ControlError::Refused(_)) => Exit::Policy,
        DriverError::Ask(_) => Exit::Config,
    }
}
