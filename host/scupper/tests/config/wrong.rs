//! Problems are reported with their line, their column, their field and the remedy.

use crate::{HEAD, problems, problems_of};

/// Exactly these problems, in the order of the file.
#[track_caller]
fn check(rest: &str, expected: &[&str]) {
    let reported: Vec<_> = problems(rest).iter().map(ToString::to_string).collect();
    assert_eq!(reported, expected, "\n{rest}");
}

const POLICY: &str = "policies:\n- name: slurm\n  module: slurm.wasm\n";

/// The same below a policy, which begins in line 6.
#[track_caller]
fn check_policy(rest: &str, expected: &[&str]) {
    check(&format!("{POLICY}{rest}"), expected);
}

#[test]
fn an_unknown_key_is_reported_with_a_suggestion() {
    check_policy(
        "  grants:\n    htp: []\n  confg: {}\n  onFailure: {}\n  node_selector: {}\n",
        &[
            "7:5: policies[0].grants.htp: no such key; did you mean http?",
            "8:3: policies[0].confg: no such key; did you mean config?",
            "9:3: policies[0].onFailure: no such key; did you mean on-failure?",
            "10:3: policies[0].node_selector: no such key; did you mean node-selector?",
        ],
    );
}

#[test]
fn an_unknown_key_that_belongs_elsewhere_or_nowhere() {
    check_policy(
        "  node-annotations: []\n  zebra: 1\n",
        &[
            "6:3: policies[0].node-annotations: no such key; it belongs under grants",
            "7:3: policies[0].zebra: no such key; there are name, module, sha256, config, grants, limits, on-failure, \
             node-selector, mode, instead-of",
        ],
    );
}

#[test]
fn a_key_that_is_missing() {
    check(
        "policies:\n- config: {}\n",
        &[
            "4:3: policies[0]: `name` is missing: the operator's name for the policy, used in plans, reports, \
             metrics and the saved state of a drain",
            "4:3: policies[0]: `module` is missing: the file of its component. A relative path begins at this file's \
             own directory",
        ],
    );
    let reported = problems_of("policies: []\n");
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(
        reported[0].message.starts_with("`apiVersion` is missing"),
        "{reported:?}"
    );
    let reported = problems_of("apiVersion: scupper.dev/v1\nkind: configuration\npolicies: []\n");
    assert_eq!(
        reported.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "1:13: apiVersion: must be scupper.dev/v1alpha1, not `scupper.dev/v1`",
            "2:7: kind: must be Configuration, not `configuration`; did you mean Configuration?",
        ]
    );
}

#[test]
fn a_value_of_another_kind() {
    check(
        "policies: {}\ndrain: []\n",
        &[
            "3:11: policies: must be a list, and this is a map",
            "4:8: drain: must be a map, and this is a list",
        ],
    );
    check(
        "policies:\n",
        &["3:9: policies: must be a list, and this is nothing"],
    );
    check_policy(
        "  sha256: 12\n  grants: yes\n  config: x\n  limits: {memory: [1]}\n  node-selector: {matchLabels: {a: b}}\n",
        &[
            "6:11: policies[0].sha256: must be text: put it in quotes, \"12\"",
            "7:11: policies[0].grants: must be a map, and this is a single value",
            "8:11: policies[0].config: must be a map, and this is a single value",
            "9:20: policies[0].limits.memory: must be bytes such as 64Mi, from 64Ki to 4Gi, and this is a list",
            "10:32: policies[0].node-selector.matchLabels: must be the label's value, as node-selector is a plain map of \
             labels, and this is a map",
        ],
    );
}

