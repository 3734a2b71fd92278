//! Samples of every phase, reason, outcome and notice, and a drain that goes through all notices.

mod surge;

use std::time::Duration;

use scupper_engine::{
    AttachedVolume, Blocker, Budget, Controller, Decision, HeldUp, HookPhase, Notice, Outcome, Phase, Plan,
    Pod, PodRef, Reason, Removal, Selector, Subject, Summary, SurgeMethod, Time, Totals, Uid, UnhealthyPods,
    Verdict, VolumeClaim, VolumesLeft, WaitingOn, Wave,
};

use self::surge::raises;
pub(crate) use self::surge::{surge_steps, surges};
use super::super::Estimate;
use super::super::fixture::{pod, running};
use super::{Variants, complete, variants};

variants!(Phase: Planning Preparing Cordoning Holding Evicting Detaching Verifying RollingBack Uncordoning Finished);
variants!(Reason: NotPlanned PlannerFailed Kept WaveNotStarted HookRunning ParallelLimit EvictionRequested
    BudgetExhausted Surging BudgetNotObserved MoreThanOneBudget Throttled EvictionRefused NamespaceTerminating Forbidden
    Unreachable UidDisproved Terminating TerminatingPastGrace AwaitingCompletion NodeUncordoned KeepsComingBack
    ArrivedDuringDrain DriverStopping Refused);
variants!(Outcome: Drained Uncordoned Blocked PolicyFailed DeadlineExceeded Cancelled Lost Failed);
variants!(Notice: Phase Planned Cordoned PlannerWaiting HookWaiting HookDone WaveStarted WaveOverdue PodWaits
    PodLeaving Forced PodGone AwaitsVolumes VolumesSettled Surge Newcomer UncordonedByOthers Uncordoned Retrying Finished);
variants!(Verdict: Evict Delete AwaitCompletion Keep Refuse);

/// The moment of all samples.
pub(super) const NOW: Time = Time::from_millis(1_000_000);

pub(super) fn ago(seconds: u64) -> Time {
    Time::from_millis(NOW.as_millis() - seconds * 1000)
}

pub(super) fn phases() -> [Phase; 10] {
    complete(&Phase::ALL);
    Phase::ALL
}

/// One of each reason, and variants whose text differs without one of their parts.
pub(super) fn reasons() -> Vec<Reason> {
    let text = |text: &str| text.to_owned();
    let mut all = vec![
        Reason::NotPlanned,
        Reason::PlannerFailed {
            policy: text("slurm"),
            message: text("the call took longer than 5s"),
        },
        Reason::Kept,
        Reason::WaveNotStarted { wave: text("db") },
        Reason::HookRunning {
            policy: text("openstack"),
            phase: HookPhase::BeforeEvict,
        },
        Reason::ParallelLimit,
        Reason::EvictionRequested,
        Reason::NamespaceTerminating,
        Reason::UidDisproved,
        Reason::AwaitingCompletion,
        Reason::NodeUncordoned,
        Reason::DriverStopping,
        Reason::Refused {
            policy: String::new(),
            message: text("Pods that declare no controller (use --force to override)"),
        },
        Reason::Terminating {
            until: NOW + Duration::from_secs(12),
        },
    ];
    for finalizers in ["", "example.com/hold, example.com/save"] {
        let (since, finalizers) = (ago(100), text(finalizers));
        all.push(Reason::TerminatingPastGrace { since, finalizers });
    }
    for (controller, toleration) in [("StatefulSet db", "every taint"), ("", "")] {
        all.push(Reason::KeepsComingBack {
            controller: text(controller),
            toleration: text(toleration),
        });
    }
    for toleration in ["node.kubernetes.io/unschedulable", ""] {
        all.push(Reason::ArrivedDuringDrain {
            message: text("it has no controller"),
            toleration: text(toleration),
        });
    }
    all.extend(refusals());
    complete(&all);
    all
}

