//! The active policies' findings about their surroundings; each revision is checked once.

use scupper_common::clock::rfc3339;
use scupper_engine::{Node, Time};
use scupper_policy::{EnvironmentFindings, PolicyFinding};
use serde_json::{Value, json};

use super::catalogue::Catalogue;
use super::revision::Revision;

/// The last check of one policy.
#[derive(Clone)]
pub(super) struct LastCheck {
    name: String,
    revision: Revision,
    at: Time,
    /// `None`: it has no check.
    found: Option<EnvironmentFindings>,
}

impl Catalogue {
    /// Runs the check of each active policy, unless this revision has been checked. Returns the new findings.
    pub async fn check(&self, node: Option<&Node>, now: Time) -> Vec<EnvironmentFindings> {
        let before = self.checks.load_full();
        let mut checks = Vec::new();
        let mut news = Vec::new();
        for member in &self.active().members {
            let is_same = |last: &&LastCheck| last.name == member.name() && last.revision == member.revision;
            if let Some(last) = before.iter().find(is_same) {
                checks.push(last.clone());
                continue;
            }
            let found = member.policy.check(node).await;
            news.extend(found.clone());
            checks.push(LastCheck {
                name: member.name().to_owned(),
                revision: member.revision.clone(),
                at: now,
                found,
            });
        }
        self.checks.store(checks.into());
        news
    }

    /// The findings of a policy's last check, as JSON; null: it has not run, or the policy has no check.
    pub(super) fn last_check(&self, name: &str) -> Value {
        let checks = self.checks.load();
        let last = checks.iter().find(|last| last.name == name);
        let found = last.and_then(|last| Some((last.at, last.found.as_ref()?)));
        let Some((at, checked)) = found else {
            return Value::Null;
        };
        let findings: Vec<Value> = checked.findings.iter().map(finding).collect();
        json!({ "at": rfc3339(at), "findings": findings })
    }
}

fn finding(finding: &PolicyFinding) -> Value {
    json!({
        "severity": finding.severity.as_str(),
        "subject": finding.subject,
        "message": finding.message,
        "fix": finding.fix,
    })
}