#[test]
fn a_value_that_cannot_be() {
    check(
        "policies: []\ndrain:\n  sla: 5\n  eviction-timeout: 0\n  grace-period: 1.5\n  force: yes\n  on-failure: keeps\n  \
         allow-overrides: [forces]\n",
        &[
            "5:8: drain.sla: must be a duration such as 90s, 30m or 1h30m, from 0 to 720h, not `5`",
            "6:21: drain.eviction-timeout: must be a duration such as 90s, 30m or 1h30m, from 1ms to 24h, not `0`",
            "7:17: drain.grace-period: must be a whole number from -1 to 2592000, not `1.5`",
            "8:10: drain.force: must be true or false, not `yes`",
            "9:15: drain.on-failure: must be keep or rollback, not `keeps`; did you mean keep?",
            "10:21: drain.allow-overrides[0]: must be force, delete-emptydir-data, ignore-daemonsets, local-data, \
             grace-period, notify-before, returning-pod-evictions, timeout or at-deadline, not `forces`; did you mean force?",
        ],
    );
    check_policy(
        "  limits: {memory: 1Ti, instances: 0, cpu-per-plan: 11m, wall-per-step: }\n  config: {a: }\n  on-failure: {hooks: hope}\n",
        &[
            "6:20: policies[0].limits.memory: must be bytes such as 64Mi, from 64Ki to 4Gi, not `1Ti`",
            "6:36: policies[0].limits.instances: must be a whole number from 1 to 1000, not `0`",
            "6:53: policies[0].limits.cpu-per-plan: must be a duration such as 90s, 30m or 1h30m, from 1ms to 10m, not \
             `11m`",
            "6:71: policies[0].limits.wall-per-step: must be a duration such as 90s, 30m or 1h30m, from 1ms to 10m, and \
             there is no value",
            "7:13: policies[0].config.a: there is no value: write \"\" for an empty text, or leave the key out",
            "8:23: policies[0].on-failure.hooks: must be refuse, ignore or hold, not `hope`",
        ],
    );
}

#[test]
fn texts_that_break_their_rule() {
    check(
        "policies:\n- {name: Slurm, module: \"\"}\n- {name: kubectl, module: a}\n",
        &[
            "4:10: policies[0].name: must be 1 to 40 lower-case letters, digits and '-'",
            "4:25: policies[0].module: must be the path of a file",
            "5:10: policies[1].name: the name `kubectl` is reserved for the driver's own first draft of a plan; choose another",
        ],
    );
    check_policy(
        "  sha256: abc\n  grants:\n    node-annotations: [nodes, kubernetes.io/]\n    events: [nodes]\n    http:\n    - origin: https://a.example.com/\n      methods: [get, FETCH]\n      paths: [v3, /a/../b]\n      networks: [public]\n",
        &[
            "6:11: policies[0].sha256: must be a SHA-256 in hex, 64 digits, as `sha256sum FILE` prints it",
            "8:24: policies[0].grants.node-annotations[0]: `nodes` is not an annotation prefix: a domain, a slash and \
             the beginning of a name, such as example.com/",
            "8:31: policies[0].grants.node-annotations[1]: annotations of `kubernetes.io` steer the cluster or this \
             driver and are never granted",
            "9:14: policies[0].grants.events[0]: must be node or pods, not `nodes`; did you mean node?",
            "11:15: policies[0].grants.http[0].origin: `https://a.example.com/` is more than an origin: write \
             https://HOST or https://HOST:PORT",
            "12:17: policies[0].grants.http[0].methods[0]: must be GET, HEAD, POST, PUT, PATCH or DELETE, not `get`; did \
             you mean GET?",
            "12:22: policies[0].grants.http[0].methods[1]: must be GET, HEAD, POST, PUT, PATCH or DELETE, not `FETCH`; did \
             you mean PATCH?",
            "13:15: policies[0].grants.http[0].paths[0]: must be a path prefix: whole segments from the first slash, none \
             of them empty or dotted, without query, fragment and star, such as /v3/ or /api/jobs",
            "13:19: policies[0].grants.http[0].paths[1]: must be a path prefix: whole segments from the first slash, none \
             of them empty or dotted, without query, fragment and star, such as /v3/ or /api/jobs",
            "14:18: policies[0].grants.http[0].networks[0]: must be private or loopback, not `public`",
        ],
    );
}

#[test]
fn labels_that_no_node_has() {
    check_policy(
        "  node-selector:\n    a/b/c: x\n    gpu: true\n    zone: \"a b\"\n",
        &[
            "7:5: policies[0].node-selector[\"a/b/c\"]: no label of a node can have this key",
            "8:10: policies[0].node-selector.gpu: must be text: put it in quotes, \"true\"",
            "9:5: policies[0].node-selector.zone: no label of a node can have this value: it is at most 63 letters, \
             digits, '-', '_' and '.'",
        ],
    );
}

#[test]
fn names_that_are_given_twice() {
    check(
        "policies:\n- {name: a, module: a}\n- {name: a, module: b}\n",
        &["5:10: policies[1].name: policies[0] has this name already; names are unique"],
    );
    check_policy(
        "  name: other\n",
        &["6:3: policies[0].name: this key is given twice; the first is in line 4"],
    );
    check_policy(
        "  config:\n    a.b: 1\n    \"a.b\": 2\n",
        &["8:5: policies[0].config[\"a.b\"]: this key is given twice; the first is in line 7"],
    );
}

