//! Plans as a person and as a program reads them.

use std::time::Duration;

use scupper_engine::{
    Budget, Decision, DeploymentRef, ForceAtDeadline, ForcedPods, HeldUp, HookPhase, Loosened, NotSurged,
    Pod, Ruling, Selector, Settings, Surge, SurgeMethod, SurgePlan, UnhealthyPods, VolumeWait, Wave,
};
use scupper_pre_flight::{Certainty, Concern, Finding};

use super::*;
use crate::PlannedTrigger;
use scupper_recording::{PodDifference, ShadowResult, Treatment};
use scupper_report::fixture::running;

const VERDICTS: [Verdict; 5] = [
    Verdict::Evict,
    Verdict::Delete,
    Verdict::AwaitCompletion,
    Verdict::Keep,
    Verdict::Refuse,
];

fn pods() -> Vec<Pod> {
    let mut pods = ["web", "stale", "job", "agent", "last"].map(running).to_vec();
    pods[0].cordon_toleration = Some("every taint".to_owned());
    pods[0].controller = Some(scupper_engine::Controller {
        api_version: "apps/v1".to_owned(),
        kind: "StatefulSet".to_owned(),
        name: "web".to_owned(),
        uid: Uid::new("set"),
        missing: false,
    });
    pods[0].volume_claims = vec!["data-web".to_owned()];
    pods
}

fn plan() -> Plan {
    let wave = |name: &str, pods: &[Pod]| Wave {
        name: name.to_owned(),
        pods: pods.iter().map(|pod| pod.id.uid.clone()).collect(),
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: "kubectl".to_owned(),
    };
    let pods = pods();
    let decisions = pods.iter().zip(VERDICTS).map(|(pod, verdict)| Decision {
        pod: pod.id.uid.clone(),
        verdict,
        // A new verdict does not compile here, and belongs into the list above.
        reason: match verdict {
            Verdict::Evict => "has a controller",
            Verdict::Delete => "its budget is out of date",
            Verdict::AwaitCompletion => "job 17 runs",
            Verdict::Keep => "ignoring DaemonSet-managed Pods",
            Verdict::Refuse => "the last replica",
        }
        .to_owned(),
        policy: "kubectl".to_owned(),
    });
    let surge = Surge {
        deployment: DeploymentRef {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            uid: Uid::new("deployment"),
        },
        replicas: Some(1),
        budget: "keep-web".to_owned(),
        pods: vec![pods[0].id.clone()],
    };
    let impossible = NotSurged {
        kind: "StatefulSet".to_owned(),
        name: "db".to_owned(),
        budget: "keep-db".to_owned(),
        pods: vec![pods[1].id.clone()],
        reason: "a StatefulSet removes a pod before it replaces it".to_owned(),
    };
    let ruling = |policy: &str, verdict, hold| Ruling {
        policy: policy.to_owned(),
        verdict,
        hold,
    };
    let loosened = Loosened {
        pod: pods[1].id.uid.clone(),
        earlier: ruling("namespace-modes", Verdict::AwaitCompletion, None),
        later: ruling("jobs", Verdict::Evict, Some(Duration::from_secs(14_400))),
    };
    let limited = Wave {
        max_parallel: Some(2),
        timeout: Some(Duration::from_secs(90)),
        max_grace_seconds: Some(30),
        ..wave("rest", &pods[1..3])
    };
    Plan {
        decisions: decisions.collect(),
        waves: vec![wave("web", &pods[..1]), limited],
        surge: SurgePlan {
            method: SurgeMethod::Restart,
            surges: vec![surge],
            impossible: vec![impossible],
        },
        loosened: vec![loosened],
    }
}

fn planned(result: Result<Plan, Outcome>) -> Planned {
    Planned {
        node: "worker-1".to_owned(),
        asked_by: PlannedTrigger::default(),
        at: scupper_engine::Time::from_millis(0),
        deadline: None,
        pods: pods(),
        result,
        settings: Settings::default(),
        continues: None,
        budgets: None,
        findings: Vec::new(),
        environment: Vec::new(),
        not_ready: None,
        answers: None,
        shadows: Vec::new(),
        with_flags: None,
        drain: None,
    }
}

