//! The outcome of a step that could not continue.

use std::time::Duration;

use scupper_sdk::credential::Rejected;
use scupper_sdk::{Call, Outcome, Phase, Timestamp};

use crate::cloud::{Cloud, REQUESTS, STEP};
use crate::settings::Settings;
use crate::state::HookState;
use crate::step_error::StepError;

/// The delay before retrying an error that may pass.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest delay of a cancel, which has 15 s in all.
const IN_A_CANCEL: Duration = Duration::from_secs(1);
/// How often to log in again within `token-timeout`. Keystone may lock an account after a number of failed logins.
const LOGINS: u32 = 4;

/// What this hook knows of its credential.
#[derive(Clone, Copy)]
pub(crate) struct CredentialState {
    /// Since when it is rejected.
    rejected: Option<Timestamp>,
    /// Keystone accepted it in this hook.
    was_accepted: bool,
    /// Nova allowed what a drain needs.
    was_allowed: bool,
}

impl CredentialState {
    /// As the previous step left it. A step that ends well forgets that it was rejected.
    pub(crate) fn of(call: &Call, hook_state: &mut HookState) -> Self {
        let is_uncordon = matches!(call.phase, Phase::BeforeUncordon | Phase::AfterUncordon);
        Self {
            rejected: hook_state.rejected.take(),
            was_accepted: hook_state.session.is_some(),
            was_allowed: hook_state.disabled.is_some() || call.phase.follows_before_drain() || is_uncordon,
        }
    }

    /// Keystone may have accepted it in this step.
    pub(crate) const fn seen_by(self, cloud: &Cloud<'_>) -> Self {
        Self {
            was_accepted: self.was_accepted || cloud.session.is_some(),
            ..self
        }
    }

    /// Errors that may pass are retried until the drain's own deadline, a rejected credential until `token-timeout`.
    pub(crate) fn outcome(
        self,
        call: &Call,
        settings: &Settings,
        hook_state: &mut HookState,
        step_error: StepError,
    ) -> Outcome {
        hook_state.rejected = self.rejected;
        let longest = if call.phase == Phase::OnCancel {
            IN_A_CANCEL
        } else {
            Duration::MAX
        };
        let (message, was_accepted, again) = match step_error {
            StepError::Retry { message, after } => {
                let after = after.unwrap_or(PATIENCE).min(longest);
                return Outcome::pending(message).again_after(after).into();
            }
            StepError::NextStep => {
                let words = format!(
                    "reached a step's limit for Nova ({REQUESTS} requests, {} s); the next step begins anew: Nova is slow, or its lists are long",
                    STEP / 1000
                );
                let after = settings.poll.min(PATIENCE).min(longest);
                return Outcome::pending(words).again_after(after).into();
            }
            StepError::Forbidden(message) if self.was_allowed || call.phase == Phase::OnCancel => {
                (message, true, settings.poll)
            }
            StepError::Fatal(message) | StepError::Forbidden(message) => {
                return Outcome::failed(message).into();
            }
            StepError::Rejected(message) => {
                let pause = settings.token_timeout.length() / LOGINS;
                (message, self.was_accepted, pause.max(settings.poll))
            }
        };
        let rejected = Rejected {
            error: &message,
            credential: "credential",
            system: "Nova",
            was_accepted,
        };
        match settings
            .token_timeout
            .wait(call, &rejected, &mut hook_state.rejected)
        {
            Ok(pending) => pending.again_after(again).into(),
            Err(failure) => failure.into(),
        }
    }
}
