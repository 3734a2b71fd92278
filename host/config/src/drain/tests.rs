//! The table agrees with itself; flags, requests and what the operator allows.

use std::time::Duration;

use scupper_engine::{Filters, LocalData};

use super::request::OVERRIDES;
use super::*;
use scupper_common::label_selector;

fn setting(name: &str) -> &'static Setting {
    let mut settings = SETTINGS.iter();
    settings.find(|setting| setting.name() == name).unwrap()
}

/// What these flags of a command give.
fn typed(flags: &[(&str, &str)]) -> GivenSettings {
    let mut given = GivenSettings::default();
    for (name, text) in flags {
        let setting = setting(name);
        let flag = setting.command_flag.as_ref().unwrap();
        given.add_flag(setting, flag, text).unwrap();
    }
    given
}

/// A request with these flags, and kubectl's defaults.
fn request(flags: &[(&str, &str)]) -> RequestFlags {
    read_request(&typed(flags).to_request()).unwrap()
}

#[test]
fn names_and_flags_are_unique() {
    let mut names: Vec<_> = SETTINGS.iter().map(Setting::name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SETTINGS.len());
}

#[test]
fn a_help_text_states_the_default() {
    let driver = DrainSettings::default();
    for setting in SETTINGS {
        for flag in [&setting.driver_flag, &setting.command_flag]
            .into_iter()
            .flatten()
        {
            let is_switch = flag.value.is_empty();
            assert!(is_switch || flag.help.contains("[default: "), "{}", flag.name);
        }
        let default = setting.kubectl_default.filter(|default| !default.is_empty());
        if let Some((flag, default)) = setting.command_flag.as_ref().zip(default) {
            let stated = format!("[default: {default}]");
            assert!(flag.help.ends_with(&stated), "{}", flag.help);
        }
        // A default that the file's text states changes nothing.
        let stated = setting
            .field
            .doc
            .rsplit_once("Default ")
            .map(|(_, stated)| stated);
        let stated = stated.map(|stated| stated.split([',', '.']).next().unwrap());
        if let Some(stated) = stated.filter(|_| !matches!(setting.field.shape, Shape::Object(_))) {
            let mut given = driver.clone();
            (setting.set)(&mut given, &setting.typed(stated).unwrap());
            assert_eq!(given.engine, driver.engine, "{}", setting.name());
            assert_eq!(given.time_limit, driver.time_limit);
            assert_eq!(given.eviction_timeout, driver.eviction_timeout);
        }
    }
}

#[test]
fn what_a_request_may_widen_can_be_listed() {
    for setting in SETTINGS {
        if let RequestRule::Narrows(_) = setting.request {
            assert!(OVERRIDES.contains(&setting.name()), "{}", setting.name());
        }
    }
    for name in OVERRIDES {
        let known = SETTINGS.iter().any(|setting| {
            let flag = setting.command_flag.as_ref().map(|flag| flag.name);
            [Some(setting.name()), flag].contains(&Some(name))
        });
        assert!(known, "{name}");
    }
}

#[test]
fn flags_have_the_bounds_of_the_file_and_kubectls_defaults() {
    let kubectl = DrainSettings::default().with(&GivenSettings::of_kubectl());
    let filters = Filters {
        ignore_daemonsets: false,
        delete_emptydir_data: false,
        ..Filters::default()
    };
    assert_eq!(kubectl.engine.filters, filters);
    assert_eq!((kubectl.time_limit, kubectl.page_size), (None, 500));
    let given = typed(&[
        ("sla", "90s"),
        ("grace-period", "-5"),
        ("skip-wait-for-delete-timeout", "-3"),
    ]);
    let drain = kubectl.clone().with(&given);
    assert_eq!(drain.time_limit, Some(Duration::from_secs(90)));
    assert_eq!(drain.engine.grace_seconds, None, "as for kubectl");
    assert_eq!(drain.engine.filters.skip_wait_for_delete_timeout, Duration::ZERO);
    for (name, text, problem) in [
        (
            "sla",
            "soon",
            "--timeout soon: must be a duration such as 90s, 30m or 1h30m",
        ),
        (
            "sla",
            "721h",
            "--timeout 721h: must be a duration such as 90s, 30m or 1h30m, from 0 to 720h",
        ),
        (
            "eviction-timeout",
            "0",
            "--eviction-timeout 0: must be a duration",
        ),
        (
            "grace-period",
            "2592001",
            "--grace-period 2592001: must be a whole number from -1 to 2592000",
        ),
        ("chunk-size", "-1", "--chunk-size -1: must be 0 or more"),
        (
            "pod-selector",
            "a=b=c",
            "--pod-selector=<pod_selector> must be a valid label selector",
        ),
    ] {
        let setting = setting(name);
        let mut given = GivenSettings::default();
        let wrong = given.add_flag(setting, setting.command_flag.as_ref().unwrap(), text);
        let wrong = wrong.unwrap_err();
        assert!(wrong.starts_with(problem), "{wrong}");
        assert!(!given.has(name));
    }
}

