//! The rights that the driver needs, and those that this user does not have.

use std::collections::BTreeSet;

use scupper_engine::{LocalData, Settings, SurgeMethod};

use super::{DoctorOptions, Finding};
use crate::CommandError;
use scupper_cluster::{
    ANNOTATE_PURPOSE, CLAIM_PURPOSE, Cluster, FACT_PURPOSE, FORCE_PURPOSE, LOCAL_DATA_PURPOSE,
    REQUEST_PURPOSE, Right, VOLUME_PURPOSE, evicting_as_node, needed, needed_at_deadline,
    needed_for_certainty, needed_for_fact, needed_for_local_data, needed_for_pod_annotations,
    needed_for_surge, needed_for_volumes, surge_purpose,
};

const SUBJECT: &str = "rights";

/// What pre-flight findings are certain by.
const CERTAIN_FACTS: [&str; 2] = ["namespaces", "owners"];

/// What decides which rights the driver needs, beside its settings.
pub(super) struct DriverDuties {
    /// That of the lifecycle objects.
    pub(super) group: String,
    /// It claims events itself; `None`: the kubelet was not asked.
    pub(super) claims: Option<bool>,
    /// The targets of the facts that its policies ask for.
    pub(super) facts: BTreeSet<String>,
    /// Any of its policies annotates pods.
    pub(super) annotates_pods: bool,
    /// For DrainRequests.
    pub(super) requests: Vec<Right>,
}

/// What the user may do of what the driver must.
pub(super) async fn of_driver(
    cluster: &Cluster,
    options: &DoctorOptions,
    settings: &Settings,
    mut duties: DriverDuties,
) -> Result<Vec<Finding>, CommandError> {
    if settings.refuse_certain || settings.surge.is_some() {
        duties.facts.extend(CERTAIN_FACTS.map(str::to_owned));
    }
    let is_certain = CERTAIN_FACTS.iter().all(|fact| duties.facts.contains(*fact));
    let all = of_duties(options, settings, duties);
    let count = all.len();
    let name = options.node.as_deref().unwrap_or_default();
    let missing = cluster.missing_rights(all, name).await;
    let missing = missing.map_err(CommandError::Rights)?;
    let user = cluster.user().await.unwrap_or_else(|| "the caller".to_owned());
    let mut findings = found(&user, count, missing, &options.lease_namespace);
    if !is_certain {
        let missing = cluster.missing_rights(needed_for_certainty(), name).await;
        findings.extend(uncertain(&user, &missing.map_err(CommandError::Rights)?));
    }
    Ok(findings)
}

fn of_duties(options: &DoctorOptions, settings: &Settings, duties: DriverDuties) -> Vec<Right> {
    let DriverDuties { group, claims, .. } = &duties;
    let mut all = needed(group, *claims != Some(false), &options.lease_namespace);
    let if_it_claims = all.iter_mut().filter(|right| right.purpose == CLAIM_PURPOSE);
    if_it_claims.for_each(|right| right.required = claims.is_some());
    if options.evict_as_node {
        all = evicting_as_node(all);
    }
    let of_fact = |target: &String| needed_for_fact(target, group);
    all.extend(duties.facts.iter().flat_map(of_fact));
    all.extend(duties.requests);
    if duties.annotates_pods {
        all.extend(needed_for_pod_annotations());
    }
    if settings.local_data != LocalData::Unread {
        all.extend(needed_for_local_data());
    }
    if settings.wait_for_volumes.is_some() {
        all.extend(needed_for_volumes());
    }
    if settings.at_deadline.is_some() {
        all.retain(|right| right.name() != "delete pods");
        all.extend(needed_at_deadline());
    }
    if let Some(surge) = &settings.surge {
        all.extend(needed_for_surge(surge));
    }
    all
}

/// Without these rights no pre-flight finding about a budget is certain, as the operator may want it.
pub(super) fn uncertain(user: &str, missing: &[Right]) -> Option<Finding> {
    let names: Vec<_> = missing.iter().map(Right::name).collect();
    let text = format!(
        "{user} has no right to {}, so a drain never says for certain that a budget keeps a pod",
        names.join(", ")
    );
    let remedy = "to know it for certain, use the components deploy/components/facts/namespaces and \
                  deploy/components/facts/owners";
    (!names.is_empty()).then(|| Finding::note(SUBJECT, text, remedy.to_owned()))
}

