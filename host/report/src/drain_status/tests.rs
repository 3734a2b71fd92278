//! Encoding and decoding preserve a status, and its size stays limited.

use scupper_engine::{AttachedVolume, Notice, PodRef, Reason, SurgeMethod, VolumeClaim, VolumesLeft};

use super::*;

fn pod(number: usize) -> PodRef {
    PodRef {
        namespace: "shop".into(),
        name: format!("cart-{number}"),
        uid: Uid::new(format!("6f3a2f0e-7c0e-4f3b-9d0a-{number:012}")),
    }
}

fn group(what: &str) -> PodGroup {
    PodGroup {
        what: what.into(),
        policy: "kubectl".into(),
        pods: vec![Uid::new("u")],
        more: 7,
    }
}

#[test]
fn an_estimate_covers_another_one_whose_likely_end_is_in_its_range() {
    let at = |seconds: u64| Time::from_millis(seconds * 1_000);
    let known = Estimate([30, 90, 300].map(at));
    for (likely, is_covered) in [(29, false), (30, true), (300, true), (301, false)] {
        let other = Estimate([at(0), at(likely), at(900)]);
        assert_eq!(known.covers(&other), is_covered, "{likely}");
    }
}

#[test]
fn an_estimate_says_nothing_that_time_has_disproved() {
    let at = |seconds: u64| Time::from_millis(seconds * 1_000);
    let text = |now| Estimate([30, 90, 300].map(at)).text(at(now)).unwrap_or_default();
    let told = [
        "probably in 1m30s (30s to 5m00s)",
        "probably in 30s (up to 4m00s)",
        "probably within 3m20s",
        "",
    ];
    assert_eq!([0, 60, 100, 300].map(text), told);
}

/// One of each reason. A new reason of the engine needs a line here: the match in `reason` does not compile without it.
fn reasons() -> Vec<Reason> {
    let message = || "in the server's words".to_owned();
    let at = Time::from_millis(1_700_000_000_123);
    vec![
        Reason::NotPlanned,
        Reason::PlannerFailed {
            policy: "slurm".into(),
            message: message(),
        },
        Reason::WaveNotStarted { wave: "slurm".into() },
        Reason::HookRunning {
            policy: "slurm".into(),
            phase: HookPhase::BeforeEvict,
        },
        Reason::ParallelLimit,
        Reason::EvictionRequested,
        Reason::BudgetExhausted {
            budget: "cart".into(),
            message: message(),
        },
        Reason::Surging {
            workload: message(),
            method: SurgeMethod::Restart,
        },
        Reason::Surging {
            workload: message(),
            method: SurgeMethod::Scale,
        },
        Reason::BudgetNotObserved { message: message() },
        Reason::MoreThanOneBudget { message: message() },
        Reason::Throttled { message: message() },
        Reason::EvictionRefused {
            code: 403,
            message: message(),
        },
        Reason::NamespaceTerminating,
        Reason::Forbidden { message: message() },
        Reason::Unreachable { message: message() },
        Reason::UidDisproved,
        Reason::Terminating { until: at },
        Reason::TerminatingPastGrace {
            since: at,
            finalizers: "a, b".into(),
        },
        Reason::AwaitingCompletion,
        Reason::NodeUncordoned,
        Reason::KeepsComingBack {
            controller: "StatefulSet db".to_owned(),
            toleration: "every taint".to_owned(),
        },
        Reason::ArrivedDuringDrain {
            message: "no controller".to_owned(),
            toleration: "every taint".to_owned(),
        },
        Reason::DriverStopping,
        Reason::Refused {
            policy: "gpu".to_owned(),
            message: message(),
        },
    ]
}

fn waiting(subject: Subject, count: usize) -> Notice {
    let on = |number| WaitingOn {
        what: format!("slurm/gpu-{number}"),
        detail: "allocated: jobs still run".to_owned(),
        since: Some(Time::from_millis(5_000)),
    };
    Notice::HookWaiting {
        policy: "slurm".into(),
        phase: HookPhase::BeforeDrain,
        subject,
        since: Time::from_millis(2_000),
        progress: "1 of 3 Slurm nodes drained".into(),
        waiting_for: (0..count).map(on).collect(),
    }
}

/// So many volumes, with long texts.
fn volumes(count: usize) -> Notice {
    let volume = |number: usize| AttachedVolume {
        attachment: format!("csi-{number}"),
        volume: format!("pv-{number}"),
        claim: (number > 0).then(|| VolumeClaim {
            namespace: "shop".into(),
            name: format!("data-{number}"),
        }),
        attacher: "csi.example.com".into(),
        problem: "\u{1}busy".repeat(count),
    };
    Notice::AwaitsVolumes {
        left: VolumesLeft::Attached((0..count).map(volume).collect()),
        since: Time::from_millis(3_000),
        until: Time::from_millis(300_000),
    }
}

