//! Drains of an earlier process: which revisions continue their hooks. Only a revision of the version that wrote a
//! state reads it; if no such revision is available, the hook restarts.

use std::collections::BTreeSet;
use std::sync::Arc;

use scupper_engine::SavedHook;

use super::catalogue::{Catalogue, Member};
use super::session::Session;

impl Catalogue {
    /// The policies for a drain that an earlier process began, with its saved hooks. Each policy uses its active
    /// revision if that reads the saved state, else an earlier revision that does, if there is one.
    pub async fn resume(self: &Arc<Self>, hooks: &[SavedHook]) -> Session {
        let active = self.active();
        let mut members = Vec::with_capacity(active.members.len());
        for member in &active.members {
            let reader = self.reader(member, hooks).await;
            members.push(reader.unwrap_or_else(|| Arc::clone(member)));
        }
        Session::of(Some(Arc::clone(self)), members)
    }

    /// The earlier revision that continues these hooks; `None`: the active one does.
    async fn reader(&self, active: &Member, hooks: &[SavedHook]) -> Option<Arc<Member>> {
        let own = hooks.iter().filter(|hook| hook.policy == active.name());
        let written: BTreeSet<u32> = own.filter_map(|hook| hook.state_version).collect();
        if written.is_empty() || written.contains(&active.reads()) {
            return None;
        }
        let kept = self.kept(active.name()).await;
        kept.into_iter().find(|member| written.contains(&member.reads()))
    }
}
