//! What the flags of a handed-over drain may change: they may narrow the driver's configuration, and widen it only where
//! `drain.allow-overrides` lists them. The right to create a LifecycleEvent is not the right to change that configuration.

use std::time::Duration;

use crate::manager::drain_settings::DrainSettings;
use scupper_config::Override;
use scupper_engine::LocalData;
use scupper_triggers::RequestedSettings;

/// The flags as the driver obeys them.
///
/// `--pod-selector` and `--skip-wait-for-delete-timeout` only exclude pods, so they are always permitted. So is the number
/// of times that a returning pod is evicted: each eviction respects its budget. Where a flag is absent, the driver's
/// configuration applies. A timeout beyond the driver's own limit is not refused: the limit ends the drain, as it does
/// where a kubelet claims the event.
///
/// # Errors
/// The flags that widen without permission, and what to do.
pub(crate) fn permit(flags: RequestedSettings, own: &DrainSettings) -> Result<RequestedSettings, String> {
    let allows = |flag| own.allowed.contains(&flag);
    let refused: Vec<_> = widening(&flags, own)
        .into_iter()
        .filter(|widening| !allows(widening.flag))
        .collect();
    if !refused.is_empty() {
        return Err(refusal(&refused));
    }
    let beyond = |timeout: &Duration| own.sla.is_some_and(|sla| *timeout > sla);
    let timeout = flags
        .timeout
        .filter(|timeout| allows(Override::Timeout) || !beyond(timeout));
    let is_given = flags.grace_seconds.is_some();
    Ok(RequestedSettings {
        grace_seconds: flags.grace_seconds.or(own.settings.grace_seconds),
        // Against the pods' own grace periods the plan compares, pod by pod.
        grace_only_longer: is_given && own.settings.grace_seconds.is_none() && !allows(Override::GracePeriod),
        timeout,
        ..flags
    })
}

/// A flag that widens what the driver would do.
struct WideningFlag {
    flag: Override,
    given: String,
    own: String,
}

fn widening(flags: &RequestedSettings, own: &DrainSettings) -> Vec<WideningFlag> {
    let (wanted, usual) = (&flags.filters, &own.settings.filters);
    let switches = [
        (Override::Force, wanted.force, usual.force),
        (
            Override::DeleteEmptydirData,
            wanted.delete_emptydir_data,
            usual.delete_emptydir_data,
        ),
        (
            Override::IgnoreDaemonsets,
            wanted.ignore_daemonsets,
            usual.ignore_daemonsets,
        ),
    ];
    let switched = switches
        .into_iter()
        .filter(|(_, wanted, usual)| *wanted && !usual);
    let switched = switched.map(|(flag, ..)| WideningFlag {
        flag,
        given: format!("--{}", flag.name()),
        own: format!("{}: false", flag.name()),
    });
    let shorter = flags.grace_seconds.zip(own.settings.grace_seconds);
    let shorter = shorter.filter(|(wanted, usual)| wanted < usual);
    let shorter = shorter.map(|(wanted, usual)| WideningFlag {
        flag: Override::GracePeriod,
        given: format!("--grace-period={wanted}"),
        own: format!("grace-period: {usual}"),
    });
    let usual_refuses = own.settings.local_data == LocalData::Refuse;
    let leaves_data = flags
        .local_data
        .filter(|wanted| usual_refuses && *wanted != LocalData::Refuse);
    let leaves_data = leaves_data.map(|_| WideningFlag {
        flag: Override::LocalData,
        given: "--local-data=warn".to_owned(),
        own: "local-data: refuse".to_owned(),
    });
    switched.chain(shorter).chain(leaves_data).collect()
}

fn refusal(refused: &[WideningFlag]) -> String {
    let listed = |word: fn(&WideningFlag) -> &str| refused.iter().map(word).collect::<Vec<_>>().join(", ");
    format!(
        "the driver's configuration does not allow {}: it has {} under drain, and drain.allow-overrides does not list \
         {}. Leave the flag out, let the operator list it there, or drain from your terminal with --local",
        listed(|widening| &widening.given),
        listed(|widening| &widening.own),
        listed(|widening| widening.flag.name()),
    )
}

#[cfg(test)]
mod tests {
    use scupper_engine::{Filters, Settings};

    use super::*;

    fn flags() -> RequestedSettings {
        RequestedSettings {
            filters: Filters {
                ignore_daemonsets: false,
                delete_emptydir_data: false,
                ..Filters::default()
            },
            grace_seconds: None,
            grace_only_longer: false,
            returning_pod_evictions: None,
            local_data: None,
            eviction_timeout: Duration::from_secs(30),
            timeout: None,
        }
    }