/// Reasons with the API server's text.
fn refusals() -> Vec<Reason> {
    let text = |text: &str| text.to_owned();
    let exhausted = |budget: &str| Reason::BudgetExhausted {
        budget: text(budget),
        message: text("The disruption budget needs 2 healthy pods and has 2 currently"),
    };
    vec![
        exhausted("cart"),
        exhausted(""),
        Reason::Surging {
            workload: text("Deployment shop/web"),
            method: SurgeMethod::Restart,
        },
        Reason::BudgetNotObserved {
            message: text("The disruption budget is still being processed by the server."),
        },
        Reason::MoreThanOneBudget {
            message: text("This pod has more than one PodDisruptionBudget"),
        },
        Reason::Throttled {
            message: text("too many requests"),
        },
        Reason::EvictionRefused {
            code: 403,
            message: text("admission webhook \"hold.example.com\" denied the request:\nnot today"),
        },
        Reason::Forbidden {
            message: text("pods \"web\" is forbidden"),
        },
        Reason::Unreachable {
            message: text("connection refused"),
        },
    ]
}

/// One of each outcome, and variants whose text differs with other parts.
pub(super) fn outcomes() -> Vec<Outcome> {
    let text = |text: &str| text.to_owned();
    let blocker = |name: &str, reason: &str, policy: &str| Blocker {
        pod: pod(name),
        reason: text(reason),
        policy: text(policy),
    };
    let mut all = vec![
        Outcome::Drained,
        Outcome::Uncordoned { cordon_kept: false },
        Outcome::Uncordoned { cordon_kept: true },
        Outcome::Blocked {
            pods: vec![
                blocker(
                    "bare",
                    "cannot delete Pods that declare no controller (use --force to override)",
                    "kubectl",
                ),
                blocker("db", "the last replica", "keep-labelled"),
            ],
        },
        Outcome::PolicyFailed {
            policy: text("slurm"),
            message: text("slurmrestd answered 401"),
        },
        Outcome::Cancelled {
            reason: text("scupper cancel"),
        },
        Outcome::Lost {
            reason: text("the LifecycleEvent was deleted"),
        },
        Outcome::Failed {
            message: text("node worker-1: the API server has refused its writes for 2m00s: forbidden"),
        },
    ];
    all.extend(deadlines());
    complete(&all);
    all
}

fn deadlines() -> Vec<Outcome> {
    let held_up = |reported: &str, is_before_evictions| HeldUp {
        policy: "slurm".to_owned(),
        phase: HookPhase::BeforeDrain,
        reported: reported.to_owned(),
        is_before_evictions,
    };
    let deadline = |remaining: &[&str], held_up| Outcome::DeadlineExceeded {
        remaining: remaining.iter().map(|name| pod(name)).collect(),
        held_up,
    };
    vec![
        deadline(&[], None),
        deadline(&["cart"], None),
        deadline(&["cart", "db"], None),
        deadline(
            &["cart", "db"],
            Some(held_up(
                "3 jobs run; waits for job 17 (training) and 2 more",
                true,
            )),
        ),
        deadline(&["cart"], Some(held_up("", false))),
    ]
}

/// Summaries with no counts and with all counts.
pub(super) fn summaries() -> [Summary; 2] {
    let nothing = Summary {
        started: ago(72),
        ended: NOW,
        ..Summary::default()
    };
    let arrived = |name: &str| {
        let reason = Reason::ArrivedDuringDrain {
            message: "it has no controller".to_owned(),
            toleration: "every taint".to_owned(),
        };
        (pod(name), reason)
    };
    let everything = Summary {
        totals: Totals {
            gone: 8,
            deleted: 3,
            waves: 2,
            evictions: 31,
            deletions: 4,
            budget_refusals: 22,
            hook_steps: 5,
            hook_wait: Duration::from_secs(61),
            budget_wait: Duration::from_secs(44),
        },
        kept: 2,
        stayed: ["a", "b", "c", "d"].map(arrived).to_vec(),
        remaining: 1,
        volume_wait: Duration::from_secs(300),
        volumes_left: Some(volumes_left()),
        forced: vec![pod("web-2"), pod("web-3")],
        ..nothing.clone()
    };
    [nothing, everything]
}

