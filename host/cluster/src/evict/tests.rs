//! Every eviction answer seen from a real API server, verbatim.

use std::time::Duration;

use super::*;

const OVER_BUDGET: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const NEEDS: &str = "The disruption budget blk needs 2 healthy pods and has 2 currently";
const PCT: &str = "The disruption budget pct does not allow evicting pods currently";
const STALE: &str = "The disruption budget blk is still being processed by the server.";
const TWO_BUDGETS: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
const OTHER_UID: &str = "Operation cannot be fulfilled on Pod \"ok-1\": the UID in the precondition (a) does not \
                         match the UID in record (b). The object might have been deleted and then recreated";
const OTHER_VERSION: &str = "Operation cannot be fulfilled on Pod \"ok-1\": the ResourceVersion in the precondition (1) does not match the \
     ResourceVersion in record (296). The object might have been modified";
const DYING: &str = "pods \"tn-0\" is forbidden: unable to create new content in namespace dying because it is being \
                     terminated";
const NO_RIGHT: &str = "pods \"p\" is forbidden: User \"system:serviceaccount:default:nobody\" cannot create resource \
                        \"pods/eviction\" in API group \"\" in the namespace \"default\"";
const ETCD: &str = "Timeout: request did not complete within requested timeout - context deadline exceeded";

fn failure(code: u16, reason: &str, message: &str, details: Value) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message, "details": details,
    })
}

fn budget(cause: &str) -> Value {
    json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]})
}

fn answer(code: u16, retry_after: Option<u64>, body: &Value) -> EvictAnswer {
    let status: Status = serde_json::from_value(body.clone()).unwrap();
    classify(code, retry_after.map(Duration::from_secs), &status)
}

fn engine_secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn budgets() {
    let body = failure(429, "TooManyRequests", OVER_BUDGET, budget(NEEDS));
    let wanted = EvictAnswer::BudgetExhausted {
        budget: "blk".into(),
        message: format!("{OVER_BUDGET} {NEEDS}"),
    };
    assert_eq!(answer(429, None, &body), wanted);

    let body = failure(429, "TooManyRequests", OVER_BUDGET, budget(PCT));
    let wanted = EvictAnswer::BudgetExhausted {
        budget: "pct".into(),
        message: format!("{OVER_BUDGET} {PCT}"),
    };
    assert_eq!(answer(429, None, &body), wanted);

    let body = failure(
        429,
        "TooManyRequests",
        OVER_BUDGET,
        budget("a text of some later release"),
    );
    assert!(
        matches!(answer(429, None, &body), EvictAnswer::BudgetExhausted { budget, .. } if budget.is_empty()),
        "an unknown text names no budget"
    );

    let mut details = budget(STALE);
    details["retryAfterSeconds"] = json!(10);
    let body = failure(429, "TooManyRequests", OVER_BUDGET, details);
    let wanted = EvictAnswer::BudgetNotObserved {
        message: format!("{OVER_BUDGET} {STALE}"),
        retry_after: engine_secs(10),
    };
    assert_eq!(answer(429, Some(10), &body), wanted);
    assert_eq!(answer(429, None, &body), wanted, "the body says it, too");

    let body = json!({"kind": "Status", "status": "Failure", "code": 500, "message": TWO_BUDGETS});
    assert_eq!(
        answer(500, None, &body),
        EvictAnswer::MoreThanOneBudget {
            message: TWO_BUDGETS.into()
        }
    );
}

#[test]
fn another_pod_of_that_name() {
    let body = failure(409, "Conflict", OTHER_UID, json!({"name": "ok-1", "kind": "Pod"}));
    assert_eq!(
        answer(409, None, &body),
        EvictAnswer::UidMismatch {
            message: OTHER_UID.into()
        }
    );

    let body = failure(
        409,
        "Conflict",
        OTHER_VERSION,
        json!({"name": "ok-1", "kind": "Pod"}),
    );
    let wanted = EvictAnswer::Refused {
        code: 409,
        message: OTHER_VERSION.into(),
        retry_after: None,
    };
    assert_eq!(answer(409, None, &body), wanted, "says nothing of the UID");
}

#[test]
fn gone() {
    for (name, kind) in [("nope", "pods"), ("nope", "namespaces")] {
        let message = format!("{kind} \"{name}\" not found");
        let body = failure(404, "NotFound", &message, json!({"name": name, "kind": kind}));
        assert_eq!(answer(404, None, &body), EvictAnswer::NotFound);
    }
}

