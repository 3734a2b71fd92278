//! The table of settings, in the order of the flags in the help.

use std::time::Duration;

use scupper_common::label_selector;
use scupper_engine::{HumanDuration, LocalData};

use super::request::OVERRIDES;
use super::{DrainSettings, Flag, RequestRule, Setting, at_deadline, put, surge, volumes};
use crate::document::Node;
use crate::rules;
use crate::shape::{Field, Shape};

pub(super) const DAY_MS: u64 = 24 * 3600 * 1000;
/// Longer than any drain runs.
const YEAR_SECONDS: i64 = 366 * 24 * 3600;

const WARN_OR_REFUSE: Shape = Shape::OneOf(&["warn", "refuse"]);

/// In no file, without a flag, and of no effect: a row says what is different.
const PLAIN: Setting = Setting {
    field: Field::new("", Shape::Bool, ""),
    driver_flag: None,
    command_flag: None,
    kubectl_default: None,
    sends_default: true,
    request: RequestRule::Refused,
    check: |_, _, _| {},
    set: |_, _| {},
};

/// All of them.
pub static SETTINGS: &[Setting] = &[
    Setting {
        field: Field::new(
            "force",
            Shape::Bool,
            "Also evict pods without a controller. Default false.",
        ),
        driver_flag: Some(Flag::new(
            "force",
            "BOOL",
            "Evict pods without a controller [default: false]",
        )),
        command_flag: Some(Flag::main(
            "force",
            "BOOL",
            "Evict pods without a controller, and those whose DaemonSet is gone [default: false]",
        )),
        kubectl_default: Some("false"),
        request: RequestRule::Narrows(|own, wanted| {
            switched_on(own.engine.filters.force, wanted.engine.filters.force)
        }),
        set: |drain, value| put(&mut drain.engine.filters.force, value.boolean()),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "ignore-daemonsets",
            Shape::Bool,
            "Keep DaemonSet pods instead of refusing the drain. Default true.",
        ),
        driver_flag: Some(Flag::new(
            "ignore-daemonsets",
            "BOOL",
            "Keep DaemonSet pods; false: refuse to drain a node that has some [default: true]",
        )),
        command_flag: Some(Flag::main(
            "ignore-daemonsets",
            "BOOL",
            "Keep DaemonSet pods; false: refuse such nodes. A driver has its own default [default: false]",
        )),
        kubectl_default: Some("false"),
        sends_default: false,
        request: RequestRule::Narrows(|own, wanted| {
            let (own, wanted) = (&own.engine.filters, &wanted.engine.filters);
            switched_on(own.ignore_daemonsets, wanted.ignore_daemonsets)
        }),
        set: |drain, value| put(&mut drain.engine.filters.ignore_daemonsets, value.boolean()),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "delete-emptydir-data",
            Shape::Bool,
            "Also evict pods with an emptyDir volume; its contents are lost. Default true.",
        ),
        driver_flag: Some(Flag::new(
            "delete-emptydir-data",
            "BOOL",
            "Evict pods with emptyDir volumes; their data is lost [default: true]",
        )),
        command_flag: Some(Flag::main(
            "delete-emptydir-data",
            "BOOL",
            "Evict pods with emptyDir volumes; their data is lost [default: false]",
        )),
        kubectl_default: Some("false"),
        request: RequestRule::Narrows(|own, wanted| {
            let (own, wanted) = (&own.engine.filters, &wanted.engine.filters);
            switched_on(own.delete_emptydir_data, wanted.delete_emptydir_data)
        }),
        set: |drain, value| put(&mut drain.engine.filters.delete_emptydir_data, value.boolean()),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "grace-period",
            Shape::Whole {
                least: -1,
                most: 30 * 24 * 3600,
            },
            "Overrides the pods' own grace period, in seconds; -1: their own. Default -1.",
        ),
        driver_flag: Some(GRACE_PERIOD),
        command_flag: Some(Flag {
            is_main: true,
            ..GRACE_PERIOD
        }),
        request: RequestRule::Narrows(|own, wanted| {
            let own = own.engine.grace_seconds?;
            let wanted = wanted.engine.grace_seconds?;
            (wanted < own).then(|| own.to_string())
        }),
        set: |drain, value| {
            let seconds = value.whole().and_then(|seconds| u64::try_from(seconds).ok());
            drain.engine.grace_seconds = seconds;
        },
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "sla",
            Shape::Duration {
                least_ms: 0,
                most_ms: 30 * DAY_MS,
            },
            "Time limit of a drain, counted from the kubelet's claim; 0: no limit. Default 0.",
        ),
        driver_flag: Some(Flag::main(
            "sla",
            "DURATION",
            "Limit for a drain, from the claim on; 0: none [default: 0]",
        )),
        command_flag: Some(Flag::main(
            "timeout",
            "DURATION",
            "Limit per node; 0: none, or the driver's [default: 0]",
        )),
        // The driver's own limit ends the drain all the same.
        request: RequestRule::Accepted,
        set: |drain, value| drain.time_limit = value.duration().filter(|limit| !limit.is_zero()),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "on-failure",
            Shape::OneOf(&["keep", "rollback"]),
            "Whether a drain that fails, passes its deadline or is lost keeps its own cordon. The changes of policies \
             follow the cordon: keep leaves both until an uncordon, rollback reverts both at once. Default keep.",
        ),
        driver_flag: Some(Flag::main(
            "on-failure",
            "keep|rollback",
            "Scupper's cordon after a failed, late or lost drain: keep or rollback [default: keep]",
        )),
        set: |drain, value| drain.engine.uncordon_on_failure = value.text() == Some("rollback"),
        ..PLAIN
    },
    Setting {
        field: Field::new("pod-selector", Shape::Text(&rules::LABEL_SELECTOR), ""),
        command_flag: Some(Flag {
            wrong: Some("--pod-selector=<pod_selector> must be a valid label selector"),
            ..Flag::new(
                "pod-selector",
                "SELECTOR",
                "Label selector of pods to evict; the others stay [default: all pods]",
            )
        }),
        kubectl_default: Some(""),
        request: RequestRule::Accepted,
        set: |drain, value| {
            let selector = value.text().and_then(label_selector::parse);
            put(&mut drain.engine.filters.pod_selector, selector);
        },
        ..PLAIN
    },
    Setting {
        field: Field::new("disable-eviction", Shape::Bool, ""),
        // The right to make a request is no right to delete pods past their budgets.
        command_flag: Some(Flag::new(
            "disable-eviction",
            "BOOL",
            "Delete pods instead of evicting them, which ignores disruption budgets [default: false]",
        )),
        set: |drain, value| put(&mut drain.engine.filters.disable_eviction, value.boolean()),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "skip-wait-for-delete-timeout",
            Shape::Whole {
                least: -1,
                most: YEAR_SECONDS,
            },
            "",
        ),
        command_flag: Some(Flag::new(
            "skip-wait-for-delete-timeout",
            "SECONDS",
            "Do not wait for pods that have been terminating for longer than this; 0: wait for all \
             [default: 0]",
        )),
        kubectl_default: Some("0"),
        request: RequestRule::Accepted,
        set: |drain, value| {
            let seconds = value.whole().and_then(|seconds| u64::try_from(seconds).ok());
            let timeout = Duration::from_secs(seconds.unwrap_or_default());
            drain.engine.filters.skip_wait_for_delete_timeout = timeout;
        },
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "chunk-size",
            Shape::Whole {
                least: 0,
                most: i64::MAX,
            },
            "",
        ),
        command_flag: Some(Flag::new(
            "chunk-size",
            "NUMBER",
            "Number of objects in one page of a list; 0: all [default: 500]",
        )),
        request: RequestRule::NotSent,
        set: |drain, value| {
            let size = value.whole().map(|size| u32::try_from(size).unwrap_or(u32::MAX));
            put(&mut drain.page_size, size);
        },
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "returning-pod-evictions",
            Shape::Whole { least: 1, most: 100 },
            "How often to evict pods of one controller that return to the cordoned node, for example because they \
             tolerate the cordon; after that they are kept, and the drain ends without them and names them. Default \
             1, as for kubectl drain.",
        ),
        driver_flag: Some(RETURNING_POD_EVICTIONS),
        command_flag: Some(RETURNING_POD_EVICTIONS),
        request: RequestRule::Narrows(|own, wanted| {
            let own = own.engine.returning_pod_evictions;
            (wanted.engine.returning_pod_evictions > own).then(|| own.to_string())
        }),
        set: |drain, value| {
            let times = value.whole().and_then(|times| u32::try_from(times).ok());
            put(&mut drain.engine.returning_pod_evictions, times);
        },
        ..PLAIN
    },
    Setting {
        field: Field::new("node-is-off", Shape::Bool, ""),
        command_flag: Some(Flag::new(
            "node-is-off",
            "",
            "The machine is off: taint the node as out of service and delete its pods without asking budgets; \
             Kubernetes then detaches their volumes. Implies --local. Use it only if the machine is certainly off: \
             otherwise two nodes may write to one volume and destroy its data",
        )),
        set: |drain, value| put(&mut drain.engine.machine_is_off, value.boolean()),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "local-data",
            WARN_OR_REFUSE,
            "What a drain does if a pod that is to leave has volumes that only this node can use, such as local \
             PersistentVolumes: warn reports each pod with its claims and drains, refuse ends the drain before anything \
             changes. A drain that lacks the rights of deploy/components/local-data reports that; it then begins with \
             warn and ends as Blocked with refuse. Default: drains do not read volumes; scupper plan and scupper doctor \
             --node do.",
        ),
        command_flag: Some(Flag::new(
            "local-data",
            "warn|refuse",
            "What to do about pods with volumes that only this node can use, such as local PersistentVolumes: warn \
             or refuse the drain [default: volumes are not read]",
        )),
        request: RequestRule::Narrows(|own, wanted| {
            let refuses = |drain: &DrainSettings| drain.engine.local_data == LocalData::Refuse;
            (refuses(own) && !refuses(wanted)).then(|| "refuse".to_owned())
        }),
        set: |drain, value| {
            drain.engine.local_data = match refuses(value) {
                true => LocalData::Refuse,
                false => LocalData::Warn,
            };
        },
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "eviction-timeout",
            Shape::Duration {
                least_ms: 1,
                most_ms: DAY_MS,
            },
            "Timeout of one eviction request, after which it is retried. Default 30s.",
        ),
        driver_flag: Some(EVICTION_TIMEOUT),
        command_flag: Some(EVICTION_TIMEOUT),
        kubectl_default: Some("30s"),
        request: RequestRule::Accepted,
        set: |drain, value| put(&mut drain.eviction_timeout, value.duration()),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "notify-before",
            Shape::Duration {
                least_ms: 0,
                most_ms: 7 * DAY_MS,
            },
            "How long before its first pod leaves each workload gets an Event that says so, for its owner. The node is \
             cordoned meanwhile. A drain whose deadline comes earlier is refused before anything changes. 0: no Event. \
             Default 0s.",
        ),
        driver_flag: Some(NOTIFY_BEFORE),
        command_flag: Some(NOTIFY_BEFORE),
        request: RequestRule::Narrows(|own, wanted| {
            let (own, wanted) = (own.engine.notify_before, wanted.engine.notify_before);
            (wanted < own).then(|| HumanDuration(own).to_string())
        }),
        set: |drain, value| put(&mut drain.engine.notify_before, value.duration()),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "forbidden-timeout",
            Shape::Duration {
                least_ms: 0,
                most_ms: DAY_MS,
            },
            "How long to retry while the API server refuses (401, 403) writes of the node, its lease or its \
             LifecycleEvents, or the removal of its pods, as it does for seconds after a restart; then the drain fails, \
             or continues without the lease. For pods it fails once the others have left, and with `at-deadline` not \
             before that. 0: no retry. Default 2m.",
        ),
        driver_flag: Some(FORBIDDEN_TIMEOUT),
        command_flag: Some(FORBIDDEN_TIMEOUT),
        set: |drain, value| put(&mut drain.engine.forbidden_timeout, value.duration()),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "pre-flight",
            WARN_OR_REFUSE,
            "What follows if it is certain that pods cannot leave as things stand, for example because their budget \
             blocks its pods even when all are healthy: warn reports it and drains, refuse ends the drain \
             before anything changes. The driver's account needs the rights to read namespaces and the owners of \
             pods to be certain. Default warn.",
        ),
        set: |drain, value| drain.engine.refuse_certain = refuses(value),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "wait-for-volumes",
            Shape::Object(&volumes::WAIT_FOR_VOLUMES),
            "After the last pod, waits until the node's VolumeAttachments are gone, before the after-drain hooks. It does \
             not wait for volumes of pods that stay. The driver's account needs the rights of \
             deploy/components/wait-for-volumes. Default: no wait.",
        ),
        set: |drain, value| drain.engine.wait_for_volumes = volumes::read(value),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "at-deadline",
            Shape::Object(&at_deadline::AT_DEADLINE),
            "Shortly before its deadline the drain deletes pods that remain, without asking their disruption budgets and \
             whatever their wave, with a short grace period. It bypasses no hook. A drain without a deadline deletes \
             nothing. The driver's account needs the right of deploy/components/pods/delete. Default: the drain deletes \
             nothing early.",
        ),
        check: at_deadline::check,
        set: |drain, value| drain.engine.at_deadline = at_deadline::read(value),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "surge",
            Shape::Object(&surge::SURGE),
            "If a budget never lets the pods of a Deployment go, for example because it needs the only replica, the drain \
             surges the Deployment: it has Kubernetes create replacements on other nodes before the pods leave. The plan \
             names the Deployments. The driver's account needs the rights of deploy/components/surge (with `method: \
             scale`, of surge-scale instead), facts/namespaces and facts/owners. Default: drains surge nothing.",
        ),
        check: surge::check,
        set: |drain, value| drain.engine.surge = surge::read(value),
        ..PLAIN
    },
    Setting {
        field: Field::new(
            "allow-overrides",
            Shape::List {
                of: &Shape::OneOf(OVERRIDES),
                most: OVERRIDES.len(),
            },
            "Flags of `scupper drain` that the driver accepts although they allow more than this file. Anyone with \
             permission to create LifecycleEvents can set them. Flags that allow less are always accepted: a longer \
             grace period, a shorter timeout, a pod selector. With a shorter timeout, `at-deadline` deletes nothing unless \
             it is listed here. Default: none.",
        ),
        set: |drain, value| drain.allowed_overrides = value.texts(),
        ..PLAIN
    },
];