#[test]
fn kept_fields_survive_a_round_trip() {
    let mut builder = StatusBuilder::default();
    let started = Notice::WaveStarted {
        name: "all".into(),
        number: 1,
        of: 2,
        pods: 3,
    };
    builder.notice(Time::from_millis(1_000), &started);
    builder.notice(Time::from_millis(2_000), &waiting(Subject::Node, 2));
    builder.notice(Time::from_millis(9_000), &waiting(Subject::Node, 1));
    builder.notice(Time::from_millis(9_000), &waiting(Subject::Wave("all".into()), 0));
    builder.notice(Time::from_millis(9_000), &waiting(Subject::Pod(Uid::new("u")), 0));
    let pods: Vec<_> = reasons()
        .into_iter()
        .enumerate()
        .map(|(n, reason)| (pod(n), reason))
        .collect();
    builder.notice(Time::from_millis(9_000), &volumes(2));
    let ahead = (0..20).map(pod);
    let ahead = Some((Time::from_millis(90_000), ahead.collect()));
    let mut view = builder.build(Time::from_millis(10_000), "id", pods, ahead);
    let ahead = &view.force.as_ref().unwrap().ahead;
    assert_eq!((ahead.count, ahead.named.len()), (20, 16));
    view.ended = Some("DeadlineExceeded: too late".into());
    view.machine_is_off = true;
    view.plan = Some(PlanSummary {
        leaving: 2,
        staying: 1,
        waves: vec![group("all")],
        stays: vec![group("ignoring DaemonSet-managed Pods")],
        refused: vec![group("Pods that declare no controller")],
        surge: SurgeSummary::of(&crate::tests::samples::surges()),
    });
    assert_eq!(view.pods.len(), reasons().len());
    assert_eq!(
        view.hooks[0].since,
        Time::from_millis(2_000),
        "since the first time"
    );
    let mut back = status_from_text(&status_to_text(&view)).unwrap();
    // Pods with the same reason stand together, terminating ones last.
    for pods in [&mut back.pods, &mut view.pods] {
        pods.sort_by(|one, other| one.uid.cmp(&other.uid));
    }
    assert_eq!(back, view);
}

