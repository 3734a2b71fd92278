//! The configuration of `way: slurmrestd`.

use std::time::Duration;

use scupper_sdk::credential::TokenTimeout;
use scupper_sdk::mark::Mark;
use scupper_sdk::{Grant, Problem, config};

use super::ladder::{self, Rung};
use super::naming::Naming;
use super::server::{NEWEST, OLDEST, SECRET};

/// As long as servers with much memory need to boot.
const BOOT: Duration = Duration::from_secs(600);

/// The keys of this way only.
pub(crate) const KEYS: [&str; 13] = [
    "api-version",
    "cluster",
    "heterogeneous",
    "ladder",
    "ladder-too-long",
    "no-slurm-pods",
    "not-in-slurm",
    "registration-timeout",
    "slurm-node",
    "slurm-node-table",
    "token-timeout",
    "url",
    "user",
];

/// The settings of this way.
#[derive(Default)]
pub(crate) struct Slurmrestd {
    /// Without a trailing slash.
    pub(crate) url: String,
    pub(crate) user: Option<String>,
    /// This cluster's name in reasons; `None`: the UID of the namespace kube-system.
    pub(crate) cluster: Option<String>,
    /// The configured version; `None`: detect it.
    pub(crate) version: Option<u32>,
    pub(crate) naming: Naming,
    pub(crate) table: Vec<(String, String)>,
    /// Drain a node that is not in Slurm without Slurm, instead of refusing.
    pub(crate) ignores_unknown: bool,
    pub(crate) ladder: Vec<Rung>,
    /// Scale a ladder that is longer than the drain, instead of refusing.
    pub(crate) scales_ladder: bool,
    /// Whether the ladder may act on a part of a heterogeneous job, which can end the parts on other nodes.
    pub(crate) ends_heterogeneous: bool,
    /// With `hold: slurm-pods` and jobs, but no Slurm pod that leaves: hold the node, instead of refusing.
    pub(crate) holds_without_pods: bool,
    /// How long to wait for a new token when Slurm no longer accepts the old one.
    pub(crate) token_timeout: TokenTimeout,
    /// How long an uncordon waits for the slurmd of a node that went down during the drain.
    pub(crate) registration_timeout: Duration,
}

impl Slurmrestd {
    /// Reads the configuration and adds what is wrong to `problems`.
    pub(crate) fn read(problems: &mut Vec<Problem>) -> Self {
        let mut reported = |key: &str, message: String| problems.push(Problem::new(key, message));
        let get = |key: &str| config::get(key).filter(|text| !text.trim().is_empty());
        let naming = get("slurm-node").map_or(Some(Naming::Name), |text| Naming::read(text.trim()));
        let naming = naming.unwrap_or_else(|| {
            let there_are = "must be name, short-name, label:KEY, annotation:KEY or pods";
            reported("slurm-node", there_are.to_owned());
            Naming::Name
        });
        let version = get("api-version").filter(|text| text != "auto").and_then(|text| {
            let version = text
                .trim()
                .strip_prefix("v0.0.")
                .and_then(|number| number.parse().ok());
            let known = version.filter(|version| (OLDEST..=NEWEST).contains(version));
            if known.is_none() {
                reported(
                    "api-version",
                    format!("`{text}`: must be auto, or v0.0.{OLDEST} to v0.0.{NEWEST}"),
                );
            }
            known
        });
        let ladder = ladder::read(&get("ladder").unwrap_or_default()).unwrap_or_else(|message| {
            reported("ladder", message);
            Vec::new()
        });
        let mut chosen = |key: &str, default: &str, other: &str| match get(key).as_deref() {
            None => false,
            Some(text) if text == default => false,
            Some(text) if text == other => true,
            Some(text) => {
                reported(key, format!("`{text}`: must be {default} or {other}"));
                false
            }
        };
        Self {
            ignores_unknown: chosen("not-in-slurm", "refuse", "ignore"),
            scales_ladder: chosen("ladder-too-long", "refuse", "scale"),
            ends_heterogeneous: chosen("heterogeneous", "wait", "ladder"),
            holds_without_pods: chosen("no-slurm-pods", "refuse", "hold"),
            url: ok_or_report(config::url("url", "https://slurm.example.com:6820"), problems),
            user: get("user").map(|user| user.trim().to_owned()),
            version,
            naming,
            ladder,
            cluster: ok_or_report(Mark::cluster(), problems),
            table: ok_or_report(config::table("slurm-node-table"), problems),
            token_timeout: ok_or_report(TokenTimeout::read(), problems),
            registration_timeout: ok_or_report(config::time("registration-timeout", BOOT), problems),
        }
    }

    /// The wanted grants: DELETE only with a rung that needs it.
    pub(crate) fn wants(&self) -> [Grant; 3] {
        let deletes = self.ladder.iter().any(|rung| rung.action.deletes());
        let methods = if deletes { "GET,POST,DELETE" } else { "GET,POST" };
        [
            Grant::http(methods, &format!("{}/slurm/", self.url)),
            Grant::secret(SECRET),
            Grant::events_of_node(),
        ]
    }
}

fn ok_or_report<T: Default>(read: Result<T, Problem>, problems: &mut Vec<Problem>) -> T {
    read.unwrap_or_else(|problem| {
        problems.push(problem);
        T::default()
    })
}
