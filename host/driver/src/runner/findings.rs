//! What stands in the way of a drain that goes on meanwhile, reported once.

use std::collections::BTreeMap;

use futures::{FutureExt as _, StreamExt as _, stream};
use scupper_engine::pre_flight::Finding;
use scupper_engine::{Plan, Time};
use scupper_report::loosened_texts;

use super::EngineRunner;
use super::pre_flight::PreFlightCheck;

impl EngineRunner {
    /// Reports once what stands in the way of the plan. Where that takes questions to the API server, the drain does not
    /// wait for them.
    pub(super) fn report_findings(&mut self, now: Time, plan: &Plan) {
        if std::mem::take(&mut self.is_pre_flight) {
            let volumes = self.local_volumes.borrow().clone();
            let known = PreFlightCheck::of(&self.drain, now).with_volumes(volumes);
            let likely = known.findings(plan, &BTreeMap::new());
            let (cluster, examined) = (self.deps.cluster.clone(), plan.clone());
            let examining = async move { known.examined(&cluster, &examined).await };
            let mut findings = stream::once(examining).boxed();
            match findings.next().now_or_never().flatten() {
                Some(findings) => self.reporter.on_findings(now, self.drain.request(), &findings),
                None => (self.findings, self.likely) = (Some(findings), likely),
            }
            let pods: Vec<_> = self.drain.pods().cloned().collect();
            for text in loosened_texts(plan, &pods) {
                tracing::warn!("a later policy loosens what an earlier one decided: {text}");
            }
        }
    }

    pub(super) fn report_found(&mut self, findings: &[Finding]) {
        self.findings = None;
        let now = self.deps.clock.now();
        self.reporter.on_findings(now, self.drain.request(), findings);
    }
}