#[test]
fn a_status_omits_kept_pods_and_finished_hooks() {
    let mut builder = StatusBuilder::default();
    builder.notice(Time::default(), &waiting(Subject::Node, 1));
    let done = Notice::HookDone {
        policy: "slurm".into(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
    };
    builder.notice(Time::default(), &done);
    let ending = Reason::Terminating {
        until: Time::default(),
    };
    let view = builder.build(
        Time::default(),
        "id",
        vec![(pod(1), Reason::Kept), (pod(2), ending)],
        None,
    );
    assert_eq!((view.hooks.len(), view.pods.len()), (0, 1));
    assert!(
        !view.is_worth_publishing(),
        "a pod that ends can be seen by everybody"
    );
    let view = builder.build(Time::default(), "id", vec![(pod(2), Reason::ParallelLimit)], None);
    assert!(view.is_worth_publishing());
}

#[test]
fn it_is_never_too_large() {
    let mut builder = StatusBuilder::default();
    for number in 0..100 {
        builder.notice(
            Time::default(),
            &waiting(Subject::Wave(format!("{number}").repeat(400)), 250),
        );
    }
    builder.notice(Time::default(), &volumes(300));
    let refused = |number: usize| Reason::EvictionRefused {
        code: 500,
        message: format!("{number}{}", "\u{1}ü".repeat(4_000)),
    };
    let pods = (0..500).map(|number| (pod(number), refused(number))).collect();
    let view = builder.build(Time::default(), &"id".repeat(1_000), pods, None);
    let mut view = view;
    let plan = PlanSummary {
        waves: (0..500).map(|_| group(&"\u{1}".repeat(400))).collect(),
        surge: SurgeSummary::of(&many_restarts(500)),
        ..PlanSummary::default()
    };
    view.plan = Some(plan);
    let text = status_to_text(&view);
    assert!(text.len() < 64 * 1024, "{} bytes", text.len());
    let back = status_from_text(&text).unwrap();
    assert_eq!(back.pods.len() + back.more as usize, 500);
    assert!(back.more > 0);
}

/// So many restarts, each of as many pods, and as many that are impossible.
fn many_restarts(number: usize) -> scupper_engine::SurgePlan {
    let mut plan = crate::tests::samples::surges();
    let long = "w".repeat(253);
    for surge in &mut plan.surges {
        surge.deployment.name.clone_from(&long);
        surge.budget.clone_from(&long);
        surge.pods = (0..number).map(pod).collect();
    }
    for not in &mut plan.impossible {
        not.name.clone_from(&long);
        not.pods = (0..number).map(pod).collect();
    }
    plan.surges = std::iter::repeat_n(plan.surges.remove(0), number).collect();
    plan.impossible = std::iter::repeat_n(plan.impossible.remove(0), number).collect();
    plan
}

#[test]
fn the_restarts_of_a_plan_keep_their_texts_in_the_annotation() {
    let mut plan = many_restarts(8);
    plan.surges.truncate(1);
    plan.impossible.truncate(1);
    plan.surges[0].deployment.name = "web".to_owned();
    plan.surges[0].budget = "cart".to_owned();
    plan.impossible[0].name = "db".to_owned();
    let summary = SurgeSummary::of(&plan);
    let expected = crate::surge_texts(&plan);
    assert!(expected[0].contains("and 5 more pods"), "{expected:?}");
    let view = DrainStatus {
        plan: Some(PlanSummary {
            surge: summary,
            ..PlanSummary::default()
        }),
        ..DrainStatus::default()
    };
    let read = status_from_text(&status_to_text(&view)).unwrap();
    assert_eq!(read.plan.unwrap().surge.texts(), expected);
}

#[test]
fn a_pod_that_was_deleted_at_the_deadline_is_news_and_one_that_may_be_is_none() {
    let forced = |number| Notice::Forced {
        pod: pod(number),
        grace_seconds: 1,
        reason: Reason::ParallelLimit,
    };
    let mut builder = StatusBuilder::default();
    let mut build = |notices: &[Notice], ahead: usize| {
        for notice in notices {
            builder.notice(Time::default(), notice);
        }
        let ahead = Some((Time::from_millis(9), (0..ahead).map(pod).collect()));
        builder.build(Time::default(), "id", Vec::new(), ahead)
    };
    let (none, some) = (build(&[], 2), build(&[], 3));
    assert!(none.has_same_story(&some));
    assert!(!some.is_worth_publishing());
    let one = build(&[forced(1)], 3);
    assert!(!one.has_same_story(&some));
    assert!(one.is_worth_publishing());
    assert!(!build(&[forced(2)], 3).has_same_story(&one));
}

#[test]
fn an_unreadable_status_counts_as_none() {
    for text in ["", "{}", "[]", "null", r#"{"v":2,"drain":"id","at":1}"#] {
        assert_eq!(status_from_text(text), None, "{text}");
    }
    let strange =
        r#"{"v":1,"drain":"id","at":1,"pods":[{"pods":[["u",null]],"r":"Bewitched"}],"more":0,"new":1}"#;
    let strange = status_from_text(strange).unwrap();
    assert_eq!((strange.pods, strange.more), (Vec::new(), 1));
}

#[test]
fn open_hooks_are_those_of_the_status_and_of_the_checkpoint_that_are_not_done() {
    let at = Time::from_millis;
    let hook = |policy: &str, since| HookStatus {
        policy: policy.into(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        since: at(since),
        progress: format!("{policy} at work"),
        waiting_for: Vec::new(),
    };
    let saved = |policy: &str, since| SavedHook {
        policy: policy.into(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        state: Vec::new(),
        state_version: None,
        started: at(since),
    };
    let published = DrainStatus {
        hooks: vec![hook("done", 1), hook("both", 20), hook("new", 30)],
        ..DrainStatus::default()
    };
    let mark = Checkpoint {
        hooks: vec![saved("both", 2), saved("unheard", 3)],
        done: vec![hook("done", 1).key()],
        ..crate::fixture::mark("command", scupper_engine::Phase::Holding)
    };
    let of = |published: Option<&DrainStatus>| -> Vec<(String, u64, bool)> {
        let hooks = open_hooks(&mark, published).into_iter();
        let hooks = hooks.map(|hook| (hook.policy.clone(), hook.since.as_millis(), hook.has_progress()));
        hooks.collect()
    };
    let row = |policy: &str, since, has_progress| (policy.to_owned(), since, has_progress);
    assert_eq!(of(None), [row("both", 2, false), row("unheard", 3, false)]);
    assert_eq!(
        of(Some(&published)),
        [
            row("both", 2, true),
            row("new", 30, true),
            row("unheard", 3, false)
        ]
    );
}
