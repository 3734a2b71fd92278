//! A process that waits for its turn reads the node early and gets the Lease late: its copy of the node is that old.

use scupper_engine::{Checkpoint, Event, Intent, Node, Outcome};

use crate::rng::Rng;
use crate::scenario::Mood;
use crate::world::World;

/// The checkpoints that the node has had in this episode.
#[derive(Debug)]
pub(crate) struct Copies {
    /// How often a process has waited for its turn, in a thousand.
    waits: u32,
    marks: Vec<Option<Checkpoint>>,
}

impl Copies {
    pub(crate) const fn new(waits: u32) -> Self {
        Self {
            waits,
            marks: Vec::new(),
        }
    }

    pub(crate) fn begin_episode(&mut self) {
        self.marks = vec![None];
    }

    /// The node has this checkpoint now.
    pub(crate) fn written(&mut self, mark: Option<&Checkpoint>) {
        self.marks.push(mark.cloned());
    }

    /// A process dies between the last write of its drain and its report.
    const fn dies_at_its_end(&self, rng: &mut Rng) -> bool {
        rng.chance(self.waits / 4)
    }

    /// The copy of a process that starts now; the newest is as likely as any other.
    fn remembered(&self, rng: &mut Rng) -> Option<Checkpoint> {
        if !rng.chance(self.waits) {
            return None;
        }
        rng.pick(&self.marks).cloned().flatten()
    }
}

impl World {
    /// The drain has succeeded, and its process dies before it reports that. The next one learns that the request is
    /// over: the success must stand.
    pub(crate) fn dies_at_its_end(&mut self) -> bool {
        let outcome = self.drain.as_ref().and_then(scupper_engine::Drain::outcome);
        let is_drained = self.request.intent == Intent::Drain && outcome == Some(&Outcome::Drained);
        let may_die = is_drained && self.scenario.mood == Mood::Wild && self.stop.is_none();
        if !may_die || !self.copies.dies_at_its_end(&mut self.rng) {
            return false;
        }
        self.coverage.count("ending", "died at its end");
        self.stop = Some(Event::Lost {
            reason: String::from("the request is over"),
        });
        self.kill("at its end");
        true
    }

    /// The checkpoint from which the process that starts now continues, and the one that the node truly has.
    pub(crate) fn left_behind(&mut self) -> (Option<Checkpoint>, Option<Checkpoint>) {
        let remembered = self.copies.remembered(&mut self.rng);
        let node: Option<Node> = self.cluster.node_event();
        let id = &self.request.id;
        let mut truth = node.as_ref().and_then(|node| node.checkpoint.clone());
        truth = truth.filter(|mark| mark.id == *id);
        if let Some(copy) = &remembered {
            let same_node = node.as_ref().map(|node| &node.uid) == Some(&copy.node);
            if same_node && truth.as_ref() != Some(copy) {
                self.coverage.count("ending", "taken over with a stale copy");
            } else if !same_node {
                truth.clone_from(&remembered);
            }
        }
        let found = Checkpoint::to_go_on_from(id, remembered, node.as_ref());
        (found, truth)
    }
}
