//! The drain engine: what happens to a node's pods, decided without doing any of it.
//!
//! The engine is sans-I/O. It has no clock, no threads, no network, no randomness, no hash order and no
//! dependencies; it is `no_std` and builds for bare wasm. The driver passes in what happened and asks what to do:
//!
//! ```text
//!              handle_events(now, events)          poll_command() -> what to do (cordon, ask, evict, save …)
//!   edges  ──► handle_timeout(now)      ──► Drain ──► poll_timeout() -> when to call handle_timeout
//!                                                   poll_notice()  -> what to report
//! ```
//!
//! The same calls in the same order give the same commands: a bug report is a list of events.
//! It must not know Kubernetes' wire formats, wasm, or who asked for the drain.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod authors;
mod budget;
mod check;
mod checkpoint;
mod command;
mod drain;
mod event;
mod filter;
mod force;
mod hook;
mod loosening;
mod node;
mod notice;
mod outcome;
mod phase;
mod plan;
mod pod;
mod reason;
mod request;
mod selector_index;
mod surge;
mod text;
mod time;
mod timeline;
mod trigger;
mod uid_map;
mod volume;

pub use authors::signed;
pub use budget::{
    Amount, Budget, BudgetLimit, GoverningBudget, Operator, Requirement, Selector, UnhealthyPods,
};
pub use check::check;
pub use checkpoint::{Begun, Checkpoint, Counts, SavedHook, ToUndo};
pub use command::{Command, CommandId, Removal, Task};
pub use drain::Drain;
pub use event::{Answer, Event, EvictAnswer, PlanAnswer};
pub use filter::draft;
pub use force::{ForceAtDeadline, ForcedPods};
pub use hook::{HookPhase, HookStep, StepOutcome, Subject, WaitingOn};
pub use loosening::{Loosened, Ruling, loosened};
pub use node::{Condition, Node};
pub use notice::Notice;
pub use outcome::{Blocker, HeldUp, Outcome, Summary, Totals};
pub use phase::Phase;
pub use plan::{Decision, Plan, PlanFault, Verdict, Wave};
pub use pod::{Controller, Deletion, MIRROR_ANNOTATION, Pod, PodPhase, PodRef, Uid};
pub use reason::Reason;
pub use request::digest_of_pods;
pub use request::{Filters, Intent, LEAST_RACES, LocalData, NamedPods, PolicyInfo, Request, Settings};
pub use selector_index::SelectorIndex;
pub use surge::{
    DeploymentRef, NotSurged, Raised, Surge, SurgeMethod, SurgePlan, SurgeSettings, SurgeStep, surge_mark,
};
pub use text::{and_more, named};
pub use time::{HumanDuration, Time, whole_millis};
pub use timeline::{Reading, Timeline};
pub use trigger::Trigger;
pub use volume::{AttachedVolume, VolumeClaim, VolumeWait, VolumesLeft};
