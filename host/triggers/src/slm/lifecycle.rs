//! LifecycleEvents as the trigger gets them: with drain settings that are parsed already. It must not know the form of
//! these settings.

use scupper_api::Change;

use crate::RequestedSettings;

/// The drain settings of an event, or the problem with them.
pub type EventFlags = Result<RequestedSettings, String>;

/// A LifecycleEvent that is bound to this node.
pub type LifecycleEvent = scupper_api::LifecycleEvent<EventFlags>;

/// One version of a LifecycleEvent.
pub type VersionedEvent = scupper_api::VersionedEvent<EventFlags>;

/// A change from the watch of events whose `spec.bindingNode` is this node; of a deleted one its UID.
pub type LifecycleChange = Change<LifecycleEvent, String>;

/// A change from the watch of transitions whose `spec.driver` is this driver; of a deleted one its name.
pub type TransitionChange = Change<scupper_api::LifecycleTransition, String>;

/// The drain settings of an event, if they are valid.
pub(super) fn valid_flags(event: &LifecycleEvent) -> Option<&RequestedSettings> {
    event.flags.as_ref()?.as_ref().ok()
}
