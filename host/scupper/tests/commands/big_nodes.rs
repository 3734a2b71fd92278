//! Nodes with many pods: all seven policies of the repository plan them, with a bounded number of requests.

use std::fmt::Write as _;
use std::fs;

use scupper_simulator::api::objects;
use serde_json::{Value, json};
use xtask::policies;
use xtask::workspace::Workspace;

use crate::rig::Rig;

/// Pods of the node, each of a Deployment of its own in a namespace of its own.
const SCATTERED: usize = 500;
/// Pods of one Job, and those of them that are on the node.
const CROWD: (usize, usize) = (10_000, 100);

/// Each policy with a configuration that asks for something.
const POLICIES: [(&str, &str); 7] = [
    ("gpu", "grants: {facts: [request, resources]}"),
    ("priority", ""),
    (
        "namespace-modes",
        "config: {rules: team=batch AllowCompletion 10m}\n    grants: {facts: [namespaces]}",
    ),
    ("jobs", "grants: {facts: [owners]}"),
    (
        "gangs",
        "config: {controllers: example.com/gang=true}\n    grants: {facts: [peers]}",
    ),
    ("slurm", "grants: {node-annotations: [nodeset.slinky.slurm.net/]}"),
    (
        "openstack",
        "config:
      auth-url: https://cloud.example.com:5000
      application-credential-id: 21dced0fd20347869b93710d2b98aae0
      compute-url: https://cloud.example.com:8774
    grants:
      events: [node]
      http:
        - {origin: https://cloud.example.com:5000, methods: [POST, DELETE]}
        - {origin: https://cloud.example.com:8774, methods: [GET, POST, PUT, DELETE]}
      secrets:
        - {name: application-credential-secret, file: /etc/scupper/secret, origins: [https://cloud.example.com:5000]}
        - name: token
          captured-from: {origin: https://cloud.example.com:5000, header: X-Subject-Token}
          origins: [https://cloud.example.com:5000, https://cloud.example.com:8774]",
    ),
];

fn configuration(rig: &Rig) -> String {
    let names = POLICIES.map(|(name, _)| name.to_owned());
    let built = policies::build(&Workspace::read().unwrap(), &names, None).unwrap();
    let mut text = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies:\n".to_owned();
    for (name, more) in POLICIES {
        let mut files = built.iter().map(|policy| &policy.file);
        let file = format!("{}.wasm", name.replace('-', "_"));
        let module = files.find(|it| {
            let found = it.file_name().unwrap().to_str().unwrap();
            found.replace('-', "_") == file
        });
        let module = module.unwrap().display();
        writeln!(text, "  - name: {name}\n    module: {module}\n    {more}").unwrap();
    }
    let file = rig.dir.path().join("scupper.yaml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn scattered_pods(rig: &Rig) {
    for number in 0..SCATTERED {
        let (namespace, name) = (format!("team-{number}"), format!("web-{number}"));
        rig.apply(objects::namespace(&namespace).build());
        rig.apply(json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": namespace, "name": name, "uid": name}, "spec": {"replicas": 1}}));
        let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": name,
            "controller": true}]);
        // Without replicas: the simulated controller would create pods.
        let set = objects::replica_set(&namespace, &format!("{name}-1"), 0);
        rig.apply(set.with("/metadata/ownerReferences", owner).build());
        let pod = objects::pod(&namespace, &format!("{name}-1-a"), "worker-1");
        rig.apply(pod.owner_replicaset(&format!("{name}-1")).build());
    }
}

fn crowd(rig: &Rig) {
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "train", "controller": true}]);
    let (all, here) = CROWD;
    for number in 0..all {
        let node = if number < here { "worker-1" } else { "worker-2" };
        let pod = objects::pod("ml", &format!("train-{number:05}"), node);
        let pod = pod
            .label("example.com/gang", "true")
            .with("/metadata/ownerReferences", owner.clone());
        rig.apply(pod.build());
    }
}

#[test]
fn all_policies_plan_500_pods_of_500_owners_in_500_namespaces_beside_10_000_pods_of_one_namespace() {
    let rig = Rig::new();
    let file = configuration(&rig);
    scattered_pods(&rig);
    crowd(&rig);
    let mark = rig.api.mark();
    let run = rig.run(&["plan", "worker-1", "--config", &file, "--output", "json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    let waves = plan["plan"]["waves"].as_array().unwrap();
    let leaving: usize = waves
        .iter()
        .map(|wave| wave["pods"].as_array().unwrap().len())
        .sum();
    assert_eq!(leaving, SCATTERED + CROWD.1);
    assert_eq!(plan["loosened"], json!([]));
    let reasons = plan["plan"]["decisions"].as_array().unwrap().iter();
    let in_gang = |decision: &&Value| {
        decision["reason"]
            .as_str()
            .unwrap()
            .contains("and 9900 more pods on worker-2")
    };
    assert_eq!(reasons.filter(in_gang).count(), CROWD.1, "{}", run.stdout);

    let requests = rig.api.requests_since(mark);
    let of_facts = requests.iter().filter(|request| {
        let all = ["/namespaces", "/replicasets", "/deployments"];
        let is_all = all.iter().any(|path| request.path.ends_with(path));
        let is_one =
            request.path.starts_with("/api/v1/namespaces/") || request.path.starts_with("/apis/apps/");
        let is_pods = request.path.ends_with("/pods") && !request.query.contains("watch");
        !request.query.contains("watch") && (is_all || is_one || is_pods)
    });
    let mut of_facts: Vec<_> = of_facts
        .map(|request| format!("{}?{}", request.path, request.query))
        .collect();
    // Afterwards the plan reads whole namespaces for its findings, which no drain does.
    let last = of_facts
        .iter()
        .rposition(|request| request.contains("status.phase"));
    of_facts.truncate(last.unwrap() + 1);
    // Three namespaces by themselves; then all in two pages; ReplicaSets and Deployments in one or two each; the node's pods in
    // two; the namespace of the gang in 20.
    assert!(
        (26..=34).contains(&of_facts.len()),
        "{}: {of_facts:#?}",
        of_facts.len()
    );
    let of_crowd = of_facts
        .iter()
        .filter(|request| request.starts_with("/api/v1/namespaces/ml/pods"));
    assert_eq!(of_crowd.count(), 20, "{of_facts:#?}");
}