#[test]
fn secrets_that_go_nowhere_or_come_from_nowhere() {
    check_policy(
        "  grants:\n    http: [{origin: \"https://a.example.com\"}]\n    secrets:\n    - name: x\n      origins: [\"https://b.example.com\"]\n    - name: x\n      file: f\n      captured-from: {origin: \"https://c.example.com\", header: \"a b\"}\n      origins: [\"https://A.example.com:443\"]\n",
        &[
            "9:7: policies[0].grants.secrets[0]: one of file, secret or captured-from is missing",
            "10:17: policies[0].grants.secrets[0].origins[0]: no request may go to https://b.example.com: also grant \
             it under http",
            "11:7: policies[0].grants.secrets[1]: only one of file, secret or captured-from may be given",
            "11:13: policies[0].grants.secrets[1].name: another secret of this policy has this name",
            "13:31: policies[0].grants.secrets[1].captured-from.origin: no request may go to https://c.example.com: also \
             grant it under http",
            "13:64: policies[0].grants.secrets[1].captured-from.header: must be the name of an HTTP header, such as \
             X-Subject-Token",
        ],
    );
}

#[test]
fn a_secret_that_no_policy_could_name() {
    check_policy(
        "  grants:\n    http: [{origin: \"https://a.example.com\"}]\n    secrets:\n    - {name: a.b, file: f, origins: [\"https://a.example.com\"]}\n",
        &["9:14: policies[0].grants.secrets[0].name: must be 1 to 63 letters, digits, '-' and '_'"],
    );
}

#[test]
fn yaml_that_means_several_things() {
    check(
        "policies: &all []\ndrain: *all\n",
        &[
            "3:11: policies: anchors are not supported: write each value where it belongs",
            "4:8: drain: aliases are not supported: write the value out",
        ],
    );
    check(
        "policies: !!seq []\ndrain: {<<: {force: true}, ? [a] : b, : c}\n",
        &[
            "3:11: policies: tags are not supported: leave `!!seq` out",
            "4:9: drain: merge keys are not supported: write the values out",
            "4:30: drain: a key must be text, not a map or a list",
            "4:39: drain: a key is missing before the colon",
        ],
    );
    check(
        "policies: []\n---\npolicies: []\n",
        &["4:1: a second document begins here, and a configuration is one document"],
    );
}

#[test]
fn yaml_that_is_none() {
    check(
        "policies:\n\t- a\n",
        &["4:1: policies: a tab may not indent in YAML: use spaces"],
    );
    let reported = problems(&format!("{POLICY}  config: [\n"));
    assert!(
        reported[0].message.starts_with("this is not valid YAML: "),
        "{reported:?}"
    );
    let reported = problems("policies: []\nkind");
    assert!(
        reported[0].message.starts_with("this is not valid YAML: "),
        "{reported:?}"
    );
}

#[test]
fn an_empty_file() {
    let empty =
        "the file is empty: it begins with `apiVersion: scupper.dev/v1alpha1` and `kind: Configuration`";
    for nothing in [
        "",
        "\n\n",
        "# only words\n",
        "\u{feff}",
        "---\n",
        "--- ~\n",
        "null\n",
    ] {
        let reported = problems_of(nothing);
        assert_eq!(reported.len(), 1, "{nothing:?}: {reported:?}");
        assert_eq!(reported[0].message, empty, "{nothing:?}");
    }
    let reported = problems_of("hello\n");
    assert_eq!(
        reported[0].to_string(),
        "1:1: must be a map, and this is a single value"
    );
}

#[test]
fn many_problems_are_reported_up_to_a_maximum() {
    let keys: String = (0..150).map(|number| format!("key{number}: 1\n")).collect();
    let file = std::path::Path::new("x.yaml");
    let error = scupper_config::read_text(file, &format!("{HEAD}policies: []\n{keys}")).unwrap_err();
    let text = error.to_string();
    assert_eq!(text.lines().count(), 101);
    assert!(text.starts_with("x.yaml:4:1: key0: no such key"), "{text}");
    assert!(text.ends_with("x.yaml: and 50 problems more"), "{text}");
}