#[test]
fn a_request_carries_what_was_typed_and_the_commands_own_defaults() {
    assert_eq!(
        typed(&[]).to_request(),
        r#"{"delete-emptydir-data":"false","eviction-timeout":"30s","force":"false","pod-selector":"","skip-wait-for-delete-timeout":"0"}"#
    );
    let flags = [
        ("force", "true"),
        ("skip-wait-for-delete-timeout", "7"),
        ("pod-selector", "app=web,tier!=db"),
        ("grace-period", "1"),
        ("returning-pod-evictions", "3"),
        ("local-data", "refuse"),
        ("eviction-timeout", "1500ms"),
        ("sla", "90s"),
    ];
    let flags = request(&flags);
    let own = DrainSettings {
        allowed_overrides: OVERRIDES.iter().map(|&name| name.to_owned()).collect(),
        ..DrainSettings::default()
    };
    assert_eq!(own.permit(&flags), Ok(Some(Duration::from_secs(90))));
    let drain = own.clone().with_request(&flags);
    let filters = Filters {
        force: true,
        ignore_daemonsets: true,
        delete_emptydir_data: false,
        skip_wait_for_delete_timeout: Duration::from_secs(7),
        pod_selector: label_selector::parse("app=web,tier!=db").unwrap(),
        ..Filters::default()
    };
    assert_eq!(drain.engine.filters, filters);
    assert_eq!(
        (
            drain.engine.grace_seconds,
            drain.engine.returning_pod_evictions,
            drain.engine.local_data
        ),
        (Some(1), 3, LocalData::Refuse)
    );
    assert_eq!(drain.eviction_timeout, Duration::from_millis(1500));
    assert_eq!(drain.time_limit, own.time_limit, "the driver's own");
}

/// What is planned for a drain that is handed over must be what the driver makes of the request.
#[test]
fn the_defaults_of_requests_are_those_that_a_driver_obeys() {
    let planned = DrainSettings::default().with(&GivenSettings::of_requests());
    let drained = DrainSettings::default().with_request(&request(&[]));
    assert_eq!(planned.engine, drained.engine);
    assert!(planned.engine.filters.ignore_daemonsets && !planned.engine.filters.delete_emptydir_data);
}

#[test]
fn flags_that_only_a_terminal_obeys_are_in_no_request() {
    for (flag, text) in [
        ("disable-eviction", "true"),
        ("forbidden-timeout", "5s"),
        ("node-is-off", "true"),
    ] {
        let given = typed(&[(flag, text)]);
        assert_eq!(given.only_local(), Some(format!("--{flag}")));
        assert_eq!(given.to_request(), typed(&[]).to_request());
    }
    assert_eq!(
        typed(&[("disable-eviction", "false"), ("chunk-size", "7")]).only_local(),
        None
    );
}

