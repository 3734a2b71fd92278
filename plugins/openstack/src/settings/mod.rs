//! The configuration: the keys of `clouds.yaml` for identity and URLs, and our own for the migrations.

mod identity;
mod moves;
mod reading;

use std::time::Duration;

use scupper_sdk::credential::TokenTimeout;
use scupper_sdk::mark::Mark;
use scupper_sdk::{OnFailure, Pod, Problem, config};

use crate::keystone::{Credential, Interface};
use crate::nova::Mapping;
pub(crate) use moves::{Incoming, Moves, OnDeadline, Order, Others, Stopped};
use reading::Reader;

const KEYS: [&str; 42] = [
    "cluster",
    "auth-url",
    "auth-type",
    "username",
    "user-id",
    "user-domain-name",
    "user-domain-id",
    "project-name",
    "project-id",
    "project-domain-name",
    "project-domain-id",
    "application-credential-id",
    "application-credential-name",
    "region-name",
    "interface",
    "compute-url",
    "compute-endpoint-override",
    "host-table",
    "host-annotation",
    "host-label",
    "parallel",
    "order",
    "stopped",
    "others",
    "incoming",
    "attempts",
    "retry-seconds",
    "server-deadline-seconds",
    "on-deadline",
    "on-failure",
    "poll-seconds",
    "token-timeout",
    "nova-compute-label",
    // Keys that belong elsewhere, for a better message than "no such key".
    "password",
    "application-credential-secret",
    "token",
    "cacert",
    "verify",
    "region",
    "cert",
    "key",
    "profile",
];

/// The policy's configuration.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    cluster: Option<String>,
    /// Ends in `/v3`.
    pub(crate) auth_url: String,
    pub(crate) credential: Credential,
    pub(crate) region: Option<String>,
    pub(crate) interface: Interface,
    pub(crate) compute: Compute,
    pub(crate) mapping: Mapping,
    pub(crate) moves: Moves,
    pub(crate) on_failure: OnFailure,
    pub(crate) poll: Duration,
    pub(crate) token_timeout: TokenTimeout,
    labels: Vec<(String, String)>,
}

/// Nova's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Compute {
    /// The URL of the catalogue, which must begin like this.
    Catalogue { begins: String },
    /// This URL, whatever the catalogue says.
    Override(String),
}

impl Compute {
    /// The URL for the wanted grant.
    pub(crate) fn url(&self) -> &str {
        match self {
            Self::Catalogue { begins } => begins,
            Self::Override(url) => url,
        }
    }
}

impl Settings {
    /// Reads the configuration, or returns everything that is wrong with it.
    pub(crate) fn read() -> Result<Self, Vec<Problem>> {
        let mut reader = Reader::new(config::unknown_keys(&KEYS));
        reader.misplaced();
        let auth_url = identity::auth_url(&mut reader);
        let settings = Self {
            cluster: reader.ok_or_report(Mark::cluster()),
            auth_url,
            credential: identity::credential(&mut reader),
            region: reader.text("region-name"),
            interface: reader.choice(
                "interface",
                &[
                    ("public", Interface::Public),
                    ("internal", Interface::Internal),
                    ("admin", Interface::Admin),
                    // In many a clouds.yaml.
                    ("publicURL", Interface::Public),
                    ("internalURL", Interface::Internal),
                    ("adminURL", Interface::Admin),
                ],
            ),
            compute: identity::compute(&mut reader),
            mapping: Mapping {
                table: reader.ok_or_report(config::table("host-table")),
                annotation: reader.text("host-annotation"),
                label: reader.text("host-label"),
            },
            moves: Moves::read(&mut reader),
            on_failure: reader.choice("on-failure", &OnFailure::CHOICES),
            poll: Duration::from_secs(reader.number("poll-seconds", 3, 1..=300)),
            token_timeout: reader.ok_or_report(TokenTimeout::read()),
            labels: reader.pairs("nova-compute-label", "application=nova,component=compute"),
        };
        reader.finish().map(|()| settings)
    }

    /// This cluster's name in marks; `None`: the UID of the namespace kube-system.
    pub(crate) fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// Whether it is a nova-compute pod, which must leave after the servers.
    pub(crate) fn is_nova_compute(&self, pod: &Pod) -> bool {
        !self.labels.is_empty()
            && self
                .labels
                .iter()
                .all(|(key, value)| pod.label(key) == Some(value))
    }
}
