//! Instance actions: the only place where Nova records why a migration failed.

use scupper_sdk::Timestamp;
use serde::Deserialize;

use crate::clock;

/// One action of a server; only the request for a single action returns its events.
#[derive(Clone, Debug, Deserialize)]
struct Action {
    action: String,
    request_id: String,
    #[serde(default)]
    user_id: Option<String>,
    #[serde(default)]
    start_time: String,
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(Clone, Debug, Deserialize)]
struct Event {
    event: String,
    #[serde(default)]
    result: Option<String>,
    #[serde(default)]
    details: Option<String>,
    #[serde(default)]
    traceback: Option<String>,
}

#[derive(Deserialize)]
struct All {
    #[serde(rename = "instanceActions")]
    actions: Vec<Action>,
}

#[derive(Deserialize)]
struct One {
    #[serde(rename = "instanceAction")]
    action: Action,
}

/// The request id of the newest migration among a server's actions.
pub(crate) fn newest(body: &[u8]) -> Option<String> {
    let all: All = serde_json::from_slice(body).ok()?;
    let moves = all
        .actions
        .into_iter()
        .filter(|action| matches!(action.action.as_str(), "live-migration" | "migrate"));
    moves
        .max_by(|a, b| a.start_time.cmp(&b.start_time))
        .map(|action| action.request_id)
}

/// The newest action of a server, if it is a migration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The requesting user, if Nova names one.
    pub(crate) user: Option<String>,
    /// When it began, if Nova says so.
    pub(crate) at: Option<Timestamp>,
}

/// `None`: the newest action is not a migration, or Nova does not say.
pub(crate) fn asked_to_move(body: &[u8]) -> Option<Asked> {
    let all: All = serde_json::from_slice(body).ok()?;
    let newest = all
        .actions
        .into_iter()
        .max_by(|a, b| a.start_time.cmp(&b.start_time))?;
    let is_move = matches!(newest.action.as_str(), "live-migration" | "migrate");
    is_move.then_some(Asked {
        user: newest.user_id,
        at: clock::iso(&newest.start_time),
    })
}

/// Nova's own reason, from one action with its events. A migration that fails half way has none: all its events are
/// successes.
pub(crate) fn cause(body: &[u8]) -> Option<String> {
    let one: One = serde_json::from_slice(body).ok()?;
    let failed = |event: &&Event| event.result.as_deref() == Some("Error");
    // The last failed event: the earlier ones only repeat it.
    let event = one.action.events.iter().find(failed)?;
    let with_details = one
        .action
        .events
        .iter()
        .filter(failed)
        .find_map(|event| event.details.clone());
    let text = with_details
        .or_else(|| event.traceback.as_deref().and_then(last_line))
        .unwrap_or_else(|| format!("{} failed, and Nova records no details", event.event));
    Some(one_line(&text))
}

fn last_line(text: &str) -> Option<String> {
    let mut lines = text.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty()).map(str::to_owned)
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(actions: &str) -> Option<Asked> {
        asked_to_move(format!(r#"{{"instanceActions": [{actions}]}}"#).as_bytes())
    }

    #[test]
    fn only_the_newest_action_names_the_user_who_requested_the_migration() {
        let action = |action: &str, at: u32| {
            format!(
                r#"{{"action": "{action}", "request_id": "r", "user_id": "u{at}", "start_time": "2026-01-01T00:00:{at:02}"}}"#
            )
        };
        let moved = action("live-migration", 20);
        let (user, at) = (Some("u20".to_owned()), clock::iso("2026-01-01T00:00:20"));
        assert_eq!(
            asked(&format!("{moved}, {}", action("create", 10))),
            Some(Asked { user, at })
        );
        assert_eq!(asked(&format!("{moved}, {}", action("reboot", 30))), None);
        assert_eq!(asked(""), None);
    }
}
