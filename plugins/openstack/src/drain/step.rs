//! One step of emptying a host: plan, disable, migrate, confirm that it is empty.

use std::time::Duration;

use scupper_sdk::http::Method;
use scupper_sdk::mark::Mark;
use scupper_sdk::{Call, Outcome, Pending, Phase, log};

use super::apply::apply;
use super::decide::{BlockedServer, Decision, Waiting, decide};
use super::observe::{Snapshot, compute_services, servers};
use super::progress::{count, moving};
use super::{arriving, confirm_empty, enable, node_events, operator, preflight, reasons};
use crate::cloud::Cloud;
use crate::nova::{Server, Service, ask};
use crate::settings::Settings;
use crate::state::HookState;
use crate::step_error::StepError;

/// The time between the two checks of an empty host.
const CONFIRM_AFTER: Duration = Duration::from_secs(2);
/// The delay after a step that reached its limit of requests.
const AT_ONCE: Duration = Duration::from_millis(100);

/// One step.
pub(crate) fn empty(
    call: &Call,
    settings: &Settings,
    hook_state: &mut HookState,
    cloud: &mut Cloud<'_>,
) -> Result<Outcome, StepError> {
    let mark = Mark::of_drain(call, settings.cluster())?;
    let service = preflight::service(call, settings, hook_state, cloud)?;
    if let Some(pending) = operator::overrides(call, settings, &service, hook_state, cloud.now()) {
        return Ok(pending.into());
    }
    if !call.phase.follows_before_drain()
        && let Some(plan) = preflight::check(settings, &service, &mark, hook_state, cloud)?
    {
        log::info!("{plan}");
    }
    if service.is_enabled() || !call.phase.follows_before_drain() {
        disable(call, &service, &mark, hook_state, cloud)?;
    }
    if hook_state.disabled.is_none() {
        if !call.phase.follows_before_drain() {
            refuse_dead_end(call, settings, &service, &mark, cloud)?;
        }
        hook_state.disabled = Some(cloud.now());
    }

    let host = service.host.clone();
    let snapshot = Snapshot::take(cloud, &host, call.drain.started, &mut hook_state.listed_since)?;
    let version = cloud.version()?;
    let mut decision = decide(&snapshot, &settings.moves, version, hook_state);
    // Before new migrations begin, because Nova gives the reason only of a server's newest action.
    node_events::report_failures(cloud, &snapshot, &settings.moves, &decision, hook_state);
    if let Some(stranded) = stranded(call, &service, &decision, &snapshot) {
        node_events::servers_stay(&stranded);
        return Ok(Outcome::failed(stranded).into());
    }
    carry_out(cloud, settings, &snapshot, &mut decision, hook_state)?;
    if !decision.is_quiet() {
        (hook_state.empty_since, hook_state.occupied) = (None, true);
        return Ok(in_progress(&service, settings, &decision).into());
    }
    if decision.stuck.is_empty() && call.phase.follows_before_drain() && !hook_state.occupied {
        return Ok(Outcome::Done);
    }
    if decision.stuck.is_empty() {
        return confirm_empty(
            call,
            settings,
            hook_state,
            cloud,
            &service,
            &snapshot,
            &mut decision,
        );
    }
    fail(cloud, &host, &decision, &decision.stuck, hook_state)
}

/// Carries out the operations. What Nova refuses to begin is not moving.
fn carry_out(
    cloud: &mut Cloud<'_>,
    settings: &Settings,
    snapshot: &Snapshot,
    decision: &mut Decision,
    hook_state: &mut HookState,
) -> Result<(), StepError> {
    for operation in decision.operations.clone() {
        let Some(refusal) = apply(cloud, snapshot, &operation, hook_state)? else {
            continue;
        };
        let title = snapshot.title(operation.server());
        node_events::refused(&title, &refusal);
        let tries = snapshot.attempts(operation.server()).len() + hook_state.refusals(operation.server()).0;
        if tries >= settings.moves.attempts {
            hook_state.refuse_for_good(operation.server());
            decision.refuse(&title, refusal);
            continue;
        }
        let pause = settings.moves.pause_after(tries) / 1000;
        decision.refuse(&title, format!("{refusal}; retry in {pause} s"));
    }
    Ok(())
}

/// Why the drain cannot end: servers are on the host, and nova-compute, which would have to migrate them, may have left it.
fn stranded(call: &Call, service: &Service, decision: &Decision, snapshot: &Snapshot) -> Option<String> {
    if call.phase != Phase::AfterDrain || service.is_up() || decision.present == 0 {
        return None;
    }
    let kept = |title: &String| decision.kept.iter().any(|kept| kept.starts_with(title.as_str()));
    let titles = snapshot.servers.iter().map(Server::title);
    let titles = titles.filter(|title| !kept(title)).collect();
    Some(format!(
        "{} on {} cannot leave, because nova-compute is down there: {}; start nova-compute and drain the node again, or evacuate the host with your high-availability tool",
        scupper_sdk::count(decision.present, "server"),
        service.host,
        preflight::named(titles)
    ))
}

