//! Changes the cluster as its state says: `VERB KEY VALUE`, one a line. Answers with each result.

use guests::{Call, Description, Drain, Grant, Node, Outcome, Phase, Plan, Pod, cluster};

guests::about!(
    Description::new("annotates", "0.1.0", "Writes annotations")
        .wants(Grant::node_annotations("drain.example.com/"))
        .wants(Grant::pod_annotations("drain.example.com/pod-"))
);
guests::planner!(plan);
guests::hooks!([Phase::BeforeDrain], step);

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    let written = cluster::annotate_node("drain.example.com/planned", "yes");
    Err(format!(
        "{written:?}; {:?}; {:?}",
        cluster::get_node().is_ok(),
        cluster::list_pods().is_ok()
    ))
}

fn step(call: &Call) -> Outcome {
    let script = String::from_utf8_lossy(&call.state).into_owned();
    let results: Vec<String> = script.lines().map(|line| act(call, line)).collect();
    Outcome::failed(results.join("; ")).into()
}

fn act(call: &Call, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let done = match words.as_slice() {
        ["node", key, value] => cluster::annotate_node(key, value),
        ["node", key] => cluster::remove_node_annotation(key),
        ["node-many", key, times] => {
            (0..times.parse().unwrap_or(0)).try_for_each(|_| cluster::annotate_node(key, "again"))
        }
        ["node-long", key, bytes] => cluster::annotate_node(key, &"x".repeat(bytes.parse().unwrap_or(0))),
        ["pod", key, value] => call
            .pods
            .first()
            .map_or(Ok(()), |pod| cluster::annotate_pod(pod, key, value)),
        ["pod", key] => call
            .pods
            .first()
            .map_or(Ok(()), |pod| cluster::remove_pod_annotation(pod, key)),
        ["stranger", key, value] => call.pods.first().map_or(Ok(()), |pod| {
            let stranger = Pod {
                uid: "another-pod".to_owned(),
                ..pod.clone()
            };
            cluster::annotate_pod(&stranger, key, value)
        }),
        ["look"] => {
            return match (cluster::get_node(), cluster::list_pods()) {
                (Ok(node), Ok(pods)) => format!(
                    "{} {} {}",
                    node.name,
                    pods.len(),
                    pods.iter().any(|pod| pod.driver)
                ),
                (node, pods) => format!("{:?} {:?}", node.err(), pods.err()),
            };
        }
        _ => return format!("what is {line}?"),
    };
    match done {
        Ok(()) => "done".to_owned(),
        Err(error) => error.to_string(),
    }
}