#[test]
fn a_404_without_an_object_does_not_mean_that_the_pod_is_gone() {
    let wrong_path = failure(
        404,
        "NotFound",
        "the server could not find the requested resource",
        json!({}),
    );
    let proxy = json!({"code": 404, "message": "HTTP 404: <html>nginx</html>"});
    for body in [wrong_path, proxy] {
        assert!(
            matches!(answer(404, None, &body), EvictAnswer::Refused { code: 404, .. }),
            "{body}"
        );
    }
}

#[test]
fn forbidden() {
    let cause = json!({
        "reason": "NamespaceTerminating", "message": "namespace dying is being terminated",
        "field": "metadata.namespace",
    });
    let body = failure(
        403,
        "Forbidden",
        DYING,
        json!({"name": "tn-0", "kind": "pods", "causes": [cause]}),
    );
    assert_eq!(
        answer(403, None, &body),
        EvictAnswer::NamespaceTerminating {
            message: DYING.into()
        }
    );

    let body = failure(403, "Forbidden", NO_RIGHT, json!({"name": "p", "kind": "pods"}));
    assert_eq!(
        answer(403, None, &body),
        EvictAnswer::Forbidden {
            message: NO_RIGHT.into()
        }
    );

    let body = failure(401, "Unauthorized", "Unauthorized", Value::Null);
    assert_eq!(
        answer(401, None, &body),
        EvictAnswer::Forbidden {
            message: "Unauthorized".into()
        }
    );
}

#[test]
fn flow_control() {
    let words = "too many requests, please try again later";
    let body = failure(429, "TooManyRequests", words, json!({"retryAfterSeconds": 1}));
    let wanted = EvictAnswer::Throttled {
        message: words.into(),
        retry_after: Some(engine_secs(1)),
    };
    assert_eq!(answer(429, Some(1), &body), wanted);

    let body = json!({"code": 429, "message": "HTTP 429: Too many requests, please try again later."});
    assert!(matches!(
        answer(429, Some(1), &body),
        EvictAnswer::Throttled {
            retry_after: Some(_),
            ..
        }
    ));
    assert!(matches!(
        answer(429, None, &body),
        EvictAnswer::Throttled {
            retry_after: None,
            ..
        }
    ));
}

#[test]
fn webhooks_may_use_any_code() {
    let words = "admission webhook \"virt-launcher-eviction-interceptor.kubevirt.io\" denied the request: Eviction \
                 triggered evacuation of VMI \"default/vm\"";
    for code in [400, 403, 404, 409, 422, 429, 500] {
        let body = failure(code, "", words, Value::Null);
        let wanted = EvictAnswer::Refused {
            code,
            message: words.into(),
            retry_after: None,
        };
        assert_eq!(answer(code, None, &body), wanted);
    }
    let words = "Internal error occurred: failed calling webhook \"v.example.com\": connection refused";
    let body = failure(500, "InternalError", words, Value::Null);
    assert!(matches!(
        answer(500, None, &body),
        EvictAnswer::Refused { code: 500, .. }
    ));
}

#[test]
fn broken_servers_and_wrong_requests() {
    let body = failure(504, "Timeout", ETCD, json!({}));
    let wanted = EvictAnswer::Refused {
        code: 504,
        message: ETCD.into(),
        retry_after: None,
    };
    assert_eq!(answer(504, None, &body), wanted);

    let words = "name in URL does not match name in Eviction object";
    let body = failure(400, "BadRequest", words, Value::Null);
    assert!(matches!(
        answer(400, None, &body),
        EvictAnswer::Refused { code: 400, .. }
    ));

    let body = json!({"code": 503, "message": "HTTP 503"});
    let wanted = EvictAnswer::Refused {
        code: 503,
        message: "HTTP 503".into(),
        retry_after: Some(engine_secs(7)),
    };
    assert_eq!(answer(503, Some(7), &body), wanted);

    let body = json!({"code": 302, "message": "HTTP 302"});
    assert!(matches!(
        answer(302, None, &body),
        EvictAnswer::Refused { code: 302, .. }
    ));
}

#[test]
fn accepted() {
    let body =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    for code in [200, 201] {
        assert_eq!(answer(code, None, &body), EvictAnswer::Accepted);
    }
}
