//! Which differences between two plans count, and their words.

use std::time::Duration;

use scupper_engine::Decision;
use scupper_engine_simulation::any_pod;

use super::*;

/// A pod with 60 s to end.
fn pod(name: &str) -> Pod {
    Pod {
        id: PodRef {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: Uid::new(name),
        },
        grace_seconds: 60,
        ..any_pod().unwrap()
    }
}

const PODS: [&str; 4] = ["a", "b", "c", "d"];

/// The pods in these waves are evicted, and the others stay.
fn plan(waves: &[&[&str]]) -> Plan {
    let leaves = |name: &str| waves.iter().any(|wave| wave.contains(&name));
    let decision = |name: &str| Decision {
        pod: Uid::new(name),
        verdict: if leaves(name) {
            Verdict::Evict
        } else {
            Verdict::Keep
        },
        reason: "so".to_owned(),
        policy: "p".to_owned(),
    };
    let wave = |(number, pods): (usize, &&[&str])| Wave {
        name: format!("w{number}"),
        pods: pods.iter().map(|name| Uid::new(*name)).collect(),
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: "p".to_owned(),
    };
    Plan {
        decisions: PODS.into_iter().map(decision).collect(),
        waves: waves.iter().enumerate().map(wave).collect(),
        ..Plan::default()
    }
}

fn different(active: &Plan, shadow: &Plan) -> Vec<String> {
    let pods = PODS.map(pod);
    let different = differences(active, shadow, &pods);
    different.iter().map(ToString::to_string).collect()
}

#[test]
fn plans_that_treat_every_pod_alike_agree() {
    let active = plan(&[&["a", "b"], &["c"]]);
    let mut shadow = active.clone();
    // Names, reasons and authors are no treatment, nor is a limit of grace that no pod has.
    for wave in &mut shadow.waves {
        wave.name.push('x');
        wave.max_grace_seconds = Some(60);
        wave.timeout = Some(Duration::from_secs(1));
    }
    shadow.decisions[0].reason = "otherwise".to_owned();
    assert_eq!(different(&active, &shadow), [""; 0]);
}

#[test]
fn a_pod_that_stays_moves_no_other_one() {
    let active = plan(&[&["a"], &["b", "c"]]);
    let shadow = plan(&[&["b", "c"]]);
    assert_eq!(
        different(&active, &shadow),
        ["shop/a: keep (so) instead of evict in wave 1 w0"]
    );
    let shadow = plan(&[&["a"], &["c"]]);
    assert_eq!(
        different(&active, &shadow),
        ["shop/b: keep (so) instead of evict in wave 2 w1"]
    );
}

#[test]
fn another_wave_order_or_grace_is_a_difference() {
    let active = plan(&[&["a", "b", "c"]]);
    assert_eq!(
        different(&active, &plan(&[&["a", "b"], &["c"]])),
        ["shop/c: evict in wave 2 w1 instead of evict in wave 1 w0"]
    );
    assert_eq!(
        different(&active, &plan(&[&["b", "a", "c"]])),
        [
            "shop/a: evict in wave 1 w0, in another order among the pods of both plans",
            "shop/b: evict in wave 1 w0, in another order among the pods of both plans"
        ]
    );
    let mut shadow = active.clone();
    shadow.waves[0].max_grace_seconds = Some(59);
    assert_eq!(
        different(&active, &shadow)[2],
        "shop/c: evict in wave 1 w0 with grace 59s instead of evict in wave 1 w0"
    );
    let mut shadow = active.clone();
    shadow.decisions[1].verdict = Verdict::Delete;
    assert_eq!(
        different(&active, &shadow),
        ["shop/b: delete in wave 1 w0 instead of evict in wave 1 w0"]
    );
}

#[test]
fn a_sentence_names_three_pods_and_what_is_refused_counts_for_all() {
    let active = plan(&[&PODS]);
    let pods = PODS.map(pod);
    let mut made = ShadowPlan {
        policy: "next".to_owned(),
        digest: String::new(),
        instead_of: Some("old".to_owned()),
        leaving: 4,
        result: ShadowResult::Differs(differences(&active, &plan(&[]), &pods)),
    };
    let text = made.to_string();
    assert!(
        text.starts_with(
            "shadow policy next (instead of old) would treat 4 pods differently: shop/a: keep (so) "
        ),
        "{text}"
    );
    assert!(text.ends_with("; and 1 more"), "{text}");
    assert_eq!((made.pods(), made.differs()), (4, true));
    made.result = ShadowResult::Refuses("no".to_owned());
    assert_eq!((made.pods(), made.differs()), (4, true));
    for result in [
        ShadowResult::Agrees,
        ShadowResult::Failed("trap".to_owned()),
        ShadowResult::Unfinished,
    ] {
        made.result = result;
        assert_eq!((made.pods(), made.differs()), (0, false));
    }
}
