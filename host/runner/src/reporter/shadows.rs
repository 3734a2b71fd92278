//! Reports what shadow policies would have made of a drain: lines, the log, metrics, and one Event.

use scupper_common::text::one_line;
use scupper_engine::{Request, Time};
use scupper_recording::{ShadowPlan, ShadowResult};
use scupper_report::{NodeEvent, PolicyMessage};

use super::Reporter;

/// The reason of the Event.
const REASON: &str = "ShadowPlanDiffers";
/// Bytes of its text; the API server takes 1 KiB.
const NOTE: usize = 1000;

impl Reporter {
    /// All shadows of the drain have planned, or no further one will.
    pub(crate) fn on_shadows(&mut self, now: Time, request: &Request, plans: &[ShadowPlan]) {
        for plan in plans {
            if let Some(metrics) = &self.metrics {
                let pods = u64::try_from(plan.pods()).unwrap_or(u64::MAX);
                metrics.shadow_planned(&plan.policy, plan.result.name(), pods);
            }
            match &plan.result {
                ShadowResult::Failed(_) => tracing::warn!("{plan}"),
                _ => tracing::info!("{plan}"),
            }
        }
        let differing: Vec<_> = plans.iter().filter(|plan| plan.differs()).collect();
        for plan in &differing {
            let said = PolicyMessage {
                policy: plan.policy.clone(),
                warning: false,
                reason: REASON.to_owned(),
                note: format!("as a shadow it {}", plan.result),
            };
            self.sink.policy_message(now, &said);
        }
        let texts: Vec<_> = differing.iter().map(|plan| plan.to_string()).collect();
        if texts.is_empty() {
            return;
        }
        let event = NodeEvent {
            warning: false,
            reason: REASON.to_owned(),
            note: one_line(&texts.join(". "), NOTE),
        };
        self.tell(now, request, [event]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scupper_metrics::Metrics;
    use scupper_report::{Format, fixture};
    use tokio::sync::mpsc;

    use super::*;
    use crate::reporter::{Output, QueuedWrite};

    fn plan(policy: &str, result: ShadowResult) -> ShadowPlan {
        ShadowPlan {
            policy: policy.to_owned(),
            digest: String::new(),
            instead_of: None,
            leaving: 2,
            result,
        }
    }

    /// The Events, and the metrics of shadows.
    fn reported(plans: &[ShadowPlan]) -> (Vec<String>, Vec<String>) {
        let output: Output = Arc::new(|| Box::new(std::io::sink()));
        let (request, metrics, now) = (fixture::request(), Metrics::new(), Time::default());
        let mut reporter =
            Reporter::lines(Format::Human, &output, now, now, &request).and_metrics(&metrics, &request);
        let (sender, mut receiver) = mpsc::unbounded_channel();
        reporter.events = Some(sender);
        reporter.on_shadows(now, &request, plans);
        let mut events = Vec::new();
        while let Ok(QueuedWrite::Event(event)) = receiver.try_recv() {
            assert_eq!(event.reason, REASON);
            events.push(event.note);
        }
        let text = metrics.to_text();
        let samples = text
            .lines()
            .filter(|line| line.starts_with("scupper_policy_shadow_"));
        let mut samples: Vec<_> = samples.map(str::to_owned).collect();
        samples.sort();
        (events, samples)
    }

    #[test]
    fn all_shadows_that_differ_share_one_bounded_event() {
        let refusal = "so ".repeat(1000);
        let plans = [
            plan("a", ShadowResult::Refuses(refusal.clone())),
            plan("b", ShadowResult::Agrees),
            plan("c", ShadowResult::Failed("trap".to_owned())),
        ];
        let (events, samples) = reported(&plans);
        let [note] = &events[..] else { panic!("{events:?}") };
        assert!(
            note.starts_with("shadow policy a would refuse the drain: so so ") && note.len() <= NOTE,
            "{note}"
        );
        assert!(!note.contains("policy b") && !note.contains("policy c"), "{note}");
        assert_eq!(
            samples,
            [
                "scupper_policy_shadow_plans_total{policy=\"a\",result=\"refuses\"} 1",
                "scupper_policy_shadow_plans_total{policy=\"b\",result=\"agrees\"} 1",
                "scupper_policy_shadow_plans_total{policy=\"c\",result=\"failed\"} 1",
                "scupper_policy_shadow_pods_total{policy=\"a\"} 2",
                "scupper_policy_shadow_pods_total{policy=\"b\"} 0",
                "scupper_policy_shadow_pods_total{policy=\"c\"} 0",
            ]
        );
        let many = ["d", "e", "f", "g", "h", "i"];
        let many = many.map(|policy| plan(policy, ShadowResult::Refuses(refusal.clone())));
        let (events, _) = reported(&many);
        assert!(events.len() == 1 && events[0].len() <= NOTE, "{events:?}");
    }

    #[test]
    fn shadows_that_agree_or_fail_emit_no_event() {
        let plans = [
            plan("b", ShadowResult::Agrees),
            plan("c", ShadowResult::Unfinished),
        ];
        assert_eq!(reported(&plans).0, [""; 0]);
    }
}
