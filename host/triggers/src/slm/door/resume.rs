//! What another process of the driver was at: goes on if its event is still there, and else is lost. It is looked for
//! when that process has ended, and not before: until then it goes on itself.

use super::{Door, Output};
use crate::slm::lifecycle::ClaimStatus;
use crate::{Demand, Resume};

impl Door {
    /// Nothing is begun until released. `beside`: there is another instance of this driver.
    pub(in crate::slm) fn hold(&mut self, beside: bool) {
        self.held = true;
        self.beside = beside;
    }

    /// Nobody else is at work any more: what another process has left goes on.
    pub(in crate::slm) fn release(&mut self, left: Option<Resume>) {
        self.held = false;
        self.beside = false;
        self.resume = left;
        if let Some(uid) = self.resume.as_ref().map(|resume| resume.id.clone()) {
            self.resume_from(&uid);
            self.follow(&uid);
            self.resume_from_nothing();
        }
    }

    /// What another process was at goes on, if its event is still there; else it is lost.
    pub(super) fn resume_from(&mut self, uid: &str) {
        let Some(resume) = self.resume.take_if(|resume| resume.id == uid) else {
            return;
        };
        let claim = self.events.get(uid).map(|known| known.event.claim.clone());
        match claim {
            Some(ClaimStatus::Claimed) if self.stopping => self.resume = Some(resume),
            Some(ClaimStatus::Claimed) if !resume.finished => self.begin(uid, resume.intent),
            Some(ClaimStatus::Claimed) => {}
            Some(claim) if claim.is_terminal() => {
                let reason = format!("LifecycleEvent {} has ended: {}", resume.name, claim.as_str());
                self.lose(resume, reason);
            }
            // Nobody can have begun before the claim: our watch is behind, and will show it.
            Some(_) | None => self.resume = Some(resume),
        }
    }

    /// The list is complete, and what another process was at is not in it.
    pub(super) fn resume_from_nothing(&mut self) {
        if !self.listed || self.held {
            return;
        }
        let missing = |resume: &mut Resume| !self.events.contains_key(&resume.id);
        if let Some(resume) = self.resume.take_if(missing) {
            let reason = format!("LifecycleEvent {} is gone", resume.name);
            self.lose(resume, reason);
        }
    }

    fn lose(&mut self, resume: Resume, reason: String) {
        if !resume.finished {
            self.outputs.push_back(Output::Demand(Demand::Lost {
                id: resume.id,
                reason,
            }));
        }
    }
}
