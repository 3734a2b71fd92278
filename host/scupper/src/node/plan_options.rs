//! What is typed for plans, as options of `use_cases::plan`.

use super::args::{DrainRequestName, NodesArgs, PlanArgs, PlannedByArgs};
use super::handover;
use super::options::{self, Draining};
use crate::args::{ClusterArgs, PolicyArgs};
use crate::options::OptionsError;
use crate::setting_flags::{SettingFlags, Terminal};
use scupper_common::clock::Clock;
use scupper_config::GivenSettings;
use scupper_use_cases::{DrainRequestToPlan, HandedOver, PlanOptions, PlanTarget, Progress};

/// Who would carry out the drain that is planned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PlannedBy<'a> {
    /// A command, which hands it over to this driver where that offers it.
    Command { driver: &'a str },
    /// A command by itself.
    Local,
    /// The driver, for a trigger of its own.
    Driver,
}

impl<'a> PlannedBy<'a> {
    pub(crate) fn of(as_driver: bool, args: &'a PlannedByArgs) -> Self {
        match args {
            _ if as_driver => Self::Driver,
            PlannedByArgs { local: true, .. } => Self::Local,
            PlannedByArgs { driver_name, .. } => Self::Command { driver: driver_name },
        }
    }

    fn defaults(self) -> GivenSettings {
        match self {
            Self::Driver => GivenSettings::default(),
            Self::Command { .. } | Self::Local => GivenSettings::of_kubectl(),
        }
    }
}

/// The plans of some nodes.
pub(crate) fn of_nodes(
    chosen: &NodesArgs,
    by: PlannedBy<'_>,
    flags: &SettingFlags<Terminal>,
    policies: &PolicyArgs,
    cluster: &ClusterArgs,
) -> Result<PlanOptions, OptionsError> {
    let draining = options::draining(flags, policies, by.defaults())?;
    let target = PlanTarget::Nodes(options::nodes(chosen)?);
    Ok(plan_options(target, draining, by, policies, cluster))
}

/// What to plan, by whom, and how. A DrainRequest has a time limit of its own.
pub(super) fn of_plan(args: &PlanArgs) -> Result<(PlanTarget, PlannedBy<'_>, Draining), OptionsError> {
    let by = PlannedBy::of(args.as_driver || args.drain_request.is_some(), &args.by);
    let mut draining = options::draining(&args.drain, &args.policies, by.defaults())?;
    let Some((request, file)) = args.drain_request.as_ref().zip(args.policies.config.as_ref()) else {
        return Ok((PlanTarget::Nodes(options::nodes(&args.nodes)?), by, draining));
    };
    let config = draining.drain_requests.clone().ok_or_else(|| {
        let problem =
            "--drain-request: the driver serves none, because the section drain-requests is missing";
        OptionsError(vec![format!("{problem} from {}", file.display())])
    })?;
    if !draining.flags.has("sla") {
        draining.settings.time_limit = config.timeout;
    }
    let DrainRequestName { namespace, name } = request.clone();
    let wanted = DrainRequestToPlan {
        namespace,
        name,
        config,
    };
    Ok((PlanTarget::DrainRequest(Box::new(wanted)), by, draining))
}

pub(super) fn plan_options(
    target: PlanTarget,
    draining: Draining,
    by: PlannedBy<'_>,
    policies: &PolicyArgs,
    cluster: &ClusterArgs,
) -> PlanOptions {
    // With a flag that no driver obeys, the drain itself is refused unless it is local.
    let is_own = handover::own_flag(&draining.flags, policies, false).is_some();
    let handed_over = match by {
        PlannedBy::Command { driver } if !is_own => Some(HandedOver {
            driver: driver.to_owned(),
            settings: draining.handed_over,
        }),
        _ => None,
    };
    PlanOptions {
        connection: cluster.connection(),
        saved: None,
        is_examined: true,
        progress: Progress::default(),
        target,
        settings: draining.settings,
        handed_over,
        policies: draining.policies,
        as_driver: matches!(by, PlannedBy::Driver),
        ask_server: false,
        clock: Clock::System,
        recorder: None,
        compiler: None,
    }
}
