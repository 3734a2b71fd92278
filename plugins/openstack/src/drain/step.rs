//! One step of emptying a host: `plan`, `disable`, `migrate`, `settle`, `done`, each as often as it is come to.

use std::time::Duration;

use scupper_sdk::http::Method;
use scupper_sdk::{Call, Outcome, Pending, log};

use super::act::perform;
use super::decide::{Decision, Stuck, Waiting, decide};
use super::look::Picture;
use super::progress::{count, moving};
use super::{arriving, news, preflight, reasons, settle};
use crate::cloud::Cloud;
use crate::ledger::Ledger;
use crate::nova::{Mark, Service, ask};
use crate::settings::Settings;
use crate::trouble::Trouble;

/// Between the two looks at an empty host.
const SETTLE: Duration = Duration::from_secs(2);
/// When a step has asked as much as it may.
const AT_ONCE: Duration = Duration::from_millis(100);

/// One step.
pub(crate) fn empty(
    call: &Call,
    settings: &Settings,
    ledger: &mut Ledger,
    cloud: &mut Cloud<'_>,
) -> Result<Outcome, Trouble> {
    let mark = Mark::new(&call.node.name, &call.drain.id);
    let service = preflight::service(call, settings, ledger, cloud)?;
    if let Some(plan) = preflight::check(settings, &service, &mark, ledger, cloud)? {
        log::info!("{plan}");
    }
    disable(call, &service, &mark, ledger, cloud)?;
    ledger.disabled.get_or_insert_with(|| cloud.now());

    let host = service.host.clone();
    let picture = Picture::take(cloud, &host, call.drain.started)?;
    let version = cloud.version()?;
    let mut decision = decide(&picture, &settings.moves, version, ledger);
    // Before anything new is begun: Nova tells the reason of each server's newest action alone.
    news::since(cloud, &picture, &settings.moves, &decision, ledger);
    for act in &decision.acts {
        perform(cloud, &picture, act, ledger)?;
    }
    if !decision.is_quiet() {
        ledger.empty_since = None;
        return Ok(going_on(&service, settings, &decision).into());
    }
    if decision.stuck.is_empty() {
        return settle_down(call, settings, ledger, cloud, &service, &picture, &mut decision);
    }
    fail(cloud, &host, &decision, &decision.stuck, ledger)
}

/// No new servers from here on. A service that is disabled already stays as it is, with its reason: a cancel then
/// leaves it so.
fn disable(
    call: &Call,
    service: &Service,
    mark: &Mark,
    ledger: &mut Ledger,
    cloud: &mut Cloud<'_>,
) -> Result<(), Trouble> {
    let host = &service.host;
    let reason = service.reason();
    if service.is_enabled() {
        let body = ask::disable(mark.text());
        let answer = cloud.ask(Method::Put, &ask::service(&service.id), Some(&body))?;
        if !answer.is_success() {
            let words = format!(
                "disabling nova-compute on {host}: {} {}",
                answer.status, answer.words
            );
            return Err(Trouble::wait(words));
        }
        log::info!("disabled nova-compute on {host}");
    }
    if ledger.announced {
        return Ok(());
    }
    // By what is seen as well: the answer to the request may have been lost.
    ledger.announced = if service.is_enabled() || mark.is_of_drain(reason) {
        news::disabled(host, &call.drain.name)
    } else if mark.is_of_node(reason) {
        log::info!("nova-compute on {host} is disabled since an earlier drain: {reason}");
        true
    } else {
        news::found_disabled(host, reason)
    };
    Ok(())
}

/// The list is empty: twice, with some time in between, and nothing else is on its way or left behind.
fn settle_down(
    call: &Call,
    settings: &Settings,
    ledger: &mut Ledger,
    cloud: &mut Cloud<'_>,
    service: &Service,
    picture: &Picture,
    decision: &mut Decision,
) -> Result<Outcome, Trouble> {
    let host = &service.host;
    if ledger.empty_since.is_some() {
        for left in &decision.left {
            log::info!("stays on {host}: {left}");
        }
        news::left_alone(host, &decision.left, 0);
        log::info!(
            "{host} is empty; moved: {}",
            scupper_sdk::count(decision.gone, "server")
        );
        return Ok(Outcome::Done);
    }
    let disabled = ledger.disabled.unwrap_or_else(|| cloud.now());
    decision.waiting = arriving::may_come(cloud, host, disabled)?;
    if !decision.waiting.is_empty() {
        return Ok(going_on(service, settings, decision).into());
    }
    let rest = settle::rest(cloud, host, &settings.moves, ledger)?;
    for act in &rest.acts {
        perform(cloud, picture, act, ledger)?;
    }
    if let Some((checked, all)) = rest.interrupted {
        let progress = format!(
            "{}; has checked {checked} of {all} migration records",
            count(decision, host)
        );
        return Ok(Outcome::pending(progress).again_after(AT_ONCE).into());
    }
    if !rest.waiting.is_empty() {
        decision.waiting = rest.waiting;
        return Ok(going_on(service, settings, decision).into());
    }
    if !rest.stuck.is_empty() {
        return fail(cloud, host, decision, &rest.stuck, ledger);
    }
    for left in &rest.left {
        log::info!("{host}: {left}");
    }
    news::left_alone(host, &rest.left, rest.left_unnamed);
    ledger.empty_since = Some(call.drain.now);
    let progress = format!(
        "{}; looking once more whether {host} stays empty",
        count(decision, host)
    );
    Ok(Outcome::pending(progress).again_after(SETTLE).into())
}

fn fail(
    cloud: &mut Cloud<'_>,
    host: &str,
    decision: &Decision,
    stuck: &[Stuck],
    ledger: &mut Ledger,
) -> Result<Outcome, Trouble> {
    let all = decision.present + decision.gone;
    let message = reasons::told(cloud, host, all, stuck, ledger)?;
    news::stay(&message);
    Ok(Outcome::failed(message).into())
}

fn going_on(service: &Service, settings: &Settings, decision: &Decision) -> Pending {
    let host = &service.host;
    let mut progress = count(decision, host);
    if decision.present > 0 {
        progress.push_str(&format!(", {}", moving(decision)));
    }
    if !decision.stuck.is_empty() {
        progress.push_str(&format!(", {} cannot", decision.stuck.len()));
    }
    if !service.is_up() {
        progress.push_str(&format!(
            "; nova-compute on {host} is down, nothing moves until it is back"
        ));
    }
    let stuck = decision.stuck.iter().map(|stuck| Waiting {
        what: stuck.title.clone(),
        detail: "cannot be moved; the reason follows when the others have left".to_owned(),
        since: None,
    });
    let pending = Outcome::pending(progress).again_after(settings.poll);
    let all = decision.waiting.iter().cloned().chain(stuck);
    all.fold(pending, |pending, waiting| {
        pending.waiting_for(waiting.what, waiting.detail, waiting.since)
    })
}