/// One shadow for each result that a plan can have.
fn shadows() -> Vec<ShadowPlan> {
    let treatment = |verdict, wave: Option<&str>| Treatment {
        verdict,
        reason: "the last replica".to_owned(),
        wave: wave.map(|name| (1, name.to_owned())),
        place: wave.map(|_| 1),
        grace_seconds: wave.map(|_| 30),
    };
    let kept = PodDifference {
        pod: running("web").id,
        active: treatment(Verdict::Evict, Some("all")),
        shadow: treatment(Verdict::Keep, None),
    };
    let results = [
        ShadowResult::Agrees,
        ShadowResult::Differs(vec![kept]),
        ShadowResult::Refuses("quotas: the quota is used up".to_owned()),
        ShadowResult::Failed("policy quotas: plan trapped".to_owned()),
    ];
    let shadow = |(number, result): (usize, ShadowResult)| ShadowPlan {
        policy: format!("quotas-{number}"),
        digest: String::new(),
        instead_of: (number == 1).then(|| "quotas".to_owned()),
        leaving: 4,
        result,
    };
    results.into_iter().enumerate().map(shadow).collect()
}

fn with_everything() -> Planned {
    let budget = Budget {
        namespace: "shop".to_owned(),
        name: "keep-web".to_owned(),
        selector: Selector::EVERYTHING,
        unhealthy_pods: UnhealthyPods::default(),
        disruptions_allowed: 0,
        current_healthy: 2,
        desired_healthy: 2,
        expected_pods: 2,
        limit: None,
        observed: true,
    };
    let refused = EvictAnswer::BudgetExhausted {
        budget: "keep-web".to_owned(),
        message: "The disruption budget keep-web needs 2 healthy pods and has 2 currently".to_owned(),
    };
    let closed = Finding {
        certainty: Certainty::Certain,
        concern: Concern::ClosedBudget,
        pods: vec![running("web").id],
        budgets: vec!["shop/keep-web".to_owned()],
        reason: "budget shop/keep-web (minAvailable: 2) blocks its pods even when all are healthy".to_owned(),
        change: "minAvailable: 2 -> 1, or replicas of StatefulSet web: 2 -> 3".to_owned(),
    };
    let answers = pods().into_iter().zip([refused, EvictAnswer::Accepted]);
    let settings = Settings {
        wait_for_volumes: Some(VolumeWait {
            at_most: Duration::from_secs(300),
            or_fail: false,
        }),
        at_deadline: Some(ForceAtDeadline {
            pods: ForcedPods {
                namespaces: Some(std::iter::once("shop".to_owned()).collect()),
                priority_below: Some(1_000_000),
                await_completion: false,
            },
            grace_seconds: 30,
            within: Duration::from_secs(60),
        }),
        machine_is_off: true,
        ..Settings::default()
    };
    Planned {
        deadline: Some(scupper_engine::Time::from_millis(1_800_000)),
        settings,
        continues: Some("LifecycleEvent gpu-3 (evicting)".to_owned()),
        budgets: Some(vec![budget]),
        findings: vec![closed],
        not_ready: Some("NotReady for 5m00s (KubeletNotReady)".to_owned()),
        answers: Some(answers.map(|(pod, answer)| (pod.id, answer)).collect()),
        shadows: shadows(),
        ..planned(Ok(plan()))
    }
}

/// How a drain can end before it begins.
fn outcomes() -> Vec<Outcome> {
    let blocker = Blocker {
        pod: running("bare").id,
        reason: "cannot delete Pods that declare no controller (use --force to override)".to_owned(),
        policy: "kubectl".to_owned(),
    };
    let held_up = HeldUp {
        policy: "slurm".to_owned(),
        phase: HookPhase::BeforeDrain,
        reported: String::new(),
        is_before_evictions: true,
    };
    vec![
        Outcome::Blocked { pods: vec![blocker] },
        Outcome::PolicyFailed {
            policy: "slurm".to_owned(),
            message: "slurmrestd answered 401".to_owned(),
        },
        Outcome::DeadlineExceeded {
            remaining: Vec::new(),
            held_up: Some(held_up),
        },
        Outcome::Failed {
            message: "node worker-1 is gone".to_owned(),
        },
    ]
}

/// Pods of one workload, of which one stays.
fn crowded() -> Planned {
    let mut pods = ["web-1", "web-2", "web-3", "web-4", "db-0"].map(running).to_vec();
    for pod in &mut pods[..4] {
        pod.controller = Some(scupper_engine::Controller {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: "web".to_owned(),
            uid: Uid::new("set"),
            missing: false,
        });
    }
    let decide = |(place, pod): (usize, &Pod)| Decision {
        pod: pod.id.uid.clone(),
        verdict: if place == 1 { Verdict::Keep } else { Verdict::Evict },
        reason: "has a controller".to_owned(),
        policy: "kubectl".to_owned(),
    };
    let wave = Wave {
        pods: [0, 2, 3, 4].map(|place| pods[place].id.uid.clone()).to_vec(),
        ..plan().waves.swap_remove(0)
    };
    let plan = Plan {
        decisions: pods.iter().enumerate().map(decide).collect(),
        waves: vec![wave],
        ..Plan::default()
    };
    let refused = |pod: &Pod| {
        let message = "not now".to_owned();
        (pod.id.clone(), EvictAnswer::Forbidden { message })
    };
    Planned {
        answers: Some(pods[2..].iter().map(refused).collect()),
        pods,
        ..planned(Ok(plan))
    }
}

