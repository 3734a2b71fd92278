//! Requests that wait until the running drain has ended. Only one drain of the node runs at a time.

use std::collections::VecDeque;

use scupper_engine::Time;
use scupper_triggers::DrainRequest;

/// The requests that wait, the oldest first.
#[derive(Debug, Default)]
pub(super) struct WaitingRequests(VecDeque<DrainRequest>);

impl WaitingRequests {
    /// Adds a request; `false`: it waits already.
    pub(super) fn add(&mut self, request: DrainRequest) -> bool {
        let is_new = self.0.iter().all(|waiting| waiting.id != request.id);
        if is_new {
            self.0.push_back(request);
        }
        is_new
    }

    /// Moves the deadline of a request that waits.
    pub(super) fn move_deadline(&mut self, id: &str, deadline: Option<Time>) {
        for waiting in self.0.iter_mut().filter(|waiting| waiting.id == id) {
            waiting.deadline = deadline;
        }
    }

    /// A request that was withdrawn or has ended never begins. `true`: it waited.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|waiting| waiting.id != id);
        self.0.len() < before
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The next request.
    pub(super) fn next(&mut self) -> Option<DrainRequest> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use scupper_engine::Intent;

    use super::*;

    fn request(id: &str) -> DrainRequest {
        DrainRequest {
            id: id.to_owned(),
            name: id.to_owned(),
            trigger: "LifecycleEvent".to_owned(),
            intent: Intent::Drain,
            deadline: None,
            flags: None,
            only_pods: None,
        }
    }

    #[test]
    fn requests_begin_in_the_order_in_which_they_came_and_once() {
        let mut waiting = WaitingRequests::default();
        assert!(waiting.add(request("a")));
        assert!(waiting.add(request("b")));
        assert!(!waiting.add(request("a")));
        assert!(waiting.add(request("c")));
        assert!(waiting.remove("b"));
        assert!(!waiting.remove("b"));
        let order: Vec<_> = std::iter::from_fn(|| waiting.next())
            .map(|next| next.id)
            .collect();
        assert_eq!(order, ["a", "c"]);
    }

    #[test]
    fn a_deadline_that_moves_while_its_request_waits_is_kept() {
        let mut waiting = WaitingRequests::default();
        waiting.add(request("a"));
        waiting.add(request("b"));
        let deadline = Some(Time::from_millis(60_000));
        waiting.move_deadline("b", deadline);
        assert_eq!(waiting.next().unwrap().deadline, None);
        assert_eq!(waiting.next().unwrap().deadline, deadline);
    }
}
