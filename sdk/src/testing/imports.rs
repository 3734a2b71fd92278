//! The imports of a policy, served by the stand-in. The signatures are those of the generated bindings.

pub(crate) mod log {
    use crate::{log::Level, testing::state};

    pub(crate) fn write(level: Level, message: &str) {
        state::with(|state| state.log.push((level, message.to_owned())));
    }
}

pub(crate) mod config {
    use crate::testing::state;

    pub(crate) fn get(key: &str) -> Option<String> {
        state::with(|state| state.config.get(key).cloned())
    }

    pub(crate) fn keys() -> Vec<String> {
        state::with(|state| state.config.keys().cloned().collect())
    }
}

pub(crate) mod cluster {
    use crate::{
        Entry, Node, Pod,
        bindings::imports::scupper::drain::cluster::Error,
        testing::state::{self, State},
    };

    pub(crate) fn get_node() -> Result<Node, Error> {
        call(|state| Ok(state.node.clone()))
    }

    pub(crate) fn list_pods() -> Result<Vec<Pod>, Error> {
        call(|state| Ok(state.pods.clone()))
    }

    pub(crate) fn set_node_annotation(key: &str, value: &str) -> Result<(), Error> {
        write("node-annotations", key, |state| {
            state::set(&mut state.node.annotations, key, value);
            Ok(())
        })
    }

    pub(crate) fn remove_node_annotation(key: &str) -> Result<(), Error> {
        write("node-annotations", key, |state| {
            state::remove(&mut state.node.annotations, key);
            Ok(())
        })
    }

    pub(crate) fn set_pod_annotation(pod: &str, key: &str, value: &str) -> Result<(), Error> {
        write("pod-annotations", key, |state| {
            state::set(annotations(state, pod)?, key, value);
            Ok(())
        })
    }

    pub(crate) fn remove_pod_annotation(pod: &str, key: &str) -> Result<(), Error> {
        write("pod-annotations", key, |state| {
            state::remove(annotations(state, pod)?, key);
            Ok(())
        })
    }

    fn annotations<'a>(state: &'a mut State, uid: &str) -> Result<&'a mut Vec<Entry>, Error> {
        let pod = state.pods.iter_mut().find(|pod| pod.uid == uid);
        pod.map(|pod| &mut pod.annotations)
            .ok_or_else(|| Error::NotFound(format!("pod {uid}")))
    }

    fn write(
        capability: &str,
        key: &str,
        act: impl FnOnce(&mut State) -> Result<(), Error>,
    ) -> Result<(), Error> {
        call(|state| {
            let granted = state
                .grants
                .iter()
                .flatten()
                .any(|grant| grant.capability == capability && key.starts_with(&grant.target));
            if granted {
                act(state)
            } else {
                Err(Error::NotGranted(format!("{capability} {key}")))
            }
        })
    }

    fn call<T>(act: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
        state::with(|state| match (&state.grants, &state.outage) {
            (None, _) => Err(Error::NotGranted("a planner has no cluster".to_owned())),
            (_, Some(message)) => Err(Error::Unavailable(message.clone())),
            (Some(_), None) => act(state),
        })
    }
}
