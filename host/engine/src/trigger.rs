//! The triggers of a drain.

/// The trigger of a drain. Requests, checkpoints and reports hold its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A LifecycleEvent. A name that this version does not know counts as one: the driver continues such a drain.
    LifecycleEvent,
    /// A DrainRequest.
    DrainRequest,
    /// A cordon by a user or another program.
    Cordon,
    /// A command that drains in its own process.
    Command,
}

impl Trigger {
    /// Its name in requests and checkpoints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LifecycleEvent => "LifecycleEvent",
            Self::DrainRequest => "DrainRequest",
            Self::Cordon => "cordon",
            Self::Command => "command",
        }
    }

    /// The trigger with this name.
    pub fn of(name: &str) -> Self {
        [Self::DrainRequest, Self::Cordon, Self::Command]
            .into_iter()
            .find(|trigger| trigger.name() == name)
            .unwrap_or(Self::LifecycleEvent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_read_as_its_trigger_and_an_unknown_one_as_a_lifecycle_event() {
        let all = [
            Trigger::LifecycleEvent,
            Trigger::DrainRequest,
            Trigger::Cordon,
            Trigger::Command,
        ];
        for trigger in all {
            assert_eq!(Trigger::of(trigger.name()), trigger);
        }
        assert_eq!(Trigger::of("remote"), Trigger::LifecycleEvent);
    }
}
