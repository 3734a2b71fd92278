//! What a hook has found out about each pod, yes or no, in a few bytes of its state.

use crate::Pod;

/// The host keeps 1024 bytes of state.
const MOST: usize = 255;

/// One number for each pod: a hash of its UID, and in the lowest bit the answer.
#[derive(Debug, Default)]
pub(crate) struct Known(Vec<u32>);

impl Known {
    /// Reads what [`state`](Self::state) has written.
    pub(crate) fn read(state: &[u8]) -> Self {
        let (numbers, _) = state.as_chunks();
        Self(numbers.iter().copied().map(u32::from_le_bytes).collect())
    }

    pub(crate) fn state(&self) -> Vec<u8> {
        self.0.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// The answer; `None`: it is not known.
    pub(crate) fn get(&self, pod: &Pod) -> Option<bool> {
        let hash = hash(pod);
        let found = self.0.iter().find(|number| **number | 1 == hash);
        found.map(|number| *number == hash)
    }

    /// Adds an answer and returns it. A full list stays as it is.
    pub(crate) fn add(&mut self, pod: &Pod, answer: bool) -> bool {
        if self.0.len() < MOST {
            self.0.push(if answer { hash(pod) } else { hash(pod) ^ 1 });
        }
        answer
    }
}

/// FNV-1a of the UID, with the lowest bit set.
fn hash(pod: &Pod) -> u32 {
    let hash = pod.uid.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod;

    #[test]
    fn answers_survive_between_two_steps() {
        let pods = ["a/a", "a/b", "b/a"].map(pod);
        let mut known = Known::default();
        assert!(known.add(&pods[0], true));
        assert!(!known.add(&pods[1], false));
        let known = Known::read(&known.state());
        let answers = pods.each_ref().map(|pod| known.get(pod));
        assert_eq!(answers, [Some(true), Some(false), None]);
    }

    #[test]
    fn the_state_fits_however_many_pods_there_are() {
        let mut known = Known::default();
        let pods: Vec<_> = (0..300).map(|number| pod(&format!("a/{number}"))).collect();
        for pod in &pods {
            known.add(pod, true);
        }
        assert!(known.state().len() <= 1024);
        assert_eq!(known.get(&pods[0]), Some(true));
        assert_eq!(known.get(&pods[299]), None);
    }
}