/// Disables the service, so that no new servers arrive. An already disabled service keeps its reason, and a cancel keeps it
/// disabled.
fn disable(
    call: &Call,
    service: &Service,
    mark: &Mark,
    hook_state: &mut HookState,
    cloud: &mut Cloud<'_>,
) -> Result<(), StepError> {
    let host = &service.host;
    let reason = service.reason();
    if service.is_enabled() {
        let body = ask::disable(mark.text());
        let answer = cloud
            .ask(Method::Put, &ask::service(&service.id), Some(&body))
            .map_err(|error| error.during(&format!("disabling nova-compute on {host}")))?;
        if !answer.is_success() {
            let words = format!(
                "disabling nova-compute on {host}: {} {}",
                answer.status, answer.message
            );
            return Err(StepError::retry(words));
        }
        log::info!("disabled nova-compute on {host}");
    }
    if hook_state.announced {
        return Ok(());
    }
    // The service's reason counts as well, because the response to the request may have been lost.
    hook_state.announced = if service.is_enabled() || mark.is_of_drain(reason) {
        node_events::disabled(host, &call.drain.name)
    } else if mark.is_of_node(reason) {
        log::info!("nova-compute on {host} has been disabled since an earlier drain: {reason}");
        true
    } else {
        node_events::found_disabled(host, reason)
    };
    Ok(())
}

/// Checks again after the disable: two drains that begin together both find the other host enabled, and both disable their
/// own. A drain that now finds no other host enables its own again and fails.
fn refuse_dead_end(
    call: &Call,
    settings: &Settings,
    service: &Service,
    mark: &Mark,
    cloud: &mut Cloud<'_>,
) -> Result<(), StepError> {
    let host = &service.host;
    let all = compute_services(cloud, None)?;
    if preflight::has_another(&all, host) {
        return Ok(());
    }
    let leaving = preflight::leaving(settings, &servers(cloud, host)?);
    if leaving == 0 {
        return Ok(());
    }
    let own = all.iter().filter(|own| own.host == *host);
    for own in own.filter(|own| !own.is_enabled() && mark.is_of_drain(own.reason())) {
        enable::put(call, own, cloud)?;
    }
    let leaving = scupper_sdk::count(leaving, "server");
    Err(StepError::fatal(preflight::dead_end(&all, host, &leaving)))
}

/// Done if the list is empty twice, with some time in between, and nothing else arrives or remains.
fn confirm_empty(
    call: &Call,
    settings: &Settings,
    hook_state: &mut HookState,
    cloud: &mut Cloud<'_>,
    service: &Service,
    snapshot: &Snapshot,
    decision: &mut Decision,
) -> Result<Outcome, StepError> {
    let host = &service.host;
    if hook_state.empty_since.is_some() {
        for kept in &decision.kept {
            log::info!("stays on {host}: {kept}");
        }
        node_events::servers_kept(host, &decision.kept, 0);
        log::info!(
            "{host} is empty; migrated: {}",
            scupper_sdk::count(decision.gone, "server")
        );
        return Ok(Outcome::Done);
    }
    let disabled = hook_state.disabled.unwrap_or_else(|| cloud.now());
    decision.waiting = arriving::may_come(cloud, host, disabled)?;
    if !decision.waiting.is_empty() {
        return Ok(in_progress(service, settings, decision).into());
    }
    let leftovers = confirm_empty::leftovers(cloud, host, &settings.moves, hook_state)?;
    for operation in &leftovers.operations {
        apply(cloud, snapshot, operation, hook_state)?;
    }
    if let Some((checked, all)) = leftovers.interrupted {
        let progress = format!(
            "{}; checked {checked} of {all} migration records",
            count(decision, host)
        );
        return Ok(Outcome::pending(progress).again_after(AT_ONCE).into());
    }
    if !leftovers.waiting.is_empty() {
        decision.waiting = leftovers.waiting;
        return Ok(in_progress(service, settings, decision).into());
    }
    if !leftovers.stuck.is_empty() {
        return fail(cloud, host, decision, &leftovers.stuck, hook_state);
    }
    for kept in &leftovers.kept {
        log::info!("{host}: {kept}");
    }
    node_events::servers_kept(host, &leftovers.kept, leftovers.kept_unnamed);
    hook_state.empty_since = Some(call.drain.now);
    let progress = format!(
        "{}; checking once more that {host} is empty",
        count(decision, host)
    );
    Ok(Outcome::pending(progress).again_after(CONFIRM_AFTER).into())
}

fn fail(
    cloud: &mut Cloud<'_>,
    host: &str,
    decision: &Decision,
    stuck: &[BlockedServer],
    hook_state: &mut HookState,
) -> Result<Outcome, StepError> {
    let all = decision.present + decision.gone;
    let message = reasons::stay_message(cloud, host, all, stuck, hook_state)?;
    node_events::servers_stay(&message);
    Ok(Outcome::failed(message).into())
}

fn in_progress(service: &Service, settings: &Settings, decision: &Decision) -> Pending {
    let host = &service.host;
    let mut progress = count(decision, host);
    if decision.present > 0 {
        progress.push_str(&format!(", {}", moving(decision)));
    }
    if !decision.stuck.is_empty() {
        progress.push_str(&format!(", {} stuck", decision.stuck.len()));
    }
    if !service.is_up() {
        progress.push_str(&format!(
            "; nova-compute on {host} is down, no server migrates until it is up"
        ));
    }
    let stuck = decision.stuck.iter().map(|stuck| Waiting {
        what: stuck.title.clone(),
        detail: reasons::known(&stuck.why),
        since: None,
    });
    let pending = Outcome::pending(progress).again_after(settings.poll);
    let all = decision.waiting.iter().cloned().chain(stuck);
    all.fold(pending, |pending, waiting| {
        pending.waiting_for(waiting.what, waiting.detail, waiting.since)
    })
}
