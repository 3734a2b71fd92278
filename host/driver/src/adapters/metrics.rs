//! Counts policy calls, reloads and API requests: observes the edges `policy` and `cluster`, and feeds the metrics of
//! `metrics`.

use scupper_cluster::RequestObserver;
use scupper_metrics::{Metrics, PolicyCall, PolicyVersion};
use scupper_policy::{Observation, Observer, Usage};
use scupper_policy_reload::ReloadNotice;

/// Counts what policies do.
pub(crate) struct PolicyMetricsObserver(pub(crate) Metrics);

impl Observer for PolicyMetricsObserver {
    fn observe(&self, observation: Observation<'_>) {
        match observation {
            Observation::Called {
                policy,
                function,
                result,
                usage,
                ..
            } => self
                .0
                .policy_called(&call(policy, function, result.as_str(), &usage)),
            Observation::Requested { policy, status } => self.0.policy_requested(policy, status),
            Observation::Emitted { policy, result } => self.0.policy_emitted(policy, result.as_str()),
            Observation::Asked { policy, fact, result } => {
                self.0.policy_asked(policy, fact.as_str(), result.as_str())
            }
        }
    }
}

const fn call<'a>(
    policy: &'a str,
    function: &'static str,
    result: &'static str,
    usage: &Usage,
) -> PolicyCall<'a> {
    PolicyCall {
        policy,
        function,
        result,
        wall: usage.wall,
        cpu: usage.cpu,
        memory: usage.memory,
        log_lines: usage.log_lines,
        log_lines_dropped: usage.log_lines_dropped,
        response_bytes: usage.response_bytes,
    }
}

/// Counts requests to the API server.
pub(crate) fn requests(metrics: &Metrics) -> RequestObserver {
    let metrics = metrics.clone();
    RequestObserver::new(move |asked| metrics.api_requested(asked.verb, asked.resource, asked.code))
}

/// Counts what happened to a policy.
pub(crate) fn count(metrics: &Metrics, notice: &ReloadNotice) {
    match notice {
        ReloadNotice::Activated {
            name,
            digest,
            version,
            generation,
            is_shadow,
        } => {
            let version = PolicyVersion {
                policy: name,
                digest,
                version,
                generation: *generation,
            };
            match is_shadow {
                true => metrics.policy_shadowed(&version),
                false => metrics.policy_activated(&version),
            }
        }
        ReloadNotice::Rejected {
            name, digest, step, ..
        } => metrics.policy_rejected(&by_digest(name, digest.as_deref().unwrap_or_default()), step),
        ReloadNotice::RolledBack {
            name,
            from,
            to,
            generation,
            is_shadow,
            ..
        } => {
            metrics.policy_rolled_back(&by_digest(name, from), "faults");
            let back = PolicyVersion {
                generation: *generation,
                ..by_digest(name, to)
            };
            match is_shadow {
                true => metrics.policy_back_as_shadow(&back),
                false => metrics.policy_back(&back),
            }
        }
        ReloadNotice::Degraded { name, .. } => metrics.policy_degraded(name),
        ReloadNotice::HookRestarted { name, .. } => metrics.policy_hook_begun_again(name),
        ReloadNotice::Removed { name } => metrics.policy_removed(name),
    }
}

/// A version of which only policy and digest are known.
const fn by_digest<'a>(policy: &'a str, digest: &'a str) -> PolicyVersion<'a> {
    PolicyVersion {
        policy,
        digest,
        version: "",
        generation: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shadow_that_is_rolled_back_is_shown_as_a_shadow() {
        for is_shadow in [false, true] {
            let metrics = Metrics::new();
            let (name, digest) = ("jobs".to_owned(), "bb".to_owned());
            let activated = ReloadNotice::Activated {
                name: name.clone(),
                digest: digest.clone(),
                version: "2".to_owned(),
                generation: 2,
                is_shadow,
            };
            let rolled_back = ReloadNotice::RolledBack {
                name,
                from: digest,
                to: "aa".to_owned(),
                generation: 3,
                is_shadow,
                reason: String::new(),
            };
            count(&metrics, &activated);
            count(&metrics, &rolled_back);
            let text = metrics.to_text();
            let infos = text
                .lines()
                .filter(|line| line.starts_with("scupper_policy_info{"));
            let current: Vec<_> = infos.filter(|line| !line.contains("rejected")).collect();
            let [current] = &current[..] else { panic!("{text}") };
            let state = if is_shadow { "shadow" } else { "active" };
            assert!(
                current.contains(r#"digest="aa""#) && current.contains(&format!("state=\"{state}\"")),
                "{current}"
            );
        }
    }
}