#[test]
fn names_of_drain_requests_that_no_api_has() {
    check(
        "policies: []\ndrain-requests:\n  group: Sentinel\n  version: 1\n  plural: a/b\n  namespaces: []\n  kind: X\n  \
         conditions: {complete: \"a b\", failed: DrainDeferred}\n",
        &[
            "5:10: drain-requests.group: must be the name of a Kubernetes object: lower-case letters, digits, '-' and '.'",
            "6:12: drain-requests.version: must be text: put it in quotes, \"1\"",
            "7:11: drain-requests.plural: must be the name of a Kubernetes object: lower-case letters, digits, '-' and '.'",
            "8:15: drain-requests.namespaces: names no namespace; leave the key out to serve those of nvsentinel",
            "9:3: drain-requests.kind: no such key; there are group, version, plural, namespaces, conditions, timeout, \
             partial",
            "10:15: drain-requests.conditions: deferred and failed have the same type DrainDeferred; each needs its own",
            "10:26: drain-requests.conditions.complete: must be the type of a condition: at most 63 letters, digits, '-', \
             '_' and '.', perhaps after a domain and a slash",
        ],
    );
}

#[test]
fn a_force_at_the_deadline_that_does_not_hold_together() {
    let rows = [
        (
            "{}",
            "names no pods: give namespaces or priority-below, or everything: true for all pods",
        ),
        (
            "{everything: false, await-completion: true}",
            "names no pods: give namespaces or priority-below, or everything: true for all pods",
        ),
    ];
    for (delete, message) in rows {
        check(
            &format!("policies: []\ndrain:\n  at-deadline:\n    delete: {delete}\n    within: 1m\n"),
            &[&format!("6:13: drain.at-deadline.delete: {message}")],
        );
    }
    check(
        "policies: []\ndrain:\n  at-deadline:\n    delete:\n      namespaces: []\n      everything: true\n    within: 40s\n",
        &[
            "7:19: drain.at-deadline.delete.namespaces: names no namespace: no pod would be deleted; leave at-deadline out \
             for that",
            "7:19: drain.at-deadline.delete: has a restriction and everything: true: leave one of the two out",
            "9:13: drain.at-deadline.within: must be more than 40s, which is grace-period and 10 seconds: else deleted pods \
             remain at the deadline",
        ],
    );
    check(
        "policies: []\ndrain:\n  at-deadline:\n    delete: {namespaces: [Shop], priority-below: high}\n    grace-period: 1500ms\n",
        &[
            "6:5: drain.at-deadline: `within` is missing: how long before its deadline the drain begins to delete pods; more than \
             grace-period and 10 seconds",
            "6:27: drain.at-deadline.delete.namespaces[0]: must be the name of a Kubernetes object: lower-case letters, \
             digits, '-' and '.'",
            "6:50: drain.at-deadline.delete.priority-below: must be a whole number from -2147483647 to 2147483647, not \
             `high`",
            "7:19: drain.at-deadline.grace-period: must be in whole seconds, as the API server counts grace periods",
        ],
    );
}

#[test]
fn a_surge_without_a_time_limit_or_without_namespaces() {
    check(
        "policies: []\ndrain:\n  surge: {namespaces: []}\n",
        &[
            "5:10: drain.surge: `timeout` is missing: how long a surge may take until the pods on the node leave. After \
             that they wait for their budget as they would without a surge",
            "5:23: drain.surge.namespaces: names no namespace: no Deployment would be surged; leave surge out for that",
        ],
    );
    check(
        "policies: []\ndrain:\n  surge: {timeout: 0s, namespaces: [Shop], method: scal}\n",
        &[
            "5:20: drain.surge.timeout: must be a duration such as 90s, 30m or 1h30m, from 1s to 24h, not `0s`",
            "5:37: drain.surge.namespaces[0]: must be the name of a Kubernetes object: lower-case letters, digits, '-' \
             and '.'",
            "5:52: drain.surge.method: must be restart or scale, not `scal`; did you mean scale?",
        ],
    );
}

#[test]
fn a_shadow_stands_for_an_active_policy_or_for_none() {
    check_policy(
        "  instead-of: slurm\n  mode: shadowy\n- name: a\n  module: a.wasm\n  mode: shadow\n  instead-of: slrm\n- name: b\n  \
         module: b.wasm\n  mode: shadow\n  instead-of: a\n- name: c\n  module: c.wasm\n  mode: shadow\n  instead-of: slurm\n",
        &[
            "6:15: policies[0].instead-of: instead-of needs mode: shadow; add it, or remove instead-of",
            "7:9: policies[0].mode: must be active or shadow, not `shadowy`; did you mean shadow?",
            "11:15: policies[1].instead-of: there is no active policy `slrm`; did you mean slurm?",
            "15:15: policies[2].instead-of: there is no active policy `a`; remove instead-of to try the policy as an addition to the chain",
        ],
    );
}
