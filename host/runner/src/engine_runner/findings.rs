//! What stands in the way of a drain that goes on meanwhile, reported once.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use scupper_engine::{Plan, Time};
use scupper_pre_flight::Finding;
use scupper_report::loosened_texts;

use super::EngineRunner;
use crate::pre_flight::PreFlightCheck;

impl EngineRunner {
    /// Reports what stands in the way of the first plan. Where that takes questions to the API server, the drain does not
    /// wait for them.
    pub(super) fn report_findings(&mut self, now: Time, plan: &Plan) {
        let volumes = self.local_volumes.borrow().clone();
        let known = PreFlightCheck::of(&self.drain, now).with_volumes(volumes);
        let likely = known.findings(plan, &BTreeMap::new());
        let in_doubt = known.in_doubt(plan);
        if in_doubt.is_empty() {
            self.reporter.on_findings(now, self.drain.request(), &likely);
        } else {
            let (cluster, plan) = (self.deps.cluster.clone(), plan.clone());
            let examining = async move { known.examined(&cluster, &plan, in_doubt).await };
            (self.findings, self.likely) = (Some(stream::once(examining).boxed()), likely);
        }
        let pods: Vec<_> = self.drain.pods().cloned().collect();
        for text in loosened_texts(plan, &pods) {
            tracing::warn!("a later policy loosens what an earlier one decided: {text}");
        }
    }

    pub(super) fn report_found(&mut self, findings: &[Finding]) {
        self.findings = None;
        let now = self.deps.clock.now();
        self.reporter.on_findings(now, self.drain.request(), findings);
    }
}