/// Two volumes: one with a claim, one that could not be detached.
pub(super) fn volumes_left() -> VolumesLeft {
    let volume = |name: &str, claim: Option<&str>, problem: &str| AttachedVolume {
        attachment: format!("csi-{name}"),
        volume: name.to_owned(),
        claim: claim.map(|claim| VolumeClaim {
            namespace: "shop".to_owned(),
            name: claim.to_owned(),
        }),
        attacher: "ebs.csi.aws.com".to_owned(),
        problem: problem.to_owned(),
    };
    VolumesLeft::Attached(vec![
        volume("pvc-1", Some("data-db-0"), ""),
        volume("pvc-2", None, "volume is busy:\nretry"),
    ])
}

/// The pods of the drain, including one for each reason.
pub(super) fn pods() -> Vec<Pod> {
    let returning = Pod {
        controller: Some(Controller {
            api_version: "apps/v1".to_owned(),
            kind: "StatefulSet".to_owned(),
            name: "db".to_owned(),
            uid: Uid::new("db-set"),
            missing: false,
        }),
        cordon_toleration: Some("every taint".to_owned()),
        volume_claims: Vec::new(),
        host_paths: Vec::new(),
        ..running("db-0")
    };
    let waiting = (0..reasons().len()).map(|number| running(&waiting_name(number)));
    let named = ["web-1", "web-2", "agent", "mirror", "job"].map(running);
    [returning].into_iter().chain(named).chain(waiting).collect()
}

fn waiting_name(number: usize) -> String {
    format!("wait-{number:02}")
}

/// Each waiting pod, and its reason.
pub(super) fn waiting() -> Vec<(PodRef, Reason)> {
    let reasons = reasons().into_iter().enumerate();
    reasons
        .map(|(number, reason)| (pod(&waiting_name(number)), reason))
        .collect()
}

pub(super) fn plan() -> Plan {
    let decision = |name: &str, verdict, reason: &str, policy: &str| Decision {
        pod: Uid::new(name),
        verdict,
        reason: reason.to_owned(),
        policy: policy.to_owned(),
    };
    let decisions = vec![
        decision("web-1", Verdict::Evict, "has a controller", "kubectl"),
        decision("web-2", Verdict::Delete, "its budget is out of date", "priority"),
        decision("db-0", Verdict::Evict, "last", "priority"),
        decision("job", Verdict::AwaitCompletion, "job 17 runs", "slurm"),
        decision(
            "agent",
            Verdict::Keep,
            "ignoring DaemonSet-managed Pods",
            "kubectl",
        ),
        decision("mirror", Verdict::Keep, "ignoring mirror Pods", "kubectl"),
        decision("wait-00", Verdict::Refuse, "the last replica", "keep-labelled"),
    ];
    complete(&decisions.iter().map(|it| it.verdict).collect::<Vec<_>>());
    let wave = |name: &str, pods: &[&str], policy: &str| Wave {
        name: name.to_owned(),
        pods: pods.iter().map(|pod| Uid::new(*pod)).collect(),
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: policy.to_owned(),
    };
    let last = Wave {
        max_parallel: Some(1),
        timeout: Some(Duration::from_secs(90)),
        max_grace_seconds: Some(30),
        ..wave("db", &["db-0"], "priority")
    };
    Plan {
        decisions,
        waves: vec![wave("web", &["web-1", "web-2", "job"], "kubectl"), last],
        surge: surges(),
        ..Plan::default()
    }
}

/// Nothing but Deployments whose replicas are raised.
pub(super) fn raising_plan() -> Plan {
    Plan {
        surge: raises(),
        ..Plan::default()
    }
}

pub(crate) fn budget(name: &str, of: &str, allowed: i32, observed: bool) -> Budget {
    Budget {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        selector: Selector {
            labels: [("app".to_owned(), of.to_owned())].into(),
            ..Selector::default()
        },
        unhealthy_pods: UnhealthyPods::default(),
        disruptions_allowed: allowed,
        current_healthy: 2,
        desired_healthy: 2,
        expected_pods: 2,
        limit: None,
        observed,
    }
}

pub(super) fn waits_for() -> Vec<WaitingOn> {
    let on = |what: &str, detail: &str, since| WaitingOn {
        what: what.to_owned(),
        detail: detail.to_owned(),
        since,
    };
    vec![
        on("slurm/gpu-0", "allocated: jobs still run", Some(ago(56))),
        on("job 17", "training\nof a model", None),
    ]
}