const GRACE_PERIOD: Flag = Flag::new(
    "grace-period",
    "SECONDS",
    "Grace period of the pods in seconds; negative: their own [default: -1]",
);

const RETURNING_POD_EVICTIONS: Flag = Flag::new(
    "returning-pod-evictions",
    "TIMES",
    "How often, from 1 to 100, to evict pods of one controller that return to the cordoned node, before they stay \
     [default: 1]",
);

const EVICTION_TIMEOUT: Flag = Flag::new(
    "eviction-timeout",
    "DURATION",
    "Limit for one eviction request before it is sent again [default: 30s]",
);

const NOTIFY_BEFORE: Flag = Flag::new(
    "notify-before",
    "DURATION",
    "How long before its first pod leaves a workload gets an Event about it [default: 0s]",
);

const FORBIDDEN_TIMEOUT: Flag = Flag::new(
    "forbidden-timeout",
    "DURATION",
    "How long the API server may refuse (401, 403) writes of the node, or the removal of its pods, before the drain \
     fails [default: 2m]",
);

fn refuses(value: &Node) -> bool {
    value.text() == Some("refuse")
}

/// The driver's value of a switch that a request turns on.
fn switched_on(own: bool, wanted: bool) -> Option<String> {
    (wanted && !own).then(|| "false".to_owned())
}
