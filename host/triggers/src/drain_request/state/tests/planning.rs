//! The drain that a request would get, for `scupper plan`.

use super::*;

fn planned(requests: Vec<ObservedRequest>, id: &str) -> Result<PlannedDrain, NoDrain> {
    let name = format!("drain-{id}");
    planned_drain(requests, (NAMESPACE, &name), &ConditionNames::default())
}

fn served(planned: &PlannedDrain) -> Vec<&str> {
    let requests = planned.served.requests.iter();
    requests.map(|fields| fields.uid.as_str()).collect()
}

#[test]
fn it_is_the_drain_that_the_driver_would_begin() {
    let requests = vec![of_gpu("1", "GPU-1"), of_gpu("2", "GPU-2")];
    let planned = planned(requests.clone(), "1").unwrap();
    let mut rig = Rig::with(requests);
    rig.state.advance(rig.now, true);
    let Some(DrainCommand::Begin(begun)) = rig.state.poll_command() else {
        panic!("no drain");
    };
    // The plan has no id of a drain, only that of the request.
    let id = begun.id.clone();
    assert_eq!(request_of(&id), planned.drain.id);
    assert_eq!(
        begun,
        TriggerRequest {
            id: id.clone(),
            ..planned.drain
        }
    );
    let served = ServedRequests {
        drain: id,
        ..planned.served
    };
    assert_eq!(rig.state.served(), Some(served));
}

#[test]
fn it_serves_the_open_requests_that_mean_the_same_pods() {
    let mut deleted = naming("4", &["a"]);
    deleted.deleting = true;
    let answered = ObservedRequest {
        only_pods: naming("5", &["a"]).only_pods,
        ..with("5", "DrainFailed", "True", "Blocked", Time::default())
    };
    let all = [
        naming("1", &["a"]),
        naming("2", &["b"]),
        naming("3", &["a"]),
        deleted,
        answered,
    ];
    for id in ["1", "3"] {
        let planned = planned(all.to_vec(), id).unwrap();
        assert_eq!(served(&planned), ["1", "3"]);
        assert_eq!(
            (planned.drain.id.as_str(), planned.served.drain.as_str()),
            (id, id)
        );
        assert_eq!(planned.drain.only_pods, naming(id, &["a"]).only_pods);
    }
    assert_eq!(served(&planned(all.to_vec(), "2").unwrap()), ["2"]);
}

#[test]
fn a_request_without_a_drain_says_why() {
    let mut deleted = request("1");
    deleted.deleting = true;
    let mut wrong = request("1");
    wrong.problem = Some("spec.nodeName is missing".to_owned());
    let text = |request| planned(vec![request], "1").unwrap_err().to_string();
    assert_eq!(text(request("2")), "it does not exist");
    assert_eq!(text(deleted), "it is being deleted");
    for kind in ["DrainComplete", "DrainFailed"] {
        let answered = with("1", kind, "True", "Drained", Time::default());
        assert_eq!(text(answered), format!("its condition {kind} is True already"));
    }
    assert_eq!(
        text(wrong),
        "the driver would set its condition DrainFailed with reason InvalidRequest: spec.nodeName is missing"
    );
    assert!(text(naming("1", &[])).contains("DrainComplete with reason NoPods"));
}