    fn own(grace_seconds: Option<u64>, allowed: &[Override]) -> DrainSettings {
        DrainSettings {
            settings: Settings {
                filters: Filters {
                    ignore_daemonsets: false,
                    delete_emptydir_data: false,
                    ..Filters::default()
                },
                grace_seconds,
                local_data: LocalData::Refuse,
                ..Settings::default()
            },
            eviction_timeout: Duration::from_secs(30),
            sla: Some(Duration::from_secs(300)),
            allowed: allowed.to_vec(),
        }
    }

    #[test]
    fn a_flag_that_widens_is_refused_by_its_name_unless_it_is_listed() {
        type Set = fn(&mut RequestedSettings);
        let cases: [(Set, &str, &str, Override); 5] = [
            (
                |flags| flags.filters.force = true,
                "--force",
                "force: false",
                Override::Force,
            ),
            (
                |flags| flags.filters.delete_emptydir_data = true,
                "--delete-emptydir-data",
                "delete-emptydir-data: false",
                Override::DeleteEmptydirData,
            ),
            (
                |flags| flags.filters.ignore_daemonsets = true,
                "--ignore-daemonsets",
                "ignore-daemonsets: false",
                Override::IgnoreDaemonsets,
            ),
            (
                |flags| flags.grace_seconds = Some(0),
                "--grace-period=0",
                "grace-period: 30",
                Override::GracePeriod,
            ),
            (
                |flags| flags.local_data = Some(LocalData::Warn),
                "--local-data=warn",
                "local-data: refuse",
                Override::LocalData,
            ),
        ];
        for (set, flag, setting, listed) in cases {
            let mut given = flags();
            set(&mut given);
            let problem = permit(given.clone(), &own(Some(30), &[])).unwrap_err();
            for words in [flag, setting, "drain.allow-overrides", "--local"] {
                assert!(problem.contains(words), "{words}: {problem}");
            }
            let others: Vec<_> = Override::ALL.into_iter().filter(|it| *it != listed).collect();
            assert!(permit(given.clone(), &own(Some(30), &others)).is_err(), "{flag}");
            let permitted = permit(given.clone(), &own(Some(30), &[listed])).unwrap();
            assert_eq!(permitted.filters, given.filters, "{flag}");
            assert_eq!(permitted.local_data, given.local_data, "{flag}");
            assert_eq!(
                permitted.grace_seconds,
                given.grace_seconds.or(Some(30)),
                "{flag}"
            );
        }
    }

    #[test]
    fn a_grace_period_that_was_not_given_is_the_drivers() {
        let permitted = permit(flags(), &own(Some(60), &[])).unwrap();
        assert_eq!(
            (permitted.grace_seconds, permitted.grace_only_longer),
            (Some(60), false)
        );
        let permitted = permit(flags(), &own(None, &[])).unwrap();
        assert_eq!(
            (permitted.grace_seconds, permitted.grace_only_longer),
            (None, false)
        );
    }

    #[test]
    fn a_grace_period_is_compared_with_each_pods_own_where_the_driver_has_none() {
        let given = RequestedSettings {
            grace_seconds: Some(5),
            ..flags()
        };
        let only_longer = |allowed: &[Override]| {
            let permitted = permit(given.clone(), &own(None, allowed)).unwrap();
            assert_eq!(permitted.grace_seconds, Some(5));
            permitted.grace_only_longer
        };
        assert!(only_longer(&[]));
        assert!(!only_longer(&[Override::GracePeriod]));
    }

    #[test]
    fn a_timeout_counts_up_to_the_drivers_limit() {
        let timeout = |seconds: u64, own: &DrainSettings| {
            let given = RequestedSettings {
                timeout: Some(Duration::from_secs(seconds)),
                ..flags()
            };
            permit(given, own)
                .unwrap()
                .timeout
                .map(|timeout| timeout.as_secs())
        };
        let limited = own(None, &[]);
        assert_eq!(timeout(300, &limited), Some(300));
        assert_eq!(timeout(301, &limited), None, "its transition's counts");
        assert_eq!(timeout(7200, &own(None, &[Override::Timeout])), Some(7200));
        let endless = DrainSettings { sla: None, ..limited };
        assert_eq!(timeout(7200, &endless), Some(7200), "every limit narrows");
    }
}
