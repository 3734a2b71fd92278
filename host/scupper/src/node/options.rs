//! The flags of `kubectl drain`, checked and converted to options of `scupper_driver`.

use scupper_engine::Settings;

use super::args::NodesArgs;
use crate::args::PolicyArgs;
use crate::options::{self, ConfigMode, OptionsError, Problems};
use crate::setting_flags::{SettingFlags, Terminal};
use scupper_common::label_selector;
use scupper_config::{DrainRequestsFile, DrainSettings, GivenSettings};
use scupper_driver::{NodeSelection, PoliciesOptions};

/// How nodes are drained from the command line.
#[derive(Clone, Debug)]
pub(super) struct Draining {
    pub(super) settings: DrainSettings,
    /// What they come to for a driver that gets them in a request, as far as that is known here.
    pub(super) handed_over: Settings,
    /// What the command's own defaults give of them.
    pub(super) defaults: GivenSettings,
    /// What the flags give of them.
    pub(super) flags: GivenSettings,
    pub(super) policies: PoliciesOptions,
    /// How the driver serves DrainRequests, as the file says; `None`: not at all.
    pub(super) drain_requests: Option<DrainRequestsFile>,
}

/// A flag that is given wins over the file, and the file over the default.
pub(super) fn draining(
    args: &SettingFlags<Terminal>,
    chosen: &PolicyArgs,
    defaults: GivenSettings,
) -> Result<Draining, OptionsError> {
    let mut problems = Problems::default();
    let (policies, file, drain_requests) = options::policies(&mut problems, chosen, ConfigMode::OneShot);
    let flags = args.given(&mut problems);
    let settings = DrainSettings::default().with(&defaults);
    let mut settings = settings.with(&file).with(&flags);
    settings.engine.own_pod = options::own_pod(&mut problems).flatten();
    let handed_over = DrainSettings::default().with(&GivenSettings::of_requests());
    let handed_over = Settings {
        own_pod: settings.engine.own_pod.clone(),
        ..handed_over.with(&flags).engine
    };
    problems.end(Some(Draining {
        settings,
        handed_over,
        defaults,
        flags,
        policies,
        drain_requests,
    }))
}

/// An uncordon chooses no pods.
pub(super) fn uncordoning(chosen: &PolicyArgs) -> Result<Draining, OptionsError> {
    let mut draining = draining(&SettingFlags::default(), chosen, GivenSettings::of_kubectl())?;
    draining.settings.time_limit = None;
    Ok(draining)
}

/// Which nodes are meant. A selector without terms would mean all nodes, and is most likely a variable that is not set.
pub(super) fn nodes(args: &NodesArgs) -> Result<NodeSelection, OptionsError> {
    match &args.selector {
        None => Ok(NodeSelection::Named(
            args.names.iter().map(|name| plain(name)).collect(),
        )),
        Some(text) if text.trim().is_empty() => Err(OptionsError(vec![
            "--selector: is empty; to choose all nodes, write --selector kubernetes.io/os".to_owned(),
        ])),
        Some(text) if label_selector::parse(text).is_some() => Ok(NodeSelection::Selected(text.clone())),
        Some(text) => Err(OptionsError(vec![format!(
            "--selector {text}: must be a label selector such as pool=gpu,zone!=b"
        )])),
    }
}

/// A node's name, also as `kubectl get -o name` prints it. No node's name has a slash.
fn plain(name: &str) -> String {
    let kinds = ["node/", "nodes/", "no/"];
    let plain = kinds.iter().find_map(|kind| name.strip_prefix(kind));
    plain.unwrap_or(name).to_owned()
}
