//! The flags of `scupper drain` in an annotation of the LifecycleEvent. The command writes them; the driver trusts
//! nothing in them.

use std::ops::RangeInclusive;
use std::time::Duration;

use scupper_engine::{Filters, LocalData};
use serde::{Deserialize, Serialize};

use scupper_cluster::FLAGS_ANNOTATION;
use scupper_common::label_selector;
use scupper_triggers::RequestedSettings;

/// The longest text that is read.
const LONGEST: usize = 4096;
/// The longest time that is accepted: a year.
const LONGEST_SECONDS: u64 = 366 * 24 * 60 * 60;
/// How often a pod that comes back may be evicted.
const RETURNS: RangeInclusive<u32> = 1..=100;

/// The flags as the user typed them, or `kubectl drain`'s defaults.
#[derive(Clone, Debug)]
pub struct HandoverFlags {
    /// How pods are chosen.
    pub filters: Filters,
    /// Its selector of pods, as text.
    pub pod_selector: String,
    /// Overrides the pods' own grace period.
    pub grace_seconds: Option<u64>,
    /// How often pods are evicted that come back; `None`: as the driver does it.
    pub returning_pod_evictions: Option<u32>,
    /// What follows from pods whose volumes only the node can use; `None`: what the driver's configuration says.
    pub local_data: Option<LocalData>,
    /// How long one eviction request may take.
    pub eviction_timeout: Duration,
    /// How long the drain may take; `None`: as long as it takes.
    pub timeout: Option<Duration>,
}

/// The annotation's JSON. A missing field is an error, not a default.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HandoverFlagsJson {
    force: bool,
    ignore_daemonsets: bool,
    delete_emptydir_data: bool,
    pod_selector: String,
    skip_wait_for_delete_timeout_seconds: u64,
    eviction_timeout_milliseconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_period_seconds: Option<u64>,
    /// Older drivers do not know it, so the command sends it only if the user typed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    returning_pod_evictions: Option<u32>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    local_data: Option<LocalDataJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_milliseconds: Option<u64>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
enum LocalDataJson {
    Warn,
    Refuse,
}

/// The annotation's text.
///
/// # Errors
/// The flags cannot be written as JSON.
pub fn write(typed: &HandoverFlags) -> Result<String, serde_json::Error> {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let HandoverFlags { filters, .. } = typed;
    serde_json::to_string(&HandoverFlagsJson {
        force: filters.force,
        ignore_daemonsets: filters.ignore_daemonsets,
        delete_emptydir_data: filters.delete_emptydir_data,
        pod_selector: typed.pod_selector.clone(),
        skip_wait_for_delete_timeout_seconds: filters.skip_wait_for_delete_timeout.as_secs(),
        eviction_timeout_milliseconds: millis(typed.eviction_timeout),
        grace_period_seconds: typed.grace_seconds,
        returning_pod_evictions: typed.returning_pod_evictions,
        local_data: match typed.local_data {
            None | Some(LocalData::Unread) => None,
            Some(LocalData::Warn) => Some(LocalDataJson::Warn),
            Some(LocalData::Refuse) => Some(LocalDataJson::Refuse),
        },
        timeout_milliseconds: typed.timeout.map(millis),
    })
}

