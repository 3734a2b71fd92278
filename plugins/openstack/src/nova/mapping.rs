//! Maps a node to its Nova host. The host must exist in Nova: for an unknown name Nova answers with an empty list of
//! servers, which would look like a drained host.

use scupper_sdk::Node;

use super::Service;

/// The most hosts that an error names.
const SHOWN: usize = 10;

/// The operator's mapping.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapping {
    /// Node and host.
    pub(crate) table: Vec<(String, String)>,
    /// An annotation of the node.
    pub(crate) annotation: Option<String>,
    /// A label of the node.
    pub(crate) label: Option<String>,
}

impl Mapping {
    /// The service of the node, or why it cannot be determined.
    pub(crate) fn find<'s>(&self, node: &Node, services: &'s [Service]) -> Result<&'s Service, String> {
        if let Some((host, whence)) = self.configured(node) {
            let exact: Vec<_> = services.iter().filter(|service| service.host == host).collect();
            return one(&exact).ok_or_else(|| {
                format!(
                    "Nova has {} compute service `{host}`, which {whence} names; {}",
                    count(exact.len()),
                    known(services)
                )
            });
        }
        let hostname = node.label("kubernetes.io/hostname").unwrap_or(&node.name);
        for name in [node.name.as_str(), hostname] {
            let exact: Vec<_> = services.iter().filter(|service| service.host == name).collect();
            if let Some(service) = one(&exact) {
                return Ok(service);
            }
        }
        let alike: Vec<_> = services
            .iter()
            .filter(|service| {
                is_short_of(&service.host, &node.name) || is_short_of(&node.name, &service.host)
            })
            .collect();
        one(&alike).ok_or_else(|| {
            format!(
                "Nova has {} compute service for node `{}`; set `host-table`, `host-annotation` or `host-label`; {}",
                count(alike.len()),
                node.name,
                known(services)
            )
        })
    }

    /// The configured host, and where it is configured.
    fn configured<'a>(&'a self, node: &'a Node) -> Option<(&'a str, String)> {
        let entry = self.table.iter().find(|(name, _)| *name == node.name);
        if let Some((_, host)) = entry {
            return Some((host, "`host-table`".to_owned()));
        }
        let annotation = self.annotation.as_deref();
        if let Some((key, host)) = annotation.and_then(|key| Some((key, node.annotation(key)?))) {
            return Some((host, format!("the node's annotation `{key}`")));
        }
        let label = self.label.as_deref();
        label
            .and_then(|key| Some((key, node.label(key)?)))
            .map(|(key, host)| (host, format!("the node's label `{key}`")))
    }
}

fn one<'s>(found: &[&'s Service]) -> Option<&'s Service> {
    match found {
        [service] => Some(*service),
        _ => None,
    }
}

/// `compute-1` is short for `compute-1.example.com`. Two long names are never alike.
fn is_short_of(short: &str, long: &str) -> bool {
    !short.contains('.') && long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.'))
}

fn count(number: usize) -> &'static str {
    if number == 0 { "no" } else { "more than one" }
}

fn known(services: &[Service]) -> String {
    if services.is_empty() {
        return "this credential sees none".to_owned();
    }
    let mut names: Vec<&str> = services
        .iter()
        .take(SHOWN)
        .map(|service| service.host.as_str())
        .collect();
    if services.len() > SHOWN {
        names.push("...");
    }
    format!("there are {}", names.join(", "))
}