#[test]
fn nothing_is_made_up_and_nothing_is_believed() {
    let with = |name: &str, text: &str| {
        let mut flags = request(&[]);
        flags.insert(name.to_owned(), text.to_owned());
        read_request(&serde_json::json!(flags).to_string())
    };
    assert!(with("force", "false").is_ok());
    let long = "x".repeat(5000);
    for (name, text, words) in [
        ("disable-eviction", "true", "unknown flag disable-eviction"),
        ("on-failure", "rollback", "unknown flag"),
        ("surge", "true", "unknown flag"),
        ("\u{1b}[2J", "true", "unknown flag \\u{1b}[2J"),
        ("force", "yes", "force must be true or false, not `yes`"),
        ("force", "", "force must be true or false, and there is no value"),
        (
            "pod-selector",
            "a b c",
            "pod-selector must be a valid label selector",
        ),
        ("pod-selector", &long, "bytes are more than"),
        (
            "timeout",
            "18446744073709551615ms",
            "timeout must be a duration such as 90s, 30m or 1h30m, from 0 to 720h",
        ),
        ("eviction-timeout", "0", "from 1ms to 24h, not `0`"),
        ("grace-period", "18446744073709551615", "from -1 to 2592000"),
        ("returning-pod-evictions", "0", "from 1 to 100"),
        ("returning-pod-evictions", "101", "from 1 to 100"),
        (
            "local-data",
            "ignore",
            "local-data must be warn or refuse, not `ignore`",
        ),
    ] {
        let problem = with(name, text).unwrap_err();
        assert!(problem.contains(words), "{problem}");
    }
    assert!(
        read_request(r#"{"force": true}"#)
            .unwrap_err()
            .contains("invalid type")
    );
    assert_eq!(read_request("{}"), Err("missing flag force".to_owned()));
    assert!(read_request("").is_err());
}

/// A driver that widens nothing by itself.
fn own(grace_seconds: Option<u64>, allowed: &[&str]) -> DrainSettings {
    let mut own = DrainSettings {
        allowed_overrides: allowed.iter().map(|&name| name.to_owned()).collect(),
        ..DrainSettings::default()
    };
    own.engine.filters.ignore_daemonsets = false;
    own.engine.filters.delete_emptydir_data = false;
    own.engine.grace_seconds = grace_seconds;
    own.engine.local_data = LocalData::Refuse;
    own
}

#[test]
fn a_flag_that_widens_is_refused_by_its_name_unless_it_is_listed() {
    for (name, text, flag, key) in [
        ("force", "true", "--force", "force: false"),
        (
            "delete-emptydir-data",
            "true",
            "--delete-emptydir-data",
            "delete-emptydir-data: false",
        ),
        (
            "ignore-daemonsets",
            "true",
            "--ignore-daemonsets",
            "ignore-daemonsets: false",
        ),
        ("grace-period", "1", "--grace-period=1", "grace-period: 30"),
        ("local-data", "warn", "--local-data=warn", "local-data: refuse"),
        (
            "returning-pod-evictions",
            "2",
            "--returning-pod-evictions=2",
            "returning-pod-evictions: 1",
        ),
    ] {
        let flags = request(&[(name, text)]);
        let problem = own(Some(30), &[]).permit(&flags).unwrap_err();
        assert_eq!(
            problem,
            format!(
                "the driver's configuration does not allow {flag}: it has {key} under drain, and drain.allow-overrides \
                 does not list {name}. Leave the flag out, let the operator list it there, or drain from your terminal \
                 with --local"
            )
        );
        let others: Vec<_> = OVERRIDES.iter().copied().filter(|it| *it != name).collect();
        assert!(own(Some(30), &others).permit(&flags).is_err(), "{flag}");
        let own = own(Some(30), &[name]);
        assert_eq!(own.permit(&flags), Ok(None), "{flag}");
        let (drain, wanted) = (
            own.clone().with_request(&flags),
            own.clone().with(&typed(&[(name, text)])),
        );
        assert_eq!(drain.engine, wanted.engine, "{flag}");
        assert_ne!(drain.engine, own.engine, "{flag}");
    }
}

#[test]
fn a_flag_that_narrows_is_always_accepted() {
    let own = DrainSettings {
        engine: Settings {
            grace_seconds: Some(30),
            filters: Filters {
                force: true,
                ..Filters::default()
            },
            ..Settings::default()
        },
        ..DrainSettings::default()
    };
    let flags = request(&[
        ("force", "false"),
        ("grace-period", "31"),
        ("local-data", "refuse"),
    ]);
    assert_eq!(own.permit(&flags), Ok(None));
    // DaemonSet pods stay as the driver is configured, unless the command says otherwise.
    let refusing = request(&[("ignore-daemonsets", "false")]);
    let ignores = |flags| own.clone().with_request(flags).engine.filters.ignore_daemonsets;
    assert_eq!((ignores(&flags), ignores(&refusing)), (true, false));
    let drain = own.with_request(&flags).engine;
    assert!(!drain.filters.force);
    assert_eq!(
        (drain.grace_seconds, drain.local_data),
        (Some(31), LocalData::Refuse)
    );
}

#[test]
fn a_grace_period_that_was_not_given_is_the_drivers() {
    for seconds in [Some(60), None] {
        for flags in [request(&[]), request(&[("grace-period", "-1")])] {
            let drain = own(seconds, &[]).with_request(&flags).engine;
            assert_eq!((drain.grace_seconds, drain.grace_only_longer), (seconds, false));
        }
    }
}

#[test]
fn a_grace_period_is_compared_with_each_pods_own_where_the_driver_has_none() {
    let flags = request(&[("grace-period", "5")]);
    for (allowed, only_longer) in [(&[][..], true), (&["grace-period"], false)] {
        let own = own(None, allowed);
        assert_eq!(own.permit(&flags), Ok(None));
        let drain = own.with_request(&flags).engine;
        assert_eq!(
            (drain.grace_seconds, drain.grace_only_longer),
            (Some(5), only_longer)
        );
    }
}

/// The admission policies of deploy/ would refuse each eviction.
#[test]
fn a_grace_period_of_zero_is_the_drivers_own_or_refused() {
    let flags = request(&[("grace-period", "0")]);
    for (seconds, allowed) in [(None, &[][..]), (None, OVERRIDES), (Some(30), OVERRIDES)] {
        let problem = own(seconds, allowed).permit(&flags).unwrap_err();
        assert_eq!(
            problem,
            "the driver evicts no pod with --grace-period=0, whatever drain.allow-overrides lists: that removes pods \
             from the API server while their containers may still run. Only a driver with grace-period: 0 under drain \
             does so. Give at least 1, or drain from your terminal with --local"
        );
    }
    assert_eq!(own(Some(0), &[]).permit(&flags), Ok(None));
}

#[test]
fn a_timeout_counts_up_to_the_drivers_limit() {
    let timeout = |seconds: u64, own: &DrainSettings| {
        let text = format!("{seconds}s");
        let permitted = own.permit(&request(&[("sla", &text)])).unwrap();
        permitted.map(|timeout| timeout.as_secs())
    };
    let limit = |own: DrainSettings| DrainSettings {
        time_limit: Some(Duration::from_secs(300)),
        ..own
    };
    let limited = limit(own(None, &[]));
    assert_eq!(timeout(300, &limited), Some(300));
    assert_eq!(timeout(301, &limited), None, "its transition's counts");
    assert_eq!(timeout(0, &limited), None, "its transition's counts");
    assert_eq!(timeout(7200, &own(None, &["timeout"])), Some(7200));
    assert_eq!(timeout(7200, &limit(own(None, &["timeout"]))), Some(7200));
    let endless = DrainSettings {
        time_limit: None,
        ..limited
    };
    assert_eq!(timeout(7200, &endless), Some(7200), "every limit narrows");
}

#[test]
fn a_shorter_timeout_deletes_nothing_at_its_end_unless_the_operator_says_so() {
    let at_deadline = "{at-deadline: {delete: {everything: true}, within: 60s}, sla: 5m}";
    let text = format!(
        "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\ndrain: {at_deadline}\n"
    );
    let read = crate::read_text("scupper.yaml".as_ref(), &text).unwrap();
    let own = DrainSettings::default().with(&read.drain);
    for (timeout, allowed, forces) in [
        (None, false, true),
        (Some("5m"), false, true),
        (Some("6m"), false, true),
        (Some("299s"), false, false),
        (Some("299s"), true, true),
    ] {
        let mut own = own.clone();
        own.allowed_overrides
            .extend(allowed.then(|| "at-deadline".to_owned()));
        let flags: Vec<_> = timeout.map(|timeout| ("sla", timeout)).into_iter().collect();
        let drain = own.with_request(&request(&flags)).engine;
        assert_eq!(drain.at_deadline.is_some(), forces, "{timeout:?}, {allowed}");
    }
}

#[test]
fn names_of_overrides_are_separated_by_commas() {
    let mut given = GivenSettings::default();
    given.allow_overrides(" force, timeout,").unwrap();
    let drain = DrainSettings::default().with(&given);
    assert_eq!(drain.allowed_overrides, ["force", "timeout"]);
    assert_eq!(
        given.allow_overrides("forces"),
        Err(format!(
            "--allow-overrides forces: unknown flag; known are {}",
            OVERRIDES.join(", ")
        ))
    );
}

#[test]
fn flags_can_be_written_into_a_file() {
    let given = typed(&[
        ("force", "true"),
        ("grace-period", "-7"),
        ("sla", "90s"),
        ("node-is-off", "true"),
    ]);
    let values = serde_json::json!({"force": true, "grace-period": -1, "sla": "90s"});
    assert_eq!(serde_json::Value::Object(given.file_values()), values);
}