/// Rights that the driver needs and this user does not have. `namespace`: the driver's own.
pub(super) fn found(user: &str, count: usize, missing: Vec<Right>, namespace: &str) -> Vec<Finding> {
    let account = format!("system:serviceaccount:{namespace}:scupper");
    let is_driver = is_account_of_drivers(user, namespace);
    if missing.is_empty() {
        let driver = match is_driver {
            true => String::new(),
            false => format!("; whether its own account has them: --as {account}"),
        };
        let text = format!("{user} has all {count} rights that the driver needs{driver}");
        return vec![Finding::fine(SUBJECT, text)];
    }
    let whose = format!(
        "{user} lacks {} of {count} rights that the driver needs",
        missing.len()
    );
    let remedy = match is_driver {
        true => "what is wrong with each follows".to_owned(),
        false => format!("to check the driver's rights: --as {account}"),
    };
    let whose = Finding::note(SUBJECT, whose, remedy);
    let findings = missing.into_iter().map(|right| {
        let (place, remedy) = lacking(&right);
        let remedy = match is_driver {
            true => remedy,
            false => {
                format!("for a person the roles of deploy/people.yaml are enough; for the driver: {remedy}")
            }
        };
        let text = format!("no right to {}{place}, needed {}", right.name(), right.purpose);
        if right.required {
            Finding::wrong(SUBJECT, text, remedy)
        } else {
            Finding::note(SUBJECT, text, remedy)
        }
    });
    std::iter::once(whose).chain(findings).collect()
}

/// Whether a driver may have this account: one in its namespace, or of the name in `deploy/`, which another namespace can
/// have.
pub(super) fn is_account_of_drivers(user: &str, namespace: &str) -> bool {
    let account = user
        .strip_prefix("system:serviceaccount:")
        .and_then(|account| account.split_once(':'));
    account.is_some_and(|(of, name)| of == namespace || name == "scupper")
}

/// Where a right is missing, as far as that is in one place, and what to do.
fn lacking(right: &Right) -> (String, String) {
    if right.purpose == FACT_PURPOSE {
        let text =
            "add it to the driver's ClusterRole, or use the components of deploy/components/facts".to_owned();
        return (String::new(), text);
    }
    if right.purpose == CLAIM_PURPOSE {
        let unless = if right.required {
            ""
        } else {
            "; where the kubelet claims events, the driver does not need it"
        };
        let text = format!("use the component deploy/components/claim{unless}");
        return (String::new(), text);
    }
    if right.purpose == LOCAL_DATA_PURPOSE {
        let text = "use the component deploy/components/local-data".to_owned();
        return (String::new(), text);
    }
    if right.purpose == VOLUME_PURPOSE {
        let text = "use the component deploy/components/wait-for-volumes".to_owned();
        return (String::new(), text);
    }
    let method = [SurgeMethod::Restart, SurgeMethod::Scale];
    if let Some(method) = method.into_iter().find(|&it| right.purpose == surge_purpose(it)) {
        let text = match method {
            SurgeMethod::Restart => "use the component deploy/components/surge",
            SurgeMethod::Scale => "use the component deploy/components/surge-scale",
        };
        let text = text.to_owned();
        let place = match right.namespace.as_str() {
            "" => String::new(),
            namespace => format!(" in the namespace {namespace}"),
        };
        return (place, text);
    }
    if right.purpose == REQUEST_PURPOSE {
        let text =
            "use the component deploy/components/drain-requests, or bind such a Role in that namespace"
                .to_owned();
        return (format!(" in the namespace {}", right.namespace), text);
    }
    if right.purpose == ANNOTATE_PURPOSE {
        let text = "use the component deploy/components/pods/patch".to_owned();
        return (String::new(), text);
    }
    if right.purpose == FORCE_PURPOSE {
        let text = "use the component deploy/components/pods/delete".to_owned();
        return (String::new(), text);
    }
    if right.name() == "delete pods" {
        let text = "use the component deploy/components/pods/delete if a policy deletes pods, as DeleteAfterTimeout of \
                    namespace-modes does";
        return (String::new(), text.to_owned());
    }
    if right.resource != "leases" {
        return (String::new(), "add it to the driver's ClusterRole".to_owned());
    }
    let namespace = &right.namespace;
    let remedy = format!(
        "bind the Role scupper-leases of deploy/base/rights.yaml to the driver's account in the namespace {namespace}; \
         without it drains run with a warning, and concurrent drains of a node do not notice each other"
    );
    (format!(" in the namespace {namespace}"), remedy)
}
