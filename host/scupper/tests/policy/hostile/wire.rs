//! Row 7: answers that break the binary interface. Each is a failure of the guest: never a panic, and never an answer.

use scupper_engine::{HookPhase, StepOutcome};
use scupper_policy::{CallFault, CallResult, LoadFault};
use scupper_policy_spec::PolicySpec;

use super::modules::HandMade;
use super::{beside, beside_steps};
use crate::support::{chain, load_spec, spec, step};

/// The error in a hand-made policy.
type Change = fn(&mut HandMade);

fn policy(made: &HandMade, name: &str) -> PolicySpec {
    PolicySpec {
        file: made.file(name),
        ..spec("echo")
    }
}

/// The reason why a hand-made policy is not loaded; its answer must be the cause.
async fn refused(name: &str, change: impl Fn(&mut HandMade)) -> String {
    let mut made = HandMade::right();
    change(&mut made);
    let spec = policy(&made, name);
    let (loaded, _) = beside(1, async || load_spec(spec.clone()).await).await;
    let [Err(error)] = loaded.as_slice() else {
        panic!("{name} was loaded")
    };
    let LoadFault::Call(call) = &*error.fault else {
        panic!("{name}: {}", chain(error))
    };
    contained(name, &call.fault);
    chain(error)
}

fn contained(name: &str, fault: &CallFault) {
    let result = fault.result();
    assert!(
        matches!(result, CallResult::Trap | CallResult::Other | CallResult::Data),
        "{name}: {result}: {fault}"
    );
}

pub(super) async fn row_07_what_is_made_by_hand_can_be_right() {
    let policies = load_spec(policy(&HandMade::right(), "right"))
        .await
        .unwrap_or_else(|error| panic!("{}", chain(&error)));
    assert_eq!(policies.descriptions()[0].title, "handmade");
    assert_eq!(
        step(&policies, HookPhase::BeforeDrain, b"").await,
        StepOutcome::Done
    );
}

pub(super) async fn row_07_texts_that_are_none() {
    let text = refused("bad-utf8", |made| made.put(256, b"hand\xff\xfe")).await;
    assert!(text.contains("describe"), "{text}");
    // The name, behind the memory; across its end; and as long as the address space.
    refused("text-outside", |made| made.list(16, 0xffff_ff00, 8)).await;
    refused("text-around", |made| made.list(16, 16 * 65_536 - 4, 8)).await;
    refused("text-endless", |made| made.list(16, 256, u32::MAX)).await;
}

pub(super) async fn row_07_answers_that_lie_nowhere() {
    refused("answer-outside", |made| made.description = -16).await;
    refused("answer-unaligned", |made| made.description = 17).await;
    refused("answer-around", |made| made.description = 16 * 65_536 - 8).await;
    refused("phases-unaligned", |made| made.phases = 129).await;
}

pub(super) async fn row_07_cases_that_do_not_exist() {
    let text = refused("no-such-phase", |made| made.put(200, &[200])).await;
    assert!(text.contains("phases"), "{text}");
    refused("phases-endless", |made| made.list(128, 200, 1 << 31)).await;
}

pub(super) async fn row_07_outcomes_that_do_not_exist_and_room_where_there_is_none() {
    let cases: [(&str, Change); 6] = [
        ("no-such-outcome", |made| made.put(512, &[9])),
        ("no-such-option", |made| {
            // Failed, with a message, and a time that is neither present nor absent.
            made.put(512, &[2]);
            made.list(520, 256, 8);
            made.put(528, &[7]);
        }),
        ("outcome-unaligned", |made| made.outcome = 513),
        ("room-outside", |made| made.room = Some(-16)),
        ("room-unaligned", |made| made.room = Some(65_537)),
        ("room-around", |made| made.room = Some(16 * 65_536 - 1)),
    ];
    for (name, change) in cases {
        let mut made = HandMade::right();
        change(&mut made);
        let policies = load_spec(policy(&made, name)).await.unwrap();
        let attack = async || step(&policies, HookPhase::BeforeDrain, b"").await;
        let outcomes = beside_steps(4, 2, attack).await;
        for outcome in outcomes {
            let StepOutcome::Failed { message, .. } = outcome else {
                panic!("{name}: {outcome:?}")
            };
            assert!(
                message.starts_with("policy `p` failed in step: ") && !message.contains("bug in the driver"),
                "{name}: {message}"
            );
        }
    }
}
