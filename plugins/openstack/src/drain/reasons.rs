//! Why servers stay, in Nova's own words where it has any.

use scupper_sdk::count;
use scupper_sdk::http::Method;

use super::decide::{Stuck, Why};
use crate::cloud::Cloud;
use crate::ledger::Ledger;
use crate::nova::{ask, cause, newest};
use crate::trouble::Trouble;

/// How many servers are named with their reasons: each costs two requests.
const NAMED: usize = 8;
/// What a reason may take of the message.
const SHOWN: usize = 240;

/// One line about all that stay.
pub(super) fn told(
    cloud: &mut Cloud<'_>,
    host: &str,
    all: usize,
    stuck: &[Stuck],
    ledger: &mut Ledger,
) -> Result<String, Trouble> {
    let mut lines = Vec::new();
    for server in stuck.iter().take(NAMED) {
        let Some(words) = words(cloud, server, ledger)? else {
            // Nova did begin to move it, this time.
            return Err(Trouble::NextStep);
        };
        lines.push(format!(
            "{}: {}",
            server.title,
            words.chars().take(SHOWN).collect::<String>()
        ));
    }
    if stuck.len() > NAMED {
        lines.push(format!("and {} more", stuck.len() - NAMED));
    }
    let all = all.max(stuck.len());
    Ok(format!(
        "{} of {} {} on {host}: {}",
        stuck.len(),
        count(all, "server"),
        if all == 1 { "stays" } else { "stay" },
        lines.join("; ")
    ))
}

fn words(cloud: &mut Cloud<'_>, server: &Stuck, ledger: &mut Ledger) -> Result<Option<String>, Trouble> {
    Ok(Some(match &server.why {
        Why::Failed { migration, status } => failed(cloud, &server.id, *migration, status)?,
        Why::Deadline => "its live migration was aborted at its deadline".to_owned(),
        Why::CompletedHere { migration } => format!(
            "Nova says that migration {migration} is completed, and the server is still here; an operator must look"
        ),
        Why::State(state) => state.clone(),
        Why::Unconfirmed => "was resized away and is not confirmed, its disk is still here".to_owned(),
        Why::Refused => return refused(cloud, server, ledger),
    }))
}

/// Where no event failed, only the migration itself knows that it did.
pub(super) fn failed(
    cloud: &mut Cloud<'_>,
    id: &str,
    migration: u64,
    status: &str,
) -> Result<String, Trouble> {
    let silent = |request: Option<&str>| {
        let where_to = request.map_or_else(String::new, |request| format!(", request {request}"));
        format!(
            "migration {migration} is {status}, and Nova's records name no cause: see nova-compute's log{where_to}"
        )
    };
    let actions = cloud.ask(Method::Get, &ask::actions(id), None)?;
    if actions.status == 404 {
        return Ok("is gone".to_owned());
    }
    let Some(request) = newest(&actions.body) else {
        return Ok(silent(None));
    };
    let action = cloud.ask(Method::Get, &ask::one_action(id, &request), None)?;
    Ok(cause(&action.body).unwrap_or_else(|| silent(Some(&request))))
}

/// What was refused is asked for once more, so that the reason is Nova's own and a new one.
fn refused(cloud: &mut Cloud<'_>, server: &Stuck, ledger: &mut Ledger) -> Result<Option<String>, Trouble> {
    let answer = cloud.ask(Method::Post, &ask::action(&server.id), Some(&ask::live()))?;
    if answer.is_success() {
        ledger.forget_refusals(&server.id);
        return Ok(None);
    }
    Ok(Some(format!(
        "Nova does not begin to move it: {} {}",
        answer.status, answer.words
    )))
}