fn hook(phase: HookPhase, subject: Subject) -> [Notice; 2] {
    let policy = "slurm".to_owned();
    [
        Notice::HookWaiting {
            policy: policy.clone(),
            phase,
            subject: subject.clone(),
            since: ago(60),
            progress: "1 of 3 Slurm nodes drained".to_owned(),
            waiting_for: waits_for(),
        },
        Notice::HookDone {
            policy,
            phase,
            subject,
        },
    ]
}

/// A drain that goes through every phase, hook and notice except its end.
pub(super) fn story() -> Vec<Notice> {
    let mut story: Vec<Notice> = Vec::new();
    story.extend(phases().into_iter().map(Notice::Phase));
    story.extend([
        Notice::PlannerWaiting {
            policy: "slurm".to_owned(),
            message: "the call took longer than 5s".to_owned(),
            again: NOW + Duration::from_secs(10),
        },
        Notice::Planned(plan()),
        Notice::Cordoned { ours: false },
        Notice::Cordoned { ours: true },
    ]);
    for phase in HookPhase::ALL {
        let subject = match phase {
            HookPhase::BeforeWave => Subject::Wave("web".to_owned()),
            HookPhase::BeforeEvict => Subject::Pod(Uid::new("web-1")),
            _ => Subject::Node,
        };
        story.extend(hook(phase, subject));
    }
    story.push(Notice::WaveStarted {
        name: "web".to_owned(),
        number: 1,
        of: 2,
        pods: 3,
    });
    let waiting = waiting().into_iter();
    story.extend(waiting.map(|(pod, reason)| Notice::PodWaits { pod, reason }));
    story.extend(surge_steps());
    story.extend(leaving());
    story
}

fn leaving() -> Vec<Notice> {
    let blocked = pods().into_iter().find(|pod| pod.id.name == "wait-20");
    let blocked = blocked.unwrap().id;
    let web = pod("web-1");
    vec![
        Notice::PodLeaving {
            pod: blocked,
            by: Removal::Evict,
        },
        Notice::PodLeaving {
            pod: pod("web-2"),
            by: Removal::Delete,
        },
        Notice::PodLeaving {
            pod: web.clone(),
            by: Removal::Evict,
        },
        Notice::Forced {
            pod: pod("web-2"),
            grace_seconds: 20,
            reason: Reason::BudgetExhausted {
                budget: "keep-web".to_owned(),
                message: "The disruption budget keep-web needs 2 healthy pods and has 2 currently".to_owned(),
            },
        },
        Notice::PodGone {
            pod: web,
            remaining: 3,
        },
        Notice::PodGone {
            pod: pod("web-2"),
            remaining: 2,
        },
        Notice::WaveOverdue {
            name: "web".to_owned(),
        },
        Notice::AwaitsVolumes {
            left: volumes_left(),
            since: ago(34),
            until: NOW + Duration::from_secs(266),
        },
        Notice::AwaitsVolumes {
            left: VolumesLeft::Unknown {
                message: "volumeattachments is forbidden".to_owned(),
            },
            since: ago(34),
            until: NOW + Duration::from_secs(266),
        },
        Notice::VolumesSettled {
            left: Some(volumes_left()),
        },
        Notice::VolumesSettled { left: None },
        Notice::Newcomer { pod: pod("late") },
        Notice::UncordonedByOthers,
        Notice::Retrying {
            task: "cordon".to_owned(),
            message: "the API server answered 500:\netcdserver: request timed out".to_owned(),
        },
        Notice::Uncordoned,
    ]
}

/// Every outcome, with no counts and with all counts.
pub(super) fn endings() -> Vec<Notice> {
    let outcomes = outcomes().into_iter();
    let both = |outcome: Outcome| {
        summaries().map(|summary| Notice::Finished {
            outcome: outcome.clone(),
            summary,
        })
    };
    outcomes.flat_map(both).collect()
}

#[test]
fn the_story_has_every_notice() {
    complete(&[story(), endings()].concat());
}

/// In half a minute to five.
pub(crate) fn estimate() -> Estimate {
    Estimate([30, 90, 300].map(|seconds| NOW + Duration::from_secs(seconds)))
}
