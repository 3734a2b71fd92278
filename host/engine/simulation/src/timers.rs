//! Everything that can happen in a world at a given time.

use scupper_engine::{Answer, CommandId, Event, Task, Uid};

use crate::cluster::{Newborn, Owner};

/// A timed event.
#[derive(Debug)]
pub(crate) enum Timer {
    /// The API server or a policy carries a command out.
    Execute {
        incarnation: u32,
        id: CommandId,
        task: Task,
    },
    /// Its answer arrives.
    Answer {
        incarnation: u32,
        id: CommandId,
        answer: Answer,
        snapshot: Option<u64>,
    },
    /// A watch event arrives.
    Watch {
        incarnation: u32,
        stream: Stream,
        epoch: u32,
        event: Event,
        snapshot: Option<u64>,
    },
    /// A watch begins, with a list.
    List { incarnation: u32, stream: Stream },
    /// The cluster changes by itself.
    Chore(Chore),
    /// A fault happens.
    Fault(Fault),
    /// The driver's process starts again.
    Restart { incarnation: u32 },
    /// The driver gets its next order.
    Episode,
    /// The requester has waited long enough.
    Horizon { episode: u32 },
}

/// One of the watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stream {
    Node,
    Pods,
    Budgets,
    /// Begins only once a list has shown volumes.
    Volumes,
}

/// Actions of the cluster's own controllers and kubelets.
#[derive(Clone, Debug)]
pub(crate) enum Chore {
    /// A terminating pod's containers have ended.
    Ended(Uid),
    /// A pod's object is removed.
    Gone(Uid),
    /// A pod's containers end by themselves.
    Finished(Uid),
    /// A controller creates a pod.
    Born(Box<Newborn>),
    /// The disruption controller updates a budget.
    Sync(String),
    /// A replacement of a budget's pod is ready elsewhere.
    Replaced(String),
    /// A namespace's controller deletes its pods.
    Sweep(String),
    /// A Deployment's new pods are ready.
    RolledOut(Uid),
    /// The pod of a Deployment's extra replica is ready.
    RaiseReady(Uid),
    /// A drain of another node comes; the number says which, and what it does.
    OtherDrain(u64),
    /// A drain of another node lets go of a Deployment.
    OtherDrainEnds(Uid),
    /// The attach-detach controller detaches a volume.
    Detach(String),
}

/// Actions of other clients, and failures.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    Cancel,
    Lost,
    /// This many milliseconds from then; `None`: no deadline any more.
    Deadline(Option<u64>),
    Pause,
    Cordon(Owner),
    Uncordon,
    /// Only the node's version changes.
    Touch,
    /// Our annotation is removed.
    Wipe,
    NodeDeleted,
    NodeReplaced,
    Break(Stream),
    Arrival(Box<Newborn>),
    NamespaceDies(String),
    DeletePod(u64),
    BudgetRelaxed(String),
    BudgetDeleted(String),
    Crash,
    /// For this many milliseconds the API server refuses every write, as after a restart.
    Forbidden(u64),
    /// The wall clock of the driver's machine is set, forward or backward by this many milliseconds.
    ClockStep(i64),
    /// An order that found no process, repeated, in the episode of that number.
    Order(u32, Box<Event>),
}
