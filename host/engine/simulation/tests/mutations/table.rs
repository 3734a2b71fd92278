//! The ways to break the engine, a row for each.
//!
//! `replace` holds [`SWITCH`] where it changes the behaviour once the row is switched on; switched off, it behaves as
//! `find` does.

/// The expression that checks whether the row is switched on.
pub(crate) const SWITCH: &str = "BROKEN";

/// One way to break the engine.
pub(crate) struct Mutation {
    /// The invariant that it breaks.
    pub(crate) invariant: u8,
    /// The behaviour of the broken engine.
    pub(crate) breaks: &'static str,
    /// Below `host/engine/src`.
    pub(crate) file: &'static str,
    pub(crate) find: &'static str,
    pub(crate) replace: &'static str,
}

pub(crate) const MUTATIONS: &[Mutation] = &[
    Mutation {
        invariant: 1,
        breaks: "deletes where the plan evicts, past every budget",
        file: "drain/evict.rs",
        find: "let deletes = self.verdict_on(uid) == Some(Verdict::Delete);",
        replace: "let deletes = BROKEN || self.verdict_on(uid) == Some(Verdict::Delete);",
    },
    Mutation {
        invariant: 5,
        breaks: "has policies undo their changes although the cordon stays",
        file: "drain/ending.rs",
        find: "self.phase == Phase::RollingBack && !self.wants_cordon_lifted()",
        replace: "!BROKEN && self.phase == Phase::RollingBack && !self.wants_cordon_lifted()",
    },
    Mutation {
        invariant: 6,
        breaks: "believes late news of a pod that was reported gone",
        file: "drain/cluster_state.rs",
        find: "if !self.tombstones.contains_key(&pod.id.uid) {",
        replace: "if BROKEN || !self.tombstones.contains_key(&pod.id.uid) {",
    },
    Mutation {
        invariant: 8,
        breaks: "lets late news take a deletion back",
        file: "drain/cluster_state.rs",
        find: "if pod.deletion.is_none() {",
        replace: "if !BROKEN && pod.deletion.is_none() {",
    },
    Mutation {
        invariant: 1,
        breaks: "asks planners about other pods than the draft is for",
        file: "drain/planning.rs",
        find: "self.chain.as_ref().map_or(&[], |chain| &chain.pods)",
        replace: "self.chain.as_ref().filter(|_| !BROKEN).map_or(&[], |chain| &chain.pods)",
    },
    Mutation {
        invariant: 1,
        breaks: "evicts a pod whose end was to be awaited",
        file: "drain/evict.rs",
        find: "target.verdict() == Verdict::AwaitCompletion && !pod.is_finished();",
        replace: "!BROKEN && target.verdict() == Verdict::AwaitCompletion && !pod.is_finished();",
    },
    Mutation {
        invariant: 1,
        breaks: "asks again for a pod that the API server does not know",
        file: "drain/answers.rs",
        find: "EvictAnswer::NotFound => self.await_deletion(uid, Answered::NotFound),",
        replace: "EvictAnswer::NotFound if BROKEN => {\n                self.refused(uid, Reason::UidDisproved, Again::After(Backoff::THROTTLE));\n            }\n            EvictAnswer::NotFound => self.await_deletion(uid, Answered::NotFound),",
    },
    Mutation {
        invariant: 2,
        breaks: "evicts the driver's own pod before others",
        file: "drain/waves.rs",
        find: "!self.is_own_pod(uid) || self.is_last(uid)",
        replace: "BROKEN || !self.is_own_pod(uid) || self.is_last(uid)",
    },
    Mutation {
        invariant: 2,
        breaks: "evicts DaemonSet pods of its own accord",
        file: "filter.rs",
        find: "if filters.ignore_daemonsets {",
        replace: "if BROKEN && filters.ignore_daemonsets {\n        Filter::Pass(None)\n    } else if filters.ignore_daemonsets {",
    },
    Mutation {
        invariant: 1,
        breaks: "leaves pods behind as soon as they are ending",
        file: "filter.rs",
        find: "(now.since(deletion.at).as_secs() > timeout).then(|| {",
        replace: "(BROKEN || now.since(deletion.at).as_secs() > timeout).then(|| {",
    },
    Mutation {
        invariant: 3,
        breaks: "reports drained without a fresh list",
        file: "drain/verify.rs",
        find: "if !self.verification.is_done {",
        replace: "if !BROKEN && !self.verification.is_done {",
    },
    Mutation {
        invariant: 3,
        breaks: "takes volumes for detached that no list has shown to be",
        file: "drain/volumes.rs",
        find: "(!self.volumes.is_listed).then(",
        replace: "(!BROKEN && !self.volumes.is_listed).then(",
    },
    Mutation {
        invariant: 6,
        breaks: "waits for volumes for longer than it may",
        file: "drain/volumes.rs",
        find: "let usual = since + wait.at_most;",
        replace: "let usual = since + wait.at_most.saturating_mul(if BROKEN { 50 } else { 1 });",
    },
    Mutation {
        invariant: 6,
        breaks: "waits for the volumes of pods that stay",
        file: "drain/volumes.rs",
        find: "filter(|volume| !self.is_used(volume))",
        replace: "filter(|volume| BROKEN || !self.is_used(volume))",
    },
    Mutation {
        invariant: 8,
        breaks: "begins to wait for volumes anew after a crash",
        file: "drain/restore.rs",
        find: "VolumeState::restored(checkpoint.volumes_since",
        replace: "VolumeState::restored(checkpoint.volumes_since.filter(|_| !BROKEN)",
    },
    Mutation {
        invariant: 4,
        breaks: "evicts while the driver stops",
        file: "drain/evict.rs",
        find: "&& !self.paused &&",
        replace: "&& (BROKEN || !self.paused) &&",
    },
    Mutation {
        invariant: 4,
        breaks: "evicts while the node is uncordoned",
        file: "drain/evict.rs",
        find: "self.cluster.is_cordoned()",
        replace: "(BROKEN || self.cluster.is_cordoned())",
    },
    Mutation {
        invariant: 5,
        breaks: "takes every cordon for its own",
        file: "drain/cordon.rs",
        find: "let ours = mark.is_some_and(|mark| mark.own_cordon);",
        replace: "let ours = BROKEN || mark.is_some_and(|mark| mark.own_cordon);",
    },
    Mutation {
        invariant: 5,
        breaks: "continues with another node of the same name",
        file: "drain/node_state.rs",
        find: "if *self.uid.get_or_insert_with(|| node.uid.clone()) != node.uid {",
        replace: "if BROKEN {\n            self.uid = Some(node.uid.clone());\n        }\n        if *self.uid.get_or_insert_with(|| node.uid.clone()) != node.uid {",
    },
    Mutation {
        invariant: 5,
        breaks: "resumes a drain on another node of the same name",
        file: "drain/restore.rs",
        find: "self.cluster.expect_node(checkpoint.node);",
        replace: "if !BROKEN {\n            self.cluster.expect_node(checkpoint.node);\n        }",
    },
    Mutation {
        invariant: 6,
        breaks: "runs past its deadline",
        file: "drain/ending.rs",
        find: "self.now >= deadline)",
        replace: "self.now >= deadline && (!BROKEN || self.now > deadline + Duration::from_secs(3600)))",
    },
    Mutation {
        invariant: 6,
        breaks: "follows the wall clock when it is set",
        file: "timeline.rs",
        find: "self.origin + reading.steady.saturating_sub(self.begun)",
        replace: "if BROKEN {\n            return reading.wall;\n        }\n        self.origin + reading.steady.saturating_sub(self.begun)",
    },
    Mutation {
        invariant: 6,
        breaks: "has no reason for pods that stay",
        file: "drain/waiting.rs",
        find: ".map(|pod| (pod.id.clone(), self.reason(pod)))",
        replace: ".map(|pod| (pod.id.clone(), self.reason(pod)))\n            .filter(|(_, reason)| !BROKEN || *reason != Reason::Kept)",
    },
    Mutation {
        invariant: 8,
        breaks: "takes a 403 for the API server's last word",
        file: "drain/writes.rs",
        find: "if forbidden >= patience {",
        replace: "if BROKEN || forbidden >= patience {",
    },
    Mutation {
        invariant: 7,
        breaks: "lets a hook say when it wants to be called again, without bounds",
        file: "drain/steps.rs",
        find: "again_after: again_after.clamp(SOONEST, LATEST),",
        replace: "again_after: again_after.clamp(SOONEST, if BROKEN { Duration::from_millis(u64::MAX) } else { LATEST }),",
    },
    Mutation {
        invariant: 7,
        breaks: "asks a planner that failed again at once",
        file: "drain/planning.rs",
        find: "let wait = retry_after.map(|wait| wait.clamp(SOONEST_RETRY, LATEST));",
        replace: "let wait = retry_after.map(|wait| wait.clamp(SOONEST_RETRY, if BROKEN { SOONEST_RETRY } else { LATEST }));",
    },
    Mutation {
        invariant: 7,
        breaks: "does not wait for the hooks before an eviction",
        file: "drain/evict.rs",
        find: "if !self.gate(HookPhase::BeforeEvict, &subject).is_open() {",
        replace: "if !BROKEN && !self.gate(HookPhase::BeforeEvict, &subject).is_open() {",
    },
    Mutation {
        invariant: 8,
        breaks: "forgets in a crash which hooks had finished",
        file: "drain/restore.rs",
        find: "in checkpoint.done {",
        replace: "in checkpoint.done.into_iter().filter(|_| !BROKEN) {",
    },
    Mutation {
        invariant: 8,
        breaks: "believes a copy that was read while another process was at work",
        file: "checkpoint.rs",
        find: "Some(node) if written_for.is_none_or(|uid| uid == node.uid) => {",
        replace: "_ if BROKEN && remembered.is_some() => remembered,\n            Some(node) if written_for.is_none_or(|uid| uid == node.uid) => {",
    },
    Mutation {
        invariant: 8,
        breaks: "forgets in a crash that it was cancelled",
        file: "checkpoint.rs",
        find: "(Phase::RollingBack, Some(reason)) =>",
        replace: "(Phase::RollingBack, Some(reason)) if !BROKEN =>",
    },
    Mutation {
        invariant: 8,
        breaks: "does not save that it was cancelled",
        file: "drain/saving.rs",
        find: "cancelled: self.cancelled_by(phase),",
        replace: "cancelled: self.cancelled_by(phase).filter(|_| !BROKEN),",
    },
    Mutation {
        invariant: 8,
        breaks: "rolls a drain back that had ended well",
        file: "drain/ending.rs",
        find: "self.checkpoint_state.ended_well() || self.was_rolled_back()",
        replace: "(!BROKEN && self.checkpoint_state.ended_well()) || self.was_rolled_back()",
    },
];
