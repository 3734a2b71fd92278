//! Requests that wait until the running drain has ended. Only one drain of the node runs at a time.

use std::collections::VecDeque;

use scupper_engine::Time;
use scupper_triggers::TriggerRequest;

/// The requests that wait, the oldest first.
#[derive(Debug, Default)]
pub(super) struct WaitingRequests {
    queue: VecDeque<TriggerRequest>,
    /// The drain that a former process left was continued or dropped by its trigger, or there is none.
    is_left_settled: bool,
}

/// When a request begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing is before it.
    Now(TriggerRequest),
    /// It waits.
    Later,
    /// It runs or waits already.
    Known,
}

impl WaitingRequests {
    /// A trigger asks for a drain. `current`: the drain that runs. `left`: the drain that a former process left on the node
    /// and that its trigger continues or drops. It goes first, whichever trigger is quicker: the mark of another drain
    /// would replace its own, and with it what its hooks have done and whose the cordon is.
    pub(super) fn admit(
        &mut self,
        request: TriggerRequest,
        current: Option<&str>,
        left: Option<&str>,
    ) -> Turn {
        if current == Some(&request.id) {
            return Turn::Known;
        }
        self.is_left_settled |= left.is_none_or(|left| left == request.id);
        if current.is_none() && self.is_left_settled {
            Turn::Now(request)
        } else if self.queue.iter().any(|waiting| waiting.id == request.id) {
            Turn::Known
        } else {
            self.queue.push_back(request);
            Turn::Later
        }
    }

    /// The drain of this request has ended elsewhere: nothing waits for it any more.
    pub(super) fn settle(&mut self, id: &str, left: Option<&str>) {
        self.is_left_settled |= left.is_none_or(|left| left == id);
    }

    /// Moves the deadline of a request that waits.
    pub(super) fn move_deadline(&mut self, id: &str, deadline: Option<Time>) {
        for waiting in self.queue.iter_mut().filter(|waiting| waiting.id == id) {
            waiting.deadline = deadline;
        }
    }

    /// A request that was withdrawn or has ended never begins. `true`: it waited.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        let before = self.queue.len();
        self.queue.retain(|waiting| waiting.id != id);
        self.queue.len() < before
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
    }

    /// The next request.
    pub(super) fn next(&mut self) -> Option<TriggerRequest> {
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use scupper_engine::Intent;

    use super::*;

    fn request(id: &str) -> TriggerRequest {
        TriggerRequest {
            id: id.to_owned(),
            name: id.to_owned(),
            trigger: "LifecycleEvent".to_owned(),
            intent: Intent::Drain,
            deadline: None,
            flags: None,
            only_pods: None,
        }
    }

    /// Asks while another drain runs.
    fn waits(waiting: &mut WaitingRequests, id: &str) -> bool {
        waiting.admit(request(id), Some("other"), None) == Turn::Later
    }

    #[test]
    fn requests_begin_in_the_order_in_which_they_came_and_once() {
        let mut waiting = WaitingRequests::default();
        assert!(waits(&mut waiting, "a"));
        assert!(waits(&mut waiting, "b"));
        assert!(!waits(&mut waiting, "a"));
        assert!(waits(&mut waiting, "c"));
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
        waits(&mut waiting, "a");
        waits(&mut waiting, "b");
        let deadline = Some(Time::from_millis(60_000));
        waiting.move_deadline("b", deadline);
        assert_eq!(waiting.next().unwrap().deadline, None);
        assert_eq!(waiting.next().unwrap().deadline, deadline);
    }

    /// Three triggers after a restart, in every order: one of them has found its drain on the node.
    struct Restart {
        seed: u64,
        left: Option<String>,
        /// What the triggers are about to say: a drain to begin, or that the one on the node is over.
        commands: Vec<(String, bool)>,
        waiting: WaitingRequests,
        current: Option<String>,
        begun: Vec<String>,
    }

    impl Restart {
        fn new(seed: u64) -> Self {
            let mut restart = Self {
                seed: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
                left: None,
                commands: Vec::new(),
                waiting: WaitingRequests::default(),
                current: None,
                begun: Vec::new(),
            };
            let triggers = ["event", "request", "cordon"];
            restart.left = triggers.get(restart.below(4)).map(|left| format!("{left}-0"));
            for trigger in triggers {
                let first = usize::from(restart.left.as_deref() != Some(&format!("{trigger}-0")));
                let is_over = first == 0 && restart.below(3) == 0;
                for number in first..first + restart.below(3) + usize::from(first == 0) {
                    restart
                        .commands
                        .push((format!("{trigger}-{number}"), is_over && number == 0));
                }
            }
            restart
        }

        fn below(&mut self, bound: usize) -> usize {
            self.seed ^= self.seed << 13;
            self.seed ^= self.seed >> 7;
            self.seed ^= self.seed << 17;
            usize::try_from(self.seed % 1_000_003).unwrap() % bound
        }

        /// As the manager does.
        fn asks(&mut self, id: &str) {
            let turn = self
                .waiting
                .admit(request(id), self.current.as_deref(), self.left.as_deref());
            if let Turn::Now(begins) = turn {
                assert_eq!(self.current, None, "two drains at once");
                self.begun.push(begins.id.clone());
                self.current = Some(begins.id);
            }
        }

        fn ends(&mut self) {
            self.current = None;
            if let Some(next) = self.waiting.next() {
                self.asks(&next.id);
            }
        }

        fn plays(mut self) {
            let expected = self.commands.len();
            while !self.commands.is_empty() || self.current.is_some() {
                if self.current.is_some() && (self.commands.is_empty() || self.below(2) == 0) {
                    self.ends();
                    continue;
                }
                let at = self.below(self.commands.len());
                let (id, is_over) = self.commands.remove(at);
                if is_over {
                    assert_eq!(self.begun, [""; 0], "before the drain on the node was dropped");
                    self.waiting.settle(&id, self.left.as_deref());
                    self.begun.push(id.clone());
                    self.current = Some(id);
                } else {
                    self.asks(&id);
                }
            }
            assert_eq!(self.begun.len(), expected, "{:?}", self.begun);
            if let Some(left) = &self.left {
                assert_eq!(self.begun.first(), Some(left), "{:?}", self.begun);
            }
        }
    }

    #[test]
    fn what_a_former_process_left_goes_first_whichever_trigger_is_quicker() {
        for seed in 1..5_000 {
            Restart::new(seed).plays();
        }
    }
}
