//! The imports of a policy in native builds. The signatures are those of the generated bindings.

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
        Entry, Node, Pod, Uid,
        bindings::imports::scupper::drain::cluster::Error,
        testing::state::{self, State},
    };

    pub(crate) fn get_cluster_uid() -> Result<Uid, Error> {
        look(|state| state.cluster_uid.clone())
    }

    pub(crate) fn get_node() -> Result<Node, Error> {
        look(|state| state.node.clone())
    }

    pub(crate) fn list_pods() -> Result<Vec<Pod>, Error> {
        look(|state| state.pods.clone())
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
        if let Some(message) = state.denied.get(uid) {
            return Err(Error::Unavailable(message.clone()));
        }
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

    /// A step and a check may look.
    fn look<T>(read: impl FnOnce(&State) -> T) -> Result<T, Error> {
        state::with(|state| match &state.outage {
            _ if state.grants.is_none() => Err(Error::NotGranted("a planner has no cluster".to_owned())),
            Some(message) => Err(Error::Unavailable(message.clone())),
            None => Ok(read(state)),
        })
    }

    fn call<T>(act: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
        state::with(|state| match (&state.grants, &state.outage) {
            _ if state.checks => Err(Error::NotGranted("a check changes nothing".to_owned())),
            (None, _) => Err(Error::NotGranted("a planner has no cluster".to_owned())),
            (_, Some(message)) => Err(Error::Unavailable(message.clone())),
            (Some(_), None) => act(state),
        })
    }
}

pub(crate) mod plan {
    use crate::testing::state;

    pub(crate) fn leaving() -> Vec<String> {
        state::with(|state| state.leaving())
    }

    pub(crate) fn machine_is_off() -> bool {
        state::with(|state| state.hook.is_some() && state.machine_is_off)
    }
}

pub(crate) mod facts {
    use crate::{
        Pod, Uid,
        bindings::imports::scupper::drain::facts::{
            Budget, DrainRequest, Error, Job, Namespace, Owner, PeerGroup, Request, Resources, Volume,
        },
        testing::{
            namespace, resources,
            state::{self, State},
        },
    };

    pub(crate) fn get_request() -> Result<Request, Error> {
        ask("request", |state| {
            Ok(Request {
                trigger: state.drain.trigger.clone(),
                name: state.drain.name.clone(),
                labels: state.request_labels.clone(),
                annotations: state.request_annotations.clone(),
            })
        })
    }

    pub(crate) fn list_drain_requests() -> Result<Vec<DrainRequest>, Error> {
        ask("request", |state| Ok(state.drain_requests.clone()))
    }

    pub(crate) fn get_namespace(name: &str) -> Result<Namespace, Error> {
        ask("namespaces", |state| {
            let set = state.namespaces.iter().find(|namespace| namespace.name == name);
            let has_pods = || state.pods.iter().any(|pod| pod.namespace == name);
            set.cloned()
                .or_else(|| has_pods().then(|| namespace(name)))
                .ok_or_else(|| Error::NotFound(format!("there is no namespace {name}")))
        })
    }

    pub(crate) fn list_budgets() -> Result<Vec<Budget>, Error> {
        ask("budgets", |state| {
            let covers = |budget: &&Budget| state.pods.iter().any(|pod| budget.covers(pod));
            Ok(state.budgets.iter().filter(covers).cloned().collect())
        })
    }

    pub(crate) fn list_owners(uid: &str) -> Result<Vec<Owner>, Error> {
        ask("owners", |state| {
            let pod = shown(state, uid)?;
            let bare = pod.controller.iter().map(|controller| Owner {
                api_version: controller.api_version.clone(),
                kind: controller.kind.clone(),
                name: controller.name.clone(),
                uid: controller.uid.clone(),
                labels: Vec::new(),
                annotations: Vec::new(),
                replicas: None,
                ready_replicas: None,
                strategy: String::new(),
            });
            Ok(state.owners.get(uid).cloned().unwrap_or_else(|| bare.collect()))
        })
    }

    pub(crate) fn get_job(uid: &str) -> Result<Option<Job>, Error> {
        ask("owners", |state| {
            shown(state, uid)?;
            Ok(state.jobs.get(uid).cloned())
        })
    }

    pub(crate) fn get_resources(uid: &str) -> Result<Resources, Error> {
        ask("resources", |state| {
            shown(state, uid)?;
            Ok(state.resources.get(uid).cloned().unwrap_or_else(resources))
        })
    }

    pub(crate) fn list_volumes(uid: &str) -> Result<Vec<Volume>, Error> {
        ask("volumes", |state| {
            shown(state, uid)?;
            Ok(state.volumes.get(uid).cloned().unwrap_or_default())
        })
    }

    pub(crate) fn list_controller_peers(uids: &[Uid]) -> Result<Vec<PeerGroup>, Error> {
        ask("peers", |state| of_pods(state, &state.controller_peers, uids))
    }

    pub(crate) fn list_group_peers(uids: &[Uid]) -> Result<Vec<PeerGroup>, Error> {
        ask("peers", |state| of_pods(state, &state.group_peers, uids))
    }

    /// The groups with one of these pods, and only these of their pods.
    fn of_pods(state: &State, groups: &[PeerGroup], uids: &[Uid]) -> Result<Vec<PeerGroup>, Error> {
        for uid in uids {
            shown(state, uid)?;
        }
        let asked = |group: &PeerGroup| {
            let mut group = group.clone();
            group.pods.retain(|uid| uids.contains(uid));
            (!group.pods.is_empty()).then_some(group)
        };
        Ok(groups.iter().filter_map(asked).collect())
    }

