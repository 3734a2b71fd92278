//! Row 13: plans with unknown pods, with pods twice, and with pods that must not be evicted.

use scupper_engine::{Decision, Plan, PlanAnswer, PlanFault, Pod, Settings, Uid, Verdict, Wave, check};

use super::beside;
use crate::support::{draft, load, plan_for, pod};

pub(super) async fn row_13_a_stranger_in_a_plan() {
    let policies = load("bad_plan").await;
    let pods = [pod(1)];
    let (answers, _) = beside(3, async || plan_for(&policies, &pods).await).await;
    for answer in answers {
        let PlanAnswer::Plan(answer) = answer else {
            panic!("no plan")
        };
        let stranger = answer.decisions.last().unwrap();
        assert_eq!(
            (&stranger.pod, stranger.policy.as_str()),
            (&Uid::new(r"nobody\u{1b}[2J".to_owned()), "p")
        );
        // The plan's user first asks the engine, which knows the node's pods.
        let refused = check(&answer, &pods, &Settings::default());
        assert!(matches!(refused, Err(PlanFault::Unknown(_))), "{refused:?}");
    }
}

/// Pseudo-random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// Corrupts a plan: every possible answer of a policy is a combination of these changes.
fn worsen(plan: &mut Plan, dice: &mut Dice) {
    let some = dice.below(plan.decisions.len());
    let uid = plan.decisions[some].pod.clone();
    let stranger = Uid::new("stranger");
    match dice.below(7) {
        0 => plan.decisions[some].pod = stranger,
        1 => plan.decisions.push(plan.decisions[some].clone()),
        2 => drop(plan.decisions.remove(some)),
        3 => plan.decisions[some].verdict = Verdict::Evict,
        4 => plan.decisions[some].verdict = Verdict::Keep,
        5 => plan.waves[0].pods.push(uid),
        _ => plan.waves.push(Wave {
            name: "again".to_owned(),
            pods: vec![if dice.below(2) == 0 { stranger } else { uid }],
            max_parallel: None,
            timeout: None,
            max_grace_seconds: None,
            policy: String::new(),
        }),
    }
}

/// A node's pods: some ordinary ones, one static, one the driver's own.
fn pods() -> (Vec<Pod>, Settings) {
    let mut pods: Vec<Pod> = (0..6).map(pod).collect();
    pods[2]
        .annotations
        .insert(scupper_engine::MIRROR_ANNOTATION.to_owned(), "x".to_owned());
    let settings = Settings {
        own_pod: Some(pods[5].id.clone()),
        ..Settings::default()
    };
    (pods, settings)
}

#[test]
fn row_13_no_accepted_plan_evicts_unknown_duplicate_or_protected_pods() {
    let (pods, settings) = pods();
    let mirror = pods[2].id.uid.clone();
    let own = pods[5].id.uid.clone();
    let mut good = draft(&pods);
    for decision in &mut good.decisions {
        if decision.pod == mirror || decision.pod == own {
            decision.verdict = Verdict::Keep;
        }
    }
    good.waves[0].pods.retain(|uid| *uid != mirror && *uid != own);
    assert_eq!(check(&good, &pods, &settings), Ok(()));
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..20_000 {
        let mut dice = Dice(seed);
        let mut plan = good.clone();
        for _ in 0..=dice.below(3) {
            if !plan.decisions.is_empty() {
                worsen(&mut plan, &mut dice);
            }
        }
        match check(&plan, &pods, &settings) {
            Ok(()) => {
                taken += 1;
                holds(&plan, &pods, &mirror, &own, seed);
            }
            Err(_) => refused += 1,
        }
    }
    assert!(
        taken > 100 && refused > 10_000,
        "{taken} taken, {refused} refused"
    );
}

fn holds(plan: &Plan, pods: &[Pod], mirror: &Uid, own: &Uid, seed: u64) {
    let decided: Vec<&Uid> = plan.decisions.iter().map(|decision| &decision.pod).collect();
    assert_eq!(decided.len(), pods.len(), "seed {seed}");
    for pod in pods {
        let count = decided.iter().filter(|uid| ***uid == pod.id.uid).count();
        assert_eq!(count, 1, "seed {seed}: {}", pod.id);
    }
    let leaves = |decision: &&Decision| decision.verdict.leaves();
    let leaving: Vec<&Uid> = plan
        .decisions
        .iter()
        .filter(leaves)
        .map(|decision| &decision.pod)
        .collect();
    assert!(!leaving.contains(&mirror), "seed {seed}: a mirror pod leaves");
    let placed: Vec<&Uid> = plan.waves.iter().flat_map(|wave| &wave.pods).collect();
    assert_eq!(placed.len(), leaving.len(), "seed {seed}");
    if leaving.contains(&own) {
        assert_eq!(
            placed.last(),
            Some(&own),
            "seed {seed}: the driver leaves before others"
        );
    }
}
