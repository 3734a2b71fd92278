//! Scripted policies: a planner, hooks, or both.

use scupper_engine::{HookPhase, PolicyInfo, Subject};

pub(crate) use crate::hooks::HookScript;
pub(crate) use crate::planners::PlannerScript;

#[derive(Clone, Debug)]
pub(crate) struct PolicyScript {
    pub(crate) name: String,
    pub(crate) planner: Option<PlannerScript>,
    pub(crate) hooks: Vec<(HookPhase, HookScript)>,
}

impl PolicyScript {
    /// The engine's view of it.
    pub(crate) fn info(&self) -> PolicyInfo {
        PolicyInfo {
            name: self.name.clone(),
            planner: self.planner.is_some(),
            phases: self.hooks.iter().map(|(phase, _)| *phase).collect(),
            ..PolicyInfo::default()
        }
    }
}

/// Identifies a hook.
pub(crate) type HookId = (String, HookPhase, Subject);