    /// The pod of the call that has this UID.
    fn shown<'a>(state: &'a State, uid: &str) -> Result<&'a Pod, Error> {
        let pod = state.pods.iter().find(|pod| pod.uid == uid);
        pod.ok_or_else(|| Error::NotFound("no pod of this call has the UID".to_owned()))
    }

    fn ask<T>(target: &str, answer: impl FnOnce(&State) -> Result<T, Error>) -> Result<T, Error> {
        state::with(|state| {
            let wanted = state
                .wants
                .iter()
                .any(|grant| grant.capability == "facts" && grant.target == target);
            if !wanted || (state.checks && target != "namespaces") {
                return Err(Error::NotGranted(format!("facts {target}")));
            }
            if let Some(message) = state.outage.clone() {
                state.unread = Some(message.clone());
                return Err(Error::Unavailable(message));
            }
            answer(state)
        })
    }
}

pub(crate) mod events {
    use crate::{
        bindings::imports::scupper::drain::events::{Error, Kind, Regarding},
        testing::state,
    };

    pub(crate) fn emit(regarding: &Regarding, kind: Kind, reason: &str, note: &str) -> Result<(), Error> {
        let (target, about) = match regarding {
            Regarding::Node => ("node", state::with(|state| state.node.name.clone())),
            Regarding::Pod(uid) => ("pods", pod(uid)?),
        };
        state::with(|state| {
            let grants = state.grants.as_ref().filter(|_| !state.checks);
            let grants = grants.ok_or_else(|| Error::NotGranted("only `step` may emit".to_owned()))?;
            let covers = |grant: &&crate::Grant| grant.capability == "events" && grant.target == target;
            if !grants.iter().any(|grant| covers(&grant)) {
                return Err(Error::NotGranted(format!("events {target}")));
            }
            if let Some(message) = &state.outage {
                return Err(Error::Unavailable(message.clone()));
            }
            if reason.is_empty() || !reason.chars().all(|c| c.is_ascii_alphanumeric()) {
                return Err(Error::Invalid(format!("`{reason}` is not one word in CamelCase")));
            }
            if note.is_empty() || crate::events::note(note) != note {
                return Err(Error::Invalid(format!(
                    "the note is not one line of at most 1024 bytes: {note:?}"
                )));
            }
            let kind = match kind {
                Kind::Normal => "Normal",
                Kind::Warning => "Warning",
            };
            state.events.push(format!("{kind} {reason} of {about}: {note}"));
            Ok(())
        })
    }

    fn pod(uid: &str) -> Result<String, Error> {
        state::with(|state| {
            let pod = state.pods.iter().find(|pod| pod.uid == uid);
            pod.map(crate::Pod::full_name)
                .ok_or_else(|| Error::NotFound(format!("pod {uid}")))
        })
    }
}

pub(crate) mod http {
    use crate::{
        Grant,
        bindings::imports::scupper::drain::http::{Error, HeaderValue, Method, Request, Response},
        testing::state,
    };

    pub(crate) fn send(request: &Request) -> Result<Response, Error> {
        let grants = state::with(|state| state.grants.clone());
        let grants = grants.ok_or_else(|| Error::NotGranted("only `step` may send".to_owned()))?;
        check(request, &grants)?;
        let changes = matches!(request.method, Method::Put | Method::Patch | Method::Delete);
        if changes && state::with(|state| state.checks) {
            return Err(Error::NotGranted(format!(
                "a check may not send {}",
                request.method
            )));
        }
        // The server may read the time from the state, so the state is not borrowed during the call.
        let server = state::with(|state| state.server.clone());
        let server =
            server.ok_or_else(|| Error::Unreachable("no server: set one with `on_request`".to_owned()))?;
        let answer = server.borrow_mut()(request)?;
        Ok(answer)
    }

    /// The policy must want every grant that the request needs.
    fn check(request: &Request, grants: &[Grant]) -> Result<(), Error> {
        let method = request.method.to_string();
        let wanted = of(grants, "http").any(|target| {
            target.split_once(' ').is_some_and(|(methods, url)| {
                methods.split(',').any(|known| known == method) && begins(&request.url, url)
            })
        });
        if !wanted {
            return Err(Error::NotGranted(format!("http {method} {}", request.url)));
        }
        let in_headers = request.headers.iter().filter_map(|header| match &header.value {
            HeaderValue::Secret(text) => Some(&text.secret),
            HeaderValue::Text(_) => None,
        });
        let in_fields = request.secret_fields.iter().map(|field| &field.secret);
        let captured = request.captures.iter().map(|capture| &capture.secret);
        let mut secrets = in_headers.chain(in_fields).chain(captured);
        match secrets.find(|secret| of(grants, "secret").all(|name| name != secret.as_str())) {
            Some(secret) => Err(Error::NotGranted(format!("secret {secret}"))),
            None => Ok(()),
        }
    }

    /// Compares whole segments: `https://example.com/a` is a prefix of neither `https://example.com/ab` nor
    /// `https://example.community`.
    fn begins(url: &str, prefix: &str) -> bool {
        let rest = url.strip_prefix(prefix.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
    }

    fn of<'a>(grants: &'a [Grant], capability: &'a str) -> impl Iterator<Item = &'a str> {
        grants
            .iter()
            .filter(move |grant| grant.capability == capability)
            .map(|grant| grant.target.as_str())
    }
}
