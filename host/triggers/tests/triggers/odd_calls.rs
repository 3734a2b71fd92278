//! Calls that no kubelet makes: without a node, for another one, with names that are too long, with messages of other
//! types. They begin nothing, and the driver serves the next call.

use prost::Message;
use scupper_contract::SERVICE;
use scupper_contract::slm::{LifecycleTransitionResponse, StartLifecycleTransitionRequest};
use tonic::client::Grpc;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::fixture::{Answer, Kubelet, Root, SlmTrigger, claimed, dial, start_request};

const START: &str = "StartLifecycleTransition";

/// The node as a number.
#[derive(Clone, PartialEq, Message)]
struct NumberAsNode {
    #[prost(uint64, tag = "3")]
    node_name: u64,
}

/// The node as bytes that are no text.
#[derive(Clone, PartialEq, Message)]
struct BytesAsNode {
    #[prost(bytes = "vec", tag = "3")]
    node_name: Vec<u8>,
}

async fn call<M>(kubelet: &Kubelet, method: &str, message: M) -> Result<LifecycleTransitionResponse, Status>
where
    M: Message + 'static,
{
    let mut client = Grpc::new(dial(kubelet.info.endpoint.as_ref()).await);
    client.ready().await.unwrap();
    let path = format!("/{SERVICE}/{method}").parse().unwrap();
    let codec = ProstCodec::<M, LifecycleTransitionResponse>::default();
    let answer = client.unary(Request::new(message), path, codec).await;
    answer.map(Response::into_inner)
}

/// A trigger with a claimed event, and its kubelet.
async fn registered(root: &Root) -> (SlmTrigger, Kubelet) {
    let (trigger, kubelet) = SlmTrigger::registered(root).await;
    trigger.apply(claimed("u1", "drain-1"));
    trigger.settle().await;
    (trigger, kubelet)
}

async fn nothing_has_begun_and_the_next_call_is_served(mut trigger: SlmTrigger, mut kubelet: Kubelet) {
    trigger.settle().await;
    assert!(trigger.commands.try_recv().is_err());
    assert_eq!(kubelet.start("drain-1").await, Answer::condition("drain-started"));
    trigger.command().await;
}

#[tokio::test]
async fn names_that_cannot_be_ours_are_refused_in_a_short_answer() {
    let root = Root::new();
    let (trigger, mut kubelet) = registered(&root).await;
    let long = "x".repeat(100_000);
    let changed = |change: &dyn Fn(&mut StartLifecycleTransitionRequest)| {
        let mut request = start_request("drain-1");
        change(&mut request);
        request
    };
    for (request, error) in [
        (changed(&|it| it.node_name.clear()), "serves node worker-1, not "),
        (
            changed(&|it| it.node_name = "worker-2".to_owned()),
            "not worker-2",
        ),
        (changed(&|it| it.node_name.clone_from(&long)), "not xxx"),
        (
            changed(&|it| it.transition_name.clear()),
            "does not know transition ;",
        ),
        (
            changed(&|it| it.transition_name.clone_from(&long)),
            "does not know transition xxx",
        ),
        (changed(&|it| it.start.clear()), "must have a start and an end"),
        (
            changed(&|it| (it.start, it.end) = (long.clone(), long.clone())),
            "must have a start and an end",
        ),
        // No such event: the watch may show it later.
        (changed(&|it| it.event_name.clear()), ""),
        (changed(&|it| it.event_name.clone_from(&long)), ""),
    ] {
        let answer = kubelet.service.start_lifecycle_transition(request).await;
        let answer = answer.unwrap().into_inner();
        assert_eq!(answer.lifecycle_condition, "");
        assert_eq!(answer.error.is_empty(), error.is_empty(), "{}", answer.error);
        assert!(answer.error.contains(error), "{error}: {}", answer.error);
        assert!(answer.error.len() < 1000, "{} bytes", answer.error.len());
    }
    nothing_has_begun_and_the_next_call_is_served(trigger, kubelet).await;
}

#[tokio::test]
async fn messages_of_other_types_are_errors_of_their_calls_alone() {
    let root = Root::new();
    let (trigger, kubelet) = registered(&root).await;
    let number = NumberAsNode { node_name: 7 };
    let bytes = BytesAsNode {
        node_name: vec![0xff; 3],
    };
    let mut huge = start_request("drain-1");
    huge.event_name = "x".repeat(8 << 20);
    for (answer, code) in [
        (call(&kubelet, START, number).await, Code::Internal),
        (call(&kubelet, START, bytes).await, Code::Internal),
        (call(&kubelet, START, huge).await, Code::OutOfRange),
        (
            call(&kubelet, "Reboot", start_request("drain-1")).await,
            Code::Unimplemented,
        ),
    ] {
        assert_eq!(answer.unwrap_err().code(), code);
    }
    nothing_has_begun_and_the_next_call_is_served(trigger, kubelet).await;
}
