//! Rows 4 to 6 and 8: guests that take too much.

use scupper_engine::{HookPhase, PlanAnswer, StepOutcome};
use scupper_policy::LoadFault;
use scupper_policy_spec::{Limits, PolicySpec};

use super::{beside, beside_steps};
use crate::support::{chain, failed_plan, load, load_spec, plan, refused, short, spec, step};

pub(super) async fn row_04_memory_until_there_is_none() {
    let policies = load("eats_memory").await;
    // The limit would notice six times 64 MiB.
    let messages = beside_steps(6, 3, async || failed_plan(&policies).await).await;
    for message in messages {
        assert_eq!(
            message,
            "policy `p` failed in make-plan: it exceeded its limit of 64 MiB of memory"
        );
    }
    let most = policies.usage()[0].most.memory;
    assert!(most <= 64 << 20 && most > 60 << 20, "it had {most} bytes");
}

pub(super) async fn row_04_more_memory_than_allowed_to_begin_with() {
    let (reported, _) = beside(1, async || refused("huge_memory").await).await;
    let (fault, text) = &reported[0];
    assert!(matches!(fault, LoadFault::Needs { .. }), "{text}");
    assert!(
        text.contains("bytes of memory at its start, and its limit is 67108864"),
        "{text}"
    );
}

pub(super) async fn row_04_more_instances_tables_and_memories_than_allowed() {
    let limited = [
        (
            Limits {
                instances: 0,
                ..short()
            },
            "instance count too high",
        ),
        (
            Limits {
                table_elements: 1,
                ..short()
            },
            "table elements",
        ),
        (
            Limits {
                memories: 0,
                ..short()
            },
            "its limit is 0",
        ),
    ];
    for (limits, bound) in limited {
        let spec = PolicySpec {
            limits,
            ..spec("echo")
        };
        let (loaded, _) = beside(1, async || load_spec(spec.clone()).await).await;
        let [Err(error)] = loaded.as_slice() else {
            panic!("loaded in spite of {bound}")
        };
        let text = chain(error);
        assert!(text.contains(bound), "`{bound}` is missing in: {text}");
    }
}

pub(super) async fn row_05_recursion_without_end() {
    let policies = load("recurses").await;
    let messages = beside_steps(5, 2, async || failed_plan(&policies).await).await;
    for message in messages {
        assert!(
            message.contains("call stack exhausted") && message.contains("deeper"),
            "{message}"
        );
    }
}

pub(super) async fn row_05_calling_the_host_while_it_gives_arguments() {
    let policies = load("logs_in_alloc").await;
    let (messages, _) = beside(5, async || failed_plan(&policies).await).await;
    for message in messages {
        assert!(message.contains("cannot leave component instance"), "{message}");
    }
    assert_eq!(policies.usage()[0].total.log_lines, 0);
}

pub(super) async fn row_06_answers_that_carry_too_much() {
    for name in ["huge_plan", "huge_words"] {
        let policies = load(name).await;
        let messages = beside_steps(6, 3, async || failed_plan(&policies).await).await;
        for message in messages {
            assert!(message.ends_with("carried more than 4 MiB"), "{name}: {message}");
        }
    }
}

pub(super) async fn row_06_more_decisions_than_pods() {
    let policies = load("too_many_decisions").await;
    let (answers, _) = beside(3, async || plan(&policies, 4).await).await;
    for answer in answers {
        let PlanAnswer::Failed { message, .. } = answer else {
            panic!("a plan")
        };
        assert!(
            message.ends_with("it answered with 12 decisions for 4 pods"),
            "{message}"
        );
    }
}

pub(super) async fn row_06_a_state_that_nobody_keeps() {
    let policies = load("huge_state").await;
    let StepOutcome::Pending { state, .. } = step(&policies, HookPhase::BeforeDrain, b"").await else {
        panic!("1024 bytes are too many")
    };
    assert_eq!(state.len(), 1024);
    let attack = async || step(&policies, HookPhase::BeforeDrain, b"x").await;
    let (outcomes, _) = beside(3, attack).await;
    for outcome in outcomes {
        let StepOutcome::Failed { message, .. } = outcome else {
            panic!("{outcome:?}")
        };
        assert!(
            message.ends_with("its state has 1025 bytes, and 1024 are kept"),
            "{message}"
        );
    }
}

pub(super) async fn row_08_handles_that_are_never_let_go() {
    let policies = load("leaks_handles").await;
    let attack = async || step(&policies, HookPhase::BeforeDrain, b"").await;
    let outcomes = beside_steps(5, 2, attack).await;
    for outcome in outcomes {
        let StepOutcome::Failed { message, .. } = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(
            message,
            "policy `p` failed in step: it exceeded its limit of 1000 handles"
        );
    }
}
