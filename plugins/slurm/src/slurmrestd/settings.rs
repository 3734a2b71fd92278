//! The configuration of `way: slurmrestd`.

use std::time::Duration;

use scupper_sdk::{Grant, Problem, config};

use super::ladder::{self, Rung};
use super::naming::Naming;
use super::server::{NEWEST, OLDEST, SECRET};

/// An automatic renewal of a token takes minutes at most.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(300);

/// The keys of this way only.
pub(crate) const KEYS: [&str; 12] = [
    "api-version",
    "cluster",
    "heterogeneous",
    "ladder",
    "ladder-too-long",
    "no-slurm-pods",
    "not-in-slurm",
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
    pub(crate) token_timeout: Duration,
}

impl Slurmrestd {
    /// Reads the configuration and adds what is wrong to `problems`.
    pub(crate) fn read(problems: &mut Vec<Problem>) -> Self {
        let mut reported = |key: &str, message: String| problems.push(Problem::new(key, message));
        let get = |key: &str| config::get(key).filter(|text| !text.trim().is_empty());
        let url = get("url").unwrap_or_default();
        let url = url.trim().trim_end_matches('/').to_owned();
        if !is_url(&url) {
            reported(
                "url",
                format!("`{url}`: must be slurmrestd's URL, such as https://slurm.example.com:6820"),
            );
        }
        let naming = get("slurm-node").map_or(Some(Naming::Name), |text| Naming::read(text.trim()));
        let naming = naming.unwrap_or_else(|| {
            let there_are = "must be name, short-name, label:KEY, annotation:KEY or pods";
            reported("slurm-node", there_are.to_owned());
            Naming::Name
        });
        let table = get("slurm-node-table").map_or(Ok(Vec::new()), |text| table(&text));
        let table = table.unwrap_or_else(|wrong| {
            reported("slurm-node-table", wrong);
            Vec::new()
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
        let token_timeout =
            get("token-timeout").map_or(Some(TOKEN_TIMEOUT), |text| config::duration(text.trim()));
        let token_timeout = token_timeout.unwrap_or_else(|| {
            reported(
                "token-timeout",
                "must be a time, such as 90s, 5m or 2h".to_owned(),
            );
            TOKEN_TIMEOUT
        });
        let cluster = get("cluster").map(|name| name.trim().to_owned());
        if cluster.as_deref().is_some_and(|name| !is_name(name)) {
            reported(
                "cluster",
                "must be a name of at most 63 letters, digits, dots, hyphens and underscores".to_owned(),
            );
        }
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
            cluster,
            ignores_unknown: chosen("not-in-slurm", "refuse", "ignore"),
            scales_ladder: chosen("ladder-too-long", "refuse", "scale"),
            ends_heterogeneous: chosen("heterogeneous", "wait", "ladder"),
            holds_without_pods: chosen("no-slurm-pods", "refuse", "hold"),
            url,
            user: get("user").map(|user| user.trim().to_owned()),
            version,
            naming,
            table,
            ladder,
            token_timeout,
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

fn is_url(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let plain = |rest: &str| !rest.contains(|c: char| c.is_whitespace() || matches!(c, '?' | '#' | '@'));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && plain(rest))
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    text.len() <= 63 && text.chars().all(plain)
}

/// Two nodes of Kubernetes cannot share one of Slurm: the uncordon of the first would give jobs to the second.
fn table(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut table: Vec<(String, String)> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let pair = part
            .split_once('=')
            .map(|(node, name)| (node.trim(), name.trim()));
        let Some((node, name)) = pair.filter(|(node, name)| !node.is_empty() && !name.is_empty()) else {
            return Err(format!("`{part}`: must be NODE=SLURM-NODE,NODE=SLURM-NODE"));
        };
        if let Some((other, _)) = table.iter().find(|(_, known)| known == name) {
            return Err(format!(
                "{other} and {node} cannot both be {name}: the uncordon of one would give jobs to the other"
            ));
        }
        if table.iter().any(|(known, _)| known == node) {
            return Err(format!("{node} has two names"));
        }
        table.push((node.to_owned(), name.to_owned()));
    }
    Ok(table)
}
