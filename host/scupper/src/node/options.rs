//! The flags of `kubectl drain`, checked and converted to options of `scupper_driver`.

use std::time::Duration;

use scupper_engine::{Filters, Selector, Settings};

use super::args::{KubectlArgs, LocalDataArg, NodesArgs};
use crate::args::PolicyArgs;
use crate::options::{self, ConfigMode, OptionsError, Problems};
use scupper_common::label_selector;
use scupper_config::{DrainFile, DrainRequestsFile, PreFlight};
use scupper_driver::{NodeSelection, PoliciesOptions};

/// How nodes are drained from the command line.
#[derive(Clone, Debug)]
pub(super) struct Draining {
    pub(super) settings: Settings,
    pub(super) policies: PoliciesOptions,
    pub(super) eviction_timeout: Duration,
    /// What a flag or the file says of pods that come back.
    pub(super) returning_pod_evictions: Option<u32>,
    /// A flag or the file says what follows from local data.
    pub(super) has_local_data: bool,
    /// Objects a page of a list.
    pub(super) page_size: u32,
    /// For each node.
    pub(super) timeout: Option<Duration>,
    /// How the driver serves DrainRequests, as the file says; `None`: not at all.
    pub(super) drain_requests: Option<DrainRequestsFile>,
    /// The selector of pods as it was typed.
    pub(super) pod_selector: String,
}

/// The defaults of `kubectl drain`.
pub(super) const KUBECTL: Filters = Filters {
    force: false,
    ignore_daemonsets: false,
    delete_emptydir_data: false,
    skip_wait_for_delete_timeout: Duration::ZERO,
    pod_selector: Selector::EVERYTHING,
    disable_eviction: false,
    only_pods: None,
};

/// A flag that is given wins over the file, and the file over the default.
pub(super) fn draining(
    args: &KubectlArgs,
    chosen: &PolicyArgs,
    defaults: &Filters,
) -> Result<Draining, OptionsError> {
    let mut problems = Problems::default();
    let (policies, file, drain_requests) = options::policies(&mut problems, chosen, ConfigMode::OneShot);
    let flags = DrainFile {
        eviction_timeout: options::duration_flag(
            &mut problems,
            "--eviction-timeout",
            args.eviction_timeout.as_ref(),
        ),
        forbidden_timeout: options::duration_flag(
            &mut problems,
            "--forbidden-timeout",
            args.forbidden_timeout.as_ref(),
        ),
        sla: options::duration_flag(&mut problems, "--timeout", args.timeout.as_ref()),
        grace_period: args.grace_period,
        force: args.force,
        delete_emptydir_data: args.delete_emptydir_data,
        ignore_daemonsets: args.ignore_daemonsets,
        returning_pod_evictions: args.returning_pod_evictions,
        local_data: args.local_data.map(PreFlight::from),
        ..DrainFile::default()
    };
    let said = flags.or(file);
    let (eviction_timeout, timeout) = (scupper_driver::eviction_timeout(&said), said.sla);
    let settings = settings(&mut problems, args, &said, defaults);
    let page_size = problems.check(
        u32::try_from(args.chunk_size)
            .map_err(|_negative| format!("--chunk-size {}: must be 0 or more", args.chunk_size)),
    );
    let draining = settings.zip(page_size).map(|(settings, page_size)| Draining {
        settings,
        policies,
        eviction_timeout,
        returning_pod_evictions: said.returning_pod_evictions,
        has_local_data: said.local_data.is_some(),
        page_size,
        timeout: timeout.filter(|timeout| !timeout.is_zero()),
        drain_requests,
        pod_selector: args.pod_selector.clone(),
    });
    problems.end(draining)
}

/// An uncordon chooses no pods.
pub(super) fn uncordoning(chosen: &PolicyArgs) -> Result<Draining, OptionsError> {
    let draining = draining(&KubectlArgs::default(), chosen, &KUBECTL)?;
    Ok(Draining {
        timeout: None,
        page_size: 500,
        ..draining
    })
}

fn settings(
    problems: &mut Problems,
    args: &KubectlArgs,
    said: &DrainFile,
    defaults: &Filters,
) -> Option<Settings> {
    let own_pod = options::own_pod(problems);
    let wrong = || "--pod-selector=<pod_selector> must be a valid label selector".to_owned();
    let pod_selector = problems.check(label_selector::parse(&args.pod_selector).ok_or_else(wrong));
    let skip = u64::try_from(args.skip_wait_for_delete_timeout).unwrap_or(0);
    // What no file can say, and then what it can.
    let usual = Filters {
        skip_wait_for_delete_timeout: Duration::from_secs(skip),
        pod_selector: pod_selector?,
        disable_eviction: args.disable_eviction,
        ..defaults.clone()
    };
    Some(Settings {
        machine_is_off: args.node_is_off,
        ..scupper_driver::settings(said, own_pod?, usual)
    })
}

impl From<LocalDataArg> for PreFlight {
    fn from(flag: LocalDataArg) -> Self {
        match flag {
            LocalDataArg::Warn => Self::Warn,
            LocalDataArg::Refuse => Self::Refuse,
        }
    }
}

/// Which nodes are meant.
pub(super) fn nodes(args: &NodesArgs) -> Result<NodeSelection, OptionsError> {
    match &args.selector {
        None => Ok(NodeSelection::Named(args.names.clone())),
        Some(text) if label_selector::parse(text).is_some() => Ok(NodeSelection::Selected(text.clone())),
        Some(text) => Err(OptionsError(vec![format!(
            "--selector {text}: must be a label selector such as pool=gpu,zone!=b"
        )])),
    }
}
