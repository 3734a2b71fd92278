//! Volumes that are attached to the node, and how long a drain waits for them after its last pod.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::named;

/// Texts name at most this many volumes, and count the others.
const NAMED: usize = 8;

/// How long a drain waits for the node's volumes to be detached once its pods are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VolumeWait {
    /// The longest wait.
    pub at_most: Duration,
    /// If volumes are still attached then, the drain fails; otherwise it ends as Drained and names them.
    pub or_fail: bool,
}

/// A volume that is attached to the node: a `VolumeAttachment`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AttachedVolume {
    /// The attachment's name.
    pub attachment: String,
    /// The name of its PersistentVolume; empty: the volume has none.
    pub volume: String,
    /// The claim that is bound to it; `None`: none is, or that is not known.
    pub claim: Option<VolumeClaim>,
    /// The driver that attaches and detaches it, such as `ebs.csi.aws.com`.
    pub attacher: String,
    /// Why detaching failed; empty: it has not failed.
    pub problem: String,
}

/// A `PersistentVolumeClaim`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VolumeClaim {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Why the volumes do not count as detached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumesLeft {
    /// These are attached. Never empty.
    Attached(Vec<AttachedVolume>),
    /// They could not be read.
    Unknown {
        /// Why.
        message: String,
    },
}

impl VolumesLeft {
    /// The volumes that are known to be attached.
    pub fn attached(&self) -> &[AttachedVolume] {
        match self {
            Self::Attached(volumes) => volumes,
            Self::Unknown { .. } => &[],
        }
    }
}

impl fmt::Display for VolumesLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attached(volumes) => {
                let noun = if volumes.len() == 1 { "volume" } else { "volumes" };
                write!(
                    f,
                    "{} {noun} still attached: {}",
                    volumes.len(),
                    named(volumes, NAMED)
                )
            }
            Self::Unknown { message } => write!(f, "cannot read VolumeAttachments: {message}"),
        }
    }
}

impl fmt::Display for AttachedVolume {
    /// `pvc-1 (claim shop/data-0)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.volume.is_empty() {
            &self.attachment
        } else {
            &self.volume
        };
        f.write_str(name)?;
        match (&self.claim, self.problem.as_str()) {
            (None, "") => Ok(()),
            (Some(claim), "") => write!(f, " (claim {claim})"),
            (None, problem) => write!(f, " (detaching failed: {problem})"),
            (Some(claim), problem) => write!(f, " (claim {claim}, detaching failed: {problem})"),
        }
    }
}

impl fmt::Display for VolumeClaim {
    /// `namespace/name`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
