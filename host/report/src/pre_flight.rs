//! Formats the findings of pre-flight arithmetic, for people and for machines.

use scupper_engine::pre_flight::{Certainty, Finding};
use scupper_engine::{PodRef, Request, Time};
use serde_json::{Value, json};

use super::json::record;
use super::messages::{count, one_line};

/// Number of pods that a line names.
const NAMED: usize = 3;

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
    use scupper_engine::pre_flight::Concern;

    use super::*;
    use crate::fixture::pod;

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
