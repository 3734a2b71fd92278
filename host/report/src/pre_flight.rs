//! Formats the findings of pre-flight arithmetic, for people and for machines.

use scupper_engine::{PodRef, Request, Time};
use scupper_pre_flight::{Certainty, Finding};
use serde_json::{Value, json};

use super::conditions::NodeEvent;
use super::json::record;
use super::messages::{count, one_line};

/// Number of pods that a line names.
const NAMED: usize = 3;
/// The reason of the Events about findings, and of the one that counts further ones.
pub const FINDING_EVENT: &str = "PreFlightFinding";
const MORE_EVENT: &str = "MorePreFlightFindings";
/// Number of findings that become Events.
const MOST_EVENTS: usize = 5;

/// The findings as lines of a plan.
pub fn finding_lines(findings: &[Finding]) -> Vec<String> {
    if findings.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["Pre-flight findings:".to_owned()];
    for finding in findings {
        let Finding { certainty, .. } = finding;
        lines.push(format!("  {certainty:<8} {}", finding_text(finding)));
        if !finding.change.is_empty() {
            lines.push(format!("           change: {}", one_line(&finding.change)));
        }
    }
    lines
}

/// Why, and which pods.
pub fn finding_text(finding: &Finding) -> String {
    one_line(&format!("{}: {}", finding.reason, names(&finding.pods)))
}

/// One line of a drain, without the word for its certainty.
pub(crate) fn finding_line(finding: &Finding) -> String {
    let what = match finding.certainty {
        Certainty::Certain => "will not leave: ",
        Certainty::Likely => "",
    };
    let change = match finding.change.as_str() {
        "" => String::new(),
        change => format!("; change: {}", one_line(change)),
    };
    format!("{what}{}{change}", finding_text(finding))
}

/// Events about the node, for its first findings: the certain ones are warnings.
pub fn finding_events(request: &Request, findings: &[Finding]) -> Vec<NodeEvent> {
    let event = |reason: &str, warning, text: &str| NodeEvent {
        warning,
        reason: reason.to_owned(),
        note: format!("{}: {text}", request.name),
    };
    let first = findings.iter().take(MOST_EVENTS);
    let first = first.map(|finding| {
        event(
            FINDING_EVENT,
            finding.certainty == Certainty::Certain,
            &finding_line(finding),
        )
    });
    let mut events: Vec<_> = first.collect();
    if let Some(more @ 1..) = findings.len().checked_sub(MOST_EVENTS) {
        let text = format!(
            "{}; see scupper plan {}",
            count(more, "more finding"),
            request.node
        );
        events.push(event(MORE_EVENT, false, &text));
    }
    events
}

/// A line of a drain for machines.
pub(crate) fn findings_record(now: Time, request: &Request, findings: &[Finding]) -> Value {
    let fields = json!({ "kind": "preFlight", "findings": findings_to_json(findings) });
    record(now, request, fields)
}

/// One object for each finding.
pub fn findings_to_json(findings: &[Finding]) -> Value {
    let all = findings.iter().map(|finding| {
        let Finding {
            certainty,
            concern,
            pods,
            budgets,
            reason,
            change,
        } = finding;
        let pods: Vec<_> = pods.iter().map(PodRef::to_string).collect();
        json!({
            "certainty": certainty.to_string(), "concern": concern.name(), "pods": pods, "budgets": budgets,
            "reason": reason, "change": Some(change).filter(|change| !change.is_empty()),
        })
    });
    all.collect()
}

fn names(pods: &[PodRef]) -> String {
    let named: Vec<_> = pods.iter().take(NAMED).map(PodRef::to_string).collect();
    match pods.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {}", named.join(", "), count(more, "more pod")),
    }
}

#[cfg(test)]
mod tests {
    use scupper_pre_flight::Concern;

    use super::*;
    use crate::fixture::pod;

    #[test]
    fn five_findings_become_events_and_one_more_counts_the_others() {
        let finding = |certainty, number: usize| Finding {
            certainty,
            concern: Concern::SingleReplica,
            pods: vec![pod("a")],
            budgets: Vec::new(),
            reason: format!("reason {number}"),
            change: String::new(),
        };
        let mut findings = vec![finding(Certainty::Certain, 0)];
        findings.extend((1..5).map(|number| finding(Certainty::Likely, number)));
        let request = crate::fixture::request();
        let events = finding_events(&request, &findings);
        let notes: Vec<_> = events
            .iter()
            .map(|event| (event.warning, event.note.as_str()))
            .collect();
        assert_eq!(events.len(), 5);
        assert_eq!(
            notes[..2],
            [
                (true, "drain-worker-1: will not leave: reason 0: shop/a"),
                (false, "drain-worker-1: reason 1: shop/a")
            ]
        );
        findings.extend((5..500).map(|number| finding(Certainty::Likely, number)));
        let events = finding_events(&request, &findings);
        assert_eq!(events.len(), 6);
        assert_eq!(
            events[5].note,
            "drain-worker-1: 495 more findings; see scupper plan worker-1"
        );
        assert_eq!(finding_events(&request, &[]), []);
    }

    #[test]
    fn a_finding_names_three_pods_and_the_change() {
        let mut finding = Finding {
            certainty: Certainty::Certain,
            concern: Concern::ClosedBudget,
            pods: ["a", "b", "c", "d"].map(pod).to_vec(),
            budgets: vec!["shop/keep".to_owned()],
            reason: "budget shop/keep allows nothing".to_owned(),
            change: "minAvailable: 4 -> 3".to_owned(),
        };
        assert_eq!(
            finding_lines(std::slice::from_ref(&finding)),
            [
                "Pre-flight findings:",
                "  certain  budget shop/keep allows nothing: shop/a, shop/b, shop/c and 1 more pod",
                "           change: minAvailable: 4 -> 3",
            ]
        );
        let json = findings_to_json(std::slice::from_ref(&finding));
        assert_eq!(json[0]["certainty"], "certain");
        assert_eq!(json[0]["pods"][3], "shop/d");
        finding.certainty = Certainty::Likely;
        finding.change = String::new();
        finding.pods.truncate(1);
        assert_eq!(finding_line(&finding), "budget shop/keep allows nothing: shop/a");
        assert_eq!(findings_to_json(&[finding])[0]["change"], Value::Null);
        assert_eq!(finding_lines(&[]), Vec::<String>::new());
    }
}
