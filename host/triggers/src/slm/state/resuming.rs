//! Resumes the request of another process of the driver if its event still exists, and drops it otherwise. This happens
//! only after that process has ended; until then it continues the request itself.

use super::{SlmOutput, SlmState};
use crate::{DrainCommand, ResumePoint};
use scupper_api::ClaimStatus;

impl SlmState {
    /// Begins nothing until released. `has_predecessor`: another instance of this driver exists.
    pub(in crate::slm) fn pause(&mut self, has_predecessor: bool) {
        self.paused = true;
        self.has_predecessor = has_predecessor;
    }

    /// No other instance runs any more: resumes the request of the other process.
    pub(in crate::slm) fn unpause(&mut self, resume_point: Option<ResumePoint>) {
        self.paused = false;
        self.has_predecessor = false;
        self.resume_point = resume_point;
        if let Some(uid) = self
            .resume_point
            .as_ref()
            .map(|resume_point| resume_point.id.clone())
        {
            self.resume_event(&uid);
            self.update_active(&uid);
            self.drop_missing_resume_point();
        }
    }

    /// Resumes the request of the other process if its event still exists; drops it otherwise.
    pub(super) fn resume_event(&mut self, uid: &str) {
        let Some(resume_point) = self.resume_point.take_if(|resume_point| resume_point.id == uid) else {
            return;
        };
        let claim = self.events.get(uid).map(|known| known.event.claim.clone());
        match claim {
            Some(ClaimStatus::Claimed) if self.stopping => self.resume_point = Some(resume_point),
            Some(ClaimStatus::Claimed) if !resume_point.finished => self.go_on(uid, resume_point),
            Some(ClaimStatus::Claimed) => {}
            Some(claim) if claim.is_terminal() => {
                let reason = format!(
                    "LifecycleEvent {} has ended: {}",
                    resume_point.name,
                    claim.as_str()
                );
                self.report_lost(resume_point, reason);
            }
            // No request begins before the claim, so the watch lags behind and will show it.
            Some(_) | None => self.resume_point = Some(resume_point),
        }
    }

    /// Without its flags, which the configuration may not allow any more, it would be another drain: that one is given up.
    fn go_on(&mut self, uid: &str, resume_point: ResumePoint) {
        let Some(known) = self.events.get_mut(uid) else {
            return;
        };
        if let Some(Err(problem)) = &known.event.flags {
            let reason = format!("LifecycleEvent {} cannot go on: {problem}", resume_point.name);
            return self.report_lost(resume_point, reason);
        }
        known.given = resume_point.deadline;
        self.begin(uid, resume_point.intent);
    }

    /// Drops the request of the other process if the complete list does not have its event.
    pub(super) fn drop_missing_resume_point(&mut self) {
        if !self.listed || self.paused {
            return;
        }
        let missing = |resume_point: &mut ResumePoint| !self.events.contains_key(&resume_point.id);
        if let Some(resume_point) = self.resume_point.take_if(missing) {
            let reason = format!("LifecycleEvent {} is gone", resume_point.name);
            self.report_lost(resume_point, reason);
        }
    }

    fn report_lost(&mut self, resume_point: ResumePoint, reason: String) {
        if !resume_point.finished {
            self.outputs.push_back(SlmOutput::Command(DrainCommand::Lost {
                id: resume_point.id,
                reason,
            }));
        }
    }
}
