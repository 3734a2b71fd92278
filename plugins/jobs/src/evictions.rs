//! How many pods of a Job a plan evicts: each of them may be a failure of the Job.

use std::collections::BTreeMap;

use scupper_sdk::{
    Pod,
    facts::{self, Job},
};

/// The evictions of a plan, by the UID of the Job.
#[derive(Default)]
pub(crate) struct Evictions(BTreeMap<String, u32>);

impl Evictions {
    /// The Job of a pod if it fails for good when this pod is evicted as well. If not, the eviction counts from now on.
    pub(crate) fn job_that_fails(&mut self, pod: &Pod) -> Result<Option<Job>, facts::Error> {
        // A terminating pod leaves in any case, and the Job controller counts it in `failed`.
        let runs = pod.deletion_timestamp.is_none();
        let (Some(controller), true) = (&pod.controller, runs) else {
            return Ok(None);
        };
        let Some(job) = facts::job(pod)? else {
            return Ok(None);
        };
        let evicted = self.0.entry(controller.uid.clone()).or_default();
        if job.fails_after(pod, *evicted) {
            return Ok(Some(job));
        }
        *evicted = evicted.saturating_add(1);
        Ok(None)
    }
}
