//! Describes an unready node: its kubelet may be unable to terminate pods or to report that they have terminated.

use scupper_engine::{HumanDuration, Node, Time};

use super::messages::one_line;

/// Returns `NotReady for 5m00s (KubeletNotReady: …)`; `None` if the node is ready or its state is unknown.
pub fn not_ready(node: &Node, now: Time) -> Option<String> {
    let ready = node
        .conditions
        .iter()
        .find(|condition| condition.kind == "Ready")?;
    if ready.status == "True" {
        return None;
    }
    let since = ready
        .since
        .map(|since| format!(" for {}", HumanDuration(now.since(since))));
    let why = match (ready.reason.as_str(), ready.message.as_str()) {
        ("", "") => String::new(),
        (why, "") | ("", why) => format!(" ({why})"),
        (reason, message) => format!(" ({reason}: {message})"),
    };
    Some(one_line(&format!("NotReady{}{why}", since.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use scupper_engine::{Condition, Phase};

    use super::*;
    use crate::fixture::{mark, node};

    #[test]
    fn only_a_node_reported_as_not_ready_is_called_not_ready() {
        let now = Time::from_millis(400_000);
        let node = || node(mark("command", Phase::Finished));
        let reported = |status: &str, reason: &str, message: &str| {
            let condition = Condition {
                kind: "Ready".to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message: message.to_owned(),
                since: Some(Time::from_millis(100_000)),
            };
            let node = Node {
                conditions: vec![condition],
                ..node()
            };
            not_ready(&node, now)
        };
        assert_eq!(not_ready(&node(), now), None);
        assert_eq!(reported("True", "KubeletReady", "fine"), None);
        assert_eq!(reported("False", "", "").as_deref(), Some("NotReady for 5m00s"));
        assert_eq!(
            reported("Unknown", "NodeStatusUnknown", "Kubelet stopped\nposting").as_deref(),
            Some("NotReady for 5m00s (NodeStatusUnknown: Kubelet stopped posting)")
        );
    }
}
