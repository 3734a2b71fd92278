//! Making the cordon, finding one, and seeing it lifted.
//!
//! The client that cordons first owns the cordon, and we lift only a cordon of ours. A cordon that a command made ahead of
//! the drain is not there for the drain until that comes to its own: the hooks before it run, and what ends the drain
//! before lifts it.

use alloc::boxed::Box;

use super::Drain;
use super::cordon_state::Cordon;
use super::outbox::Job;
use super::writes::Write;
use crate::{Checkpoint, HookPhase, Notice, Phase, Subject, Task};

impl Drain {
    /// Hooks run before the cordon. The write that cordons also saves that the last of them has finished.
    pub(super) fn prepare(&mut self) {
        let open = self.gate(HookPhase::BeforeCordon, &Subject::Node).is_open();
        if open || self.are_done(HookPhase::BeforeCordon, &Subject::Node) {
            self.enter(Phase::Cordoning);
        }
    }

    /// Cordons the node, or finds it cordoned. It decides again for every observed state of the node: the first to
    /// cordon owns the cordon.
    pub(super) fn cordon(&mut self) {
        let Some(node) = self.cluster.node() else {
            return;
        };
        if !node.unschedulable {
            self.make_cordon();
            return;
        }
        if !self.cordon.is_decided() {
            self.find_cordon();
        }
        if self.checkpoint_state.is_all_saved() {
            let ours = self.cordon.is_ours();
            self.outbox.notify(Notice::Cordoned { ours });
            self.enter(Phase::Holding);
        }
    }

    fn make_cordon(&mut self) {
        // Where our mark is, we made it, before its answer came or although none did, and another client has lifted it.
        // An answer that comes later is no news then.
        if self.mark().is_some_and(|mark| mark.own_cordon && !mark.ahead) {
            self.checkpoint_state.set_on_node(true);
            self.enter(Phase::Holding);
            self.uncordoned_by_others();
            return;
        }
        self.cordon.forget();
        if !self.are_done(HookPhase::BeforeCordon, &Subject::Node) {
            // It looked as if there were nothing to cordon, and now there is.
            self.enter(Phase::Preparing);
            return;
        }
        let Some((node, version)) = self.version_to_write() else {
            return;
        };
        let checkpoint = self.checkpoint(node.clone(), Phase::Holding, true);
        let revision = self.checkpoint_state.revision();
        let task = Task::Cordon {
            node,
            checkpoint: checkpoint.clone(),
            version: version.clone(),
        };
        let checkpoint = Box::new(checkpoint);
        self.cordon.ask();
        self.outbox.push(
            task,
            Job::Write(Write::Cordon {
                checkpoint,
                revision,
                version,
            }),
        );
    }

    /// This drain's checkpoint on the node.
    fn mark(&self) -> Option<&Checkpoint> {
        let mark = self.cluster.node()?.checkpoint.as_ref()?;
        (mark.id == self.request.id).then_some(mark)
    }

    /// A command cordoned the node ahead of its drain, and this one has not come to its own cordon.
    pub(super) fn is_cordoned_ahead(&self) -> bool {
        let mark = self.cluster.node().and_then(|node| node.checkpoint.as_ref());
        let is_open = !self.cordon.is_decided() && self.cordon.found_counts();
        self.cluster.is_cordoned() && is_open && mark.is_some_and(|mark| mark.ahead)
    }

    /// The checkpoint on the node of a cordon that this drain has found: of another drain, or made ahead of this one.
    fn found_mark(&self) -> Option<&Checkpoint> {
        let mark = self.cluster.node()?.checkpoint.as_ref()?;
        (mark.id != self.request.id || mark.ahead).then_some(mark)
    }

    /// The node is cordoned already: by a write of ours whose answer was lost, by an earlier drain of ours, or by
    /// others. A late mark of this drain may say that the cordon is an earlier drain's. That of an
    /// earlier drain that never ended has no other owner than this drain, which lifts it when it is cancelled.
    fn find_cordon(&mut self) {
        let mark = self.cluster.node().and_then(|node| node.checkpoint.as_ref());
        let of_this_drain = mark.is_some_and(|mark| mark.id == self.request.id && !mark.ahead);
        let counts = of_this_drain || self.cordon.found_counts();
        let ours = counts && mark.is_some_and(|mark| mark.own_cordon);
        let inherited =
            mark.is_some_and(|mark| mark.inherited || (!of_this_drain && mark.leaves_its_cordon()));
        self.cordon.find(match (ours, inherited) {
            (true, false) => Cordon::Ours,
            (true, true) => Cordon::Inherited,
            (false, _) => Cordon::Foreign,
        });
        if ours && of_this_drain {
            self.checkpoint_state.set_on_node(true);
        } else {
            self.checkpoint_state.change();
        }
    }

    /// Our cordon is made. If that is no news, events have shown it already, and perhaps what came after it.
    pub(super) fn cordon_written(&mut self, news: bool) {
        let cordoning = self.phase == Phase::Cordoning;
        if news {
            self.cordon.make();
        } else if !cordoning && !self.cordon.is_decided() {
            self.recognize_cordon();
        }
        // Whether it still stands or was lifted already: it is not made again.
        if cordoning && (news || !self.cluster.is_cordoned()) {
            self.outbox.notify(Notice::Cordoned { ours: true });
            self.enter(Phase::Holding);
            if !self.cluster.is_cordoned() {
                self.uncordoned_by_others();
            }
        }
    }

    /// What a new state of the node says of a cordon of ours whose answer has not come, or was lost. Once the node
    /// has moved on from the state it was decided on, it has been made or never will be. Where our mark stands
    /// without the cordon, it was made and lifted: the next one is not ours, whatever answer comes. The same is true of the
    /// mark of an earlier drain, whose cordon this one would inherit.
    pub(super) fn settle_cordon(&mut self) {
        let was_made = self.mark().is_some_and(|mark| mark.own_cordon && !mark.ahead);
        let was_found = self.found_mark().is_some_and(|mark| mark.own_cordon);
        if was_found && !self.cluster.is_cordoned() {
            self.cordon.found_is_lifted();
            if self.cordon.is_unknown() {
                self.cordon.lift();
                self.checkpoint_state.change();
            }
        }
        if was_made && !self.cluster.is_cordoned() {
            if self.cordon.is_ours() {
                // An earlier process made it.
                self.checkpoint_state.change();
            }
            if self.cordon.is_ours() || !self.cordon.is_decided() {
                self.cordon.lift();
            }
            self.checkpoint_state.set_on_node(true);
        }
        let version = self.cluster.node().map(|node| &node.resource_version);
        if self.cordon.is_outdated_by(version) {
            self.recognize_cordon();
        }
    }

    /// A cordon with this drain's mark is ours; the mark without the cordon is to be taken away.
    pub(super) fn recognize_cordon(&mut self) {
        let mark = self.mark().map(|mark| (mark.own_cordon, mark.inherited));
        if mark.is_some() {
            self.checkpoint_state.set_on_node(true);
        }
        if let Some((true, inherited)) = mark
            && self.cluster.is_cordoned()
        {
            self.cordon.find(if inherited {
                Cordon::Inherited
            } else {
                Cordon::Ours
            });
        } else if !self.cordon.is_decided() {
            self.cordon.find(Cordon::Unknown);
        }
    }

    /// Another client lifted the cordon: the next one is not ours.
    pub(super) fn uncordoned_by_others(&mut self) {
        self.cordon.lift();
        self.checkpoint_state.change();
        self.outbox.notify(Notice::UncordonedByOthers);
    }
}
