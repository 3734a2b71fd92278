//! What a watch shows of a LifecycleEvent that was made a moment ago. It must not know what follows from that.

use scupper_api::LifecycleEvent;
use scupper_report::NodeStatus;

/// One LifecycleEvent, as far as the watch has shown it.
#[derive(Debug, Default)]
pub(super) struct EventPresence {
    was_there: bool,
}

/// What is shown of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Presence<'a> {
    /// Nothing so far, or nothing since it was gone. The node's own watch may be ahead of that of LifecycleEvents.
    NotYet,
    /// It is there.
    Here(&'a LifecycleEvent),
    /// It was there, and now it is not: it was deleted, or the API server shows it no longer. Said once.
    Gone,
}

impl EventPresence {
    pub(super) fn observe<'a>(&mut self, event: &str, status: &'a NodeStatus) -> Presence<'a> {
        match status.lifecycle_events.iter().find(|known| known.name == event) {
            Some(known) => {
                self.was_there = true;
                Presence::Here(known)
            }
            None if std::mem::take(&mut self.was_there) => Presence::Gone,
            None => Presence::NotYet,
        }
    }
}

#[cfg(test)]
mod tests {
    use scupper_api::ClaimStatus;
    use scupper_engine::Phase;

    use super::*;
    use scupper_report::fixture;

    fn status(names: &[&str]) -> NodeStatus {
        let event = |name: &&str| LifecycleEvent {
            name: (*name).to_owned(),
            transition: "drain".into(),
            claim: ClaimStatus::Pending,
            ..LifecycleEvent::default()
        };
        NodeStatus {
            lifecycle_events: names.iter().map(event).collect(),
            ..fixture::status(fixture::mark("LifecycleEvent", Phase::Evicting))
        }
    }

    #[test]
    fn an_event_not_yet_visible_is_not_gone() {
        let mut presence = EventPresence::default();
        for before in [&[][..], &["another"]] {
            assert_eq!(presence.observe("ours", &status(before)), Presence::NotYet);
        }
        let both = status(&["another", "ours"]);
        assert_eq!(
            presence.observe("ours", &both),
            Presence::Here(&both.lifecycle_events[1])
        );
        assert_eq!(presence.observe("ours", &status(&["another"])), Presence::Gone);
        assert_eq!(presence.observe("ours", &status(&[])), Presence::NotYet);
    }
}