/// Parses the annotation. Whether the driver permits the flags is checked later.
pub(crate) fn read(text: &str) -> Result<RequestedSettings, String> {
    let wrong = |why: String| format!("annotation {FLAGS_ANNOTATION}: {why}");
    if text.len() > LONGEST {
        return Err(wrong(format!(
            "{} bytes are more than the {LONGEST} that are read",
            text.len()
        )));
    }
    let wire: HandoverFlagsJson = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let times = [
        (
            "skipWaitForDeleteTimeoutSeconds",
            Some(wire.skip_wait_for_delete_timeout_seconds),
        ),
        (
            "evictionTimeoutMilliseconds",
            Some(wire.eviction_timeout_milliseconds / 1000),
        ),
        ("gracePeriodSeconds", wire.grace_period_seconds),
        (
            "timeoutMilliseconds",
            wire.timeout_milliseconds.map(|millis| millis / 1000),
        ),
    ];
    for (field, seconds) in times {
        if seconds.is_some_and(|seconds| seconds > LONGEST_SECONDS) {
            return Err(wrong(format!("{field} must not be more than a year")));
        }
    }
    if wire.eviction_timeout_milliseconds == 0 || wire.timeout_milliseconds == Some(0) {
        return Err(wrong("a time limit of 0 leaves no time".to_owned()));
    }
    if wire
        .returning_pod_evictions
        .is_some_and(|times| !RETURNS.contains(&times))
    {
        return Err(wrong("returningPodEvictions must be from 1 to 100".to_owned()));
    }
    let pod_selector = label_selector::parse(&wire.pod_selector).ok_or_else(|| {
        wrong(format!(
            "podSelector `{}` is an invalid label selector",
            wire.pod_selector
        ))
    })?;
    Ok(RequestedSettings {
        filters: Filters {
            force: wire.force,
            ignore_daemonsets: wire.ignore_daemonsets,
            delete_emptydir_data: wire.delete_emptydir_data,
            skip_wait_for_delete_timeout: Duration::from_secs(wire.skip_wait_for_delete_timeout_seconds),
            pod_selector,
            // The right to make a LifecycleEvent is no right to delete pods past their budgets.
            disable_eviction: false,
            only_pods: None,
        },
        grace_seconds: wire.grace_period_seconds,
        grace_only_longer: false,
        returning_pod_evictions: wire.returning_pod_evictions,
        local_data: wire.local_data.map(|word| match word {
            LocalDataJson::Warn => LocalData::Warn,
            LocalDataJson::Refuse => LocalData::Refuse,
        }),
        eviction_timeout: Duration::from_millis(wire.eviction_timeout_milliseconds),
        timeout: wire.timeout_milliseconds.map(Duration::from_millis),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed() -> HandoverFlags {
        HandoverFlags {
            filters: Filters {
                force: true,
                ignore_daemonsets: false,
                delete_emptydir_data: false,
                skip_wait_for_delete_timeout: Duration::from_secs(7),
                pod_selector: label_selector::parse("app=web,tier!=db").unwrap(),
                disable_eviction: false,
                only_pods: None,
            },
            pod_selector: "app=web,tier!=db".to_owned(),
            grace_seconds: Some(0),
            returning_pod_evictions: Some(3),
            local_data: Some(LocalData::Refuse),
            eviction_timeout: Duration::from_millis(1500),
            timeout: Some(Duration::from_secs(90)),
        }
    }

    #[test]
    fn a_written_value_survives_a_round_trip() {
        let flags = read(&write(&typed()).unwrap()).unwrap();
        assert_eq!(flags.filters, typed().filters);
        assert_eq!(
            (
                flags.grace_seconds,
                flags.returning_pod_evictions,
                flags.local_data
            ),
            (Some(0), Some(3), Some(LocalData::Refuse))
        );
        assert_eq!(flags.eviction_timeout, Duration::from_millis(1500));
        assert_eq!(flags.timeout, Some(Duration::from_secs(90)));
        let endless = HandoverFlags {
            timeout: None,
            grace_seconds: None,
            returning_pod_evictions: None,
            local_data: None,
            ..typed()
        };
        let written = write(&endless).unwrap();
        assert!(
            !written.contains("returning") && !written.contains("localData"),
            "older drivers read it as well"
        );
        let flags = read(&write(&endless).unwrap()).unwrap();
        assert_eq!((flags.timeout, flags.grace_seconds), (None, None));
    }

    #[test]
    fn nothing_is_made_up_and_nothing_is_believed() {
        let good: serde_json::Value = serde_json::from_str(&write(&typed()).unwrap()).unwrap();
        let with = |field: &str, value: serde_json::Value| {
            let mut object = good.clone();
            object[field] = value;
            read(&object.to_string())
        };
        assert!(with("force", false.into()).is_ok());
        for (field, value, word) in [
            ("disableEviction", true.into(), "unknown field"),
            ("force", "yes".into(), "invalid type"),
            ("podSelector", "a b c".into(), "is an invalid label selector"),
            ("podSelector", "x".repeat(5000).into(), "bytes are more than"),
            ("timeoutMilliseconds", 0.into(), "leaves no time"),
            ("timeoutMilliseconds", u64::MAX.into(), "more than a year"),
            ("gracePeriodSeconds", (-1).into(), "invalid value"),
            ("gracePeriodSeconds", u64::MAX.into(), "more than a year"),
            ("returningPodEvictions", 0.into(), "from 1 to 100"),
            ("returningPodEvictions", 101.into(), "from 1 to 100"),
            ("localData", "ignore".into(), "unknown variant"),
        ] {
            let problem = with(field, value).unwrap_err();
            assert!(
                problem.contains(word) && problem.contains(FLAGS_ANNOTATION),
                "{problem}"
            );
        }
        assert!(read("{}").unwrap_err().contains("missing field"));
        assert!(read("").is_err());
    }
}
