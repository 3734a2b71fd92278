//! Commands and notices as a test writes them.

use scupper_engine::{
    Checkpoint, HumanDuration, Notice, Removal, Subject, SurgeMethod, SurgeStep, Task, Time,
};

/// A command as one line.
pub(super) fn line(task: &Task) -> String {
    let grace = |grace: &Option<u64>| grace.map_or_else(String::new, |secs| format!(" grace {secs}"));
    let own = |checkpoint: &Checkpoint| if checkpoint.own_cordon { "ours" } else { "not ours" };
    match task {
        Task::Plan { policy, .. } => format!("plan {policy}"),
        Task::Step { step, state_version } => {
            let state = String::from_utf8_lossy(&step.state).into_owned();
            let version = state_version.map_or_else(String::new, |version| format!(" of version {version}"));
            let state = if state.is_empty() {
                version
            } else {
                format!(" after {state}{version}")
            };
            format!(
                "step {} {} {}{state}",
                step.policy,
                step.phase,
                subject(&step.subject)
            )
        }
        Task::Cordon { version, .. } => format!("cordon at {version}"),
        Task::Save { checkpoint, .. } => format!("save {}, {}", checkpoint.phase, own(checkpoint)),
        Task::Uncordon {
            checkpoint, version, ..
        } => {
            let keeps = if checkpoint.is_some() {
                ", keeps the checkpoint"
            } else {
                ""
            };
            format!("uncordon at {version}{keeps}")
        }
        Task::Forget { .. } => "forget".to_owned(),
        Task::Evict { pod, grace_seconds } => format!("evict {}{}", pod.uid, grace(grace_seconds)),
        Task::Delete { pod, grace_seconds } => format!("delete {}{}", pod.uid, grace(grace_seconds)),
        Task::ListPods => "list-pods".to_owned(),
        Task::ListVolumes => "list-volumes".to_owned(),
        Task::ChooseSurges { .. } => "choose-surges".to_owned(),
        Task::Surge {
            deployment,
            drain,
            method,
        } => match method {
            SurgeMethod::Restart => format!("surge {deployment} for {drain}"),
            SurgeMethod::Scale => format!("raise {deployment} for {drain}"),
        },
        Task::TakeBack { deployment, drain } => format!("take-back {deployment} for {drain}"),
    }
}

fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Node => "node".to_owned(),
        Subject::Wave(name) => format!("wave {name}"),
        Subject::Pod(uid) => format!("pod {uid}"),
    }
}

/// A notice as one line.
pub(super) fn notice_text(now: Time, notice: &Notice) -> String {
    match notice {
        Notice::Phase(phase) => format!("phase {phase}"),
        Notice::Planned(plan) => {
            let waves: Vec<_> = plan
                .waves
                .iter()
                .map(|wave| format!("{} {}", wave.name, wave.pods.len()))
                .collect();
            format!("planned {} pods: {}", plan.decisions.len(), waves.join(", "))
        }
        Notice::Cordoned { ours } => format!("cordoned, ours: {ours}"),
        Notice::PlannerWaiting {
            policy,
            message,
            again,
        } => format!(
            "planner {policy} waits {}: {message}",
            HumanDuration(again.since(now))
        ),
        Notice::HookWaiting {
            policy,
            phase,
            since,
            progress,
            ..
        } if *since < now => format!(
            "hook {policy} {phase} for {}: {progress}",
            HumanDuration(now.since(*since))
        ),
        Notice::HookWaiting {
            policy,
            phase,
            progress,
            ..
        } => format!("hook {policy} {phase}: {progress}"),
        Notice::HookDone {
            policy,
            phase,
            subject: s,
        } => format!("hook {policy} {phase} {} done", subject(s)),
        Notice::WaveStarted {
            name,
            number,
            of,
            pods,
        } => format!("wave {name} {number}/{of}: {pods}"),
        Notice::WaveOverdue { name } => format!("wave {name} overdue"),
        Notice::PodWaits { pod, reason } if reason.stays() => format!("{} stays: {reason}", pod.uid),
        Notice::PodWaits { pod, reason } => format!("{} waits: {}", pod.uid, reason.name()),
        Notice::PodLeaving {
            pod,
            by: Removal::Evict,
        } => format!("{} leaves", pod.uid),
        Notice::PodLeaving {
            pod,
            by: Removal::Delete,
        } => format!("{} is deleted", pod.uid),
        Notice::Forced {
            pod,
            grace_seconds,
            reason,
        } => format!("{} forced with {grace_seconds}s: {}", pod.uid, reason.name()),
        Notice::PodGone { pod, remaining } => format!("{} gone, {remaining} left", pod.uid),
        Notice::Newcomer { pod } => format!("{} came", pod.uid),
        Notice::AwaitsVolumes { left, since, until } => format!(
            "awaits volumes since {}, for {}: {left}",
            HumanDuration(now.since(*since)),
            HumanDuration(until.since(now))
        ),
        Notice::VolumesSettled { left: Some(left) } => format!("volumes settled: {left}"),
        Notice::VolumesSettled { left: None } => "volumes detached".to_owned(),
        Notice::Surge { deployment, step } => match step {
            SurgeStep::Restarted { until } => format!(
                "{deployment} restarted, waits {}",
                HumanDuration(until.since(now))
            ),
            SurgeStep::Raised { until } => {
                format!("{deployment} raised, waits {}", HumanDuration(until.since(now)))
            }
            SurgeStep::TakenBack => format!("{deployment} taken back"),
            SurgeStep::LeftRaised { message } => format!("{deployment} left raised: {message}"),
            SurgeStep::Replaced => format!("{deployment} replaced"),
            SurgeStep::GaveUp { message } => format!("{deployment} gave up: {message}"),
        },
        Notice::UncordonedByOthers => "uncordoned by others".to_owned(),
        Notice::Uncordoned => "uncordoned".to_owned(),
        Notice::Retrying { task, message } => format!("retrying {task}: {message}"),
        Notice::Finished { outcome, .. } => format!("finished: {outcome}"),
    }
}