#[test]
fn pods_of_a_workload_share_a_line_unless_each_is_asked_for() {
    let lines = |list| {
        let text = plan_for_people(&crowded(), list);
        let lines = text.lines().filter(|line| line.starts_with("  "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(PodList::ByWorkload),
        [
            "  evict            shop/web-1 and 2 more  has a controller [kubectl]",
            "  evict            shop/db-0  has a controller [kubectl]",
            "  stays            shop/web-2  has a controller [kubectl]",
            "  not allowed      shop/web-3 and 1 more  not now",
            "  not allowed      shop/db-0  not now",
        ]
    );
    assert_eq!(lines(PodList::Each).len(), 8);
}

#[test]
fn a_plan_without_a_deadline_names_the_setting_that_gives_one() {
    let of = |trigger, is_as_driver| {
        let planned = Planned {
            deadline: None,
            asked_by: PlannedTrigger {
                trigger,
                is_as_driver,
                ..PlannedTrigger::default()
            },
            ..with_everything()
        };
        assert_eq!(planned.force(), None);
        no_deadline_line(&planned).unwrap()
    };
    for (trigger, is_as_driver, setting) in [
        (Trigger::Command, false, " with --timeout"),
        (Trigger::Command, true, " with drain.sla"),
        (Trigger::DrainRequest, false, " with drain-requests.timeout"),
    ] {
        let line = of(trigger, is_as_driver);
        assert!(line.ends_with(setting), "{line}");
    }
    assert_eq!(no_deadline_line(&with_everything()), None);
    assert_eq!(no_deadline_line(&planned(Ok(plan()))), None);
}

#[test]
fn plans_and_their_substitutes() {
    let ended = outcomes().into_iter().map(|outcome| Planned {
        not_ready: Some("NotReady for 5m00s (KubeletNotReady)".to_owned()),
        ..planned(Err(outcome))
    });
    let mut raising = plan();
    raising.surge.method = SurgeMethod::Scale;
    let for_requests = |requests: &[&str], result| Planned {
        asked_by: PlannedTrigger {
            trigger: Trigger::DrainRequest,
            requests: requests.iter().map(|&name| name.to_owned()).collect(),
            ..PlannedTrigger::default()
        },
        ..planned(result)
    };
    let refused = outcomes()
        .into_iter()
        .map(|outcome| for_requests(&["nvsentinel/gpu-0"], Err(outcome)));
    let notifying = Planned {
        settings: Settings {
            notify_before: Duration::from_secs(600),
            ..Settings::default()
        },
        ..planned(Ok(plan()))
    };
    let lacking = |rest| Planned {
        with_flags: Some((vec!["--ignore-daemonsets", "--force"], Box::new(rest))),
        ..planned(Err(outcomes().swap_remove(0)))
    };
    let as_driver = Planned {
        asked_by: PlannedTrigger {
            is_as_driver: true,
            ..PlannedTrigger::default()
        },
        with_flags: Some((
            vec!["drain.ignore-daemonsets", "drain.force"],
            Box::new(planned(Ok(Plan::default()))),
        )),
        ..planned(Err(outcomes().swap_remove(0)))
    };
    let all = [
        as_driver,
        lacking(planned(Ok(plan()))),
        lacking(Planned {
            findings: with_everything().findings,
            ..planned(Ok(plan()))
        }),
        lacking(planned(Err(outcomes().swap_remove(1)))),
        with_everything(),
        for_requests(&["nvsentinel/gpu-0"], Ok(Plan::default())),
        for_requests(&["nvsentinel/gpu-0", "nvsentinel/gpu-1"], Ok(Plan::default())),
        planned(Ok(plan())),
        planned(Ok(raising)),
        notifying,
        planned(Ok(Plan::default())),
    ];
    let all: Vec<_> = all.into_iter().chain(ended).chain(refused.take(2)).collect();
    let people = all
        .iter()
        .map(|planned| plan_for_people(planned, PodList::default()))
        .collect::<Vec<_>>();
    let programs = all
        .iter()
        .map(|it| serde_json::to_string_pretty(&json::of(it)).unwrap());
    let programs = programs.collect::<Vec<_>>();
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("plan-text", people.join("\n\n"));
        insta::assert_snapshot!("plan-output-json", programs.join("\n"));
    });
}
