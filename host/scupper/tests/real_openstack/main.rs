//! openstack.wasm in the real policy edge against the real Keystone and the real Nova.
//!
//! Two testbeds serve the scenarios: each takes the next one as soon as it is free. They end with this process in any
//! case. One for each scenario would cost more than the tests themselves, and the scenarios mostly wait, which two can do
//! side by side on two cores. So this target has its own test harness: each scenario is a function in [`SCENARIOS`].
//! Arguments on the command line choose those whose names contain them. `SCUPPER_SKIP=real-openstack` skips all of
//! them; `SCUPPER_LONG=1` also runs those that take minutes, [`LONG`].
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "helpers of tests; a failure is a failed test, and the results are for the person who runs it"
)]

mod access;
mod arriving;
mod cancelling;
mod cells;
mod credentials;
mod driver;
#[path = "../support/driver_mode.rs"]
mod driver_mode;
mod failing;
mod faults;
mod giving_back;
#[path = "../support/http.rs"]
mod http;
mod kinds;
#[path = "../support/leaks/mod.rs"]
#[expect(dead_code, reason = "no drain stops in the middle here")]
mod leaks;
#[path = "../support/limit.rs"]
mod limit;
#[path = "../support/long.rs"]
mod long;
mod looking_again;
mod many;
mod moving;
mod nova;
#[path = "../support/proxy.rs"]
mod proxy;
mod records;
mod resuming;
mod rig;
mod searching;
mod second;
mod sharing;
#[path = "../support/skip.rs"]
mod skip;
mod testbed;
mod tool;
mod whole;
mod words;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;
use testbed::{Kind, TWO_CELLS, Testbed, USUAL, WIDE};

type Scenario = (&'static str, for<'b> fn(&'b Testbed) -> BoxFuture<'b, ()>);

/// Each begins with both compute services enabled and no server. Keystone is restarted for the last two; the order of the
/// others is free.
const SCENARIOS: &[Scenario] = &[
    ("no_secret_is_found_wherever_one_looks", |bed| {
        searching::whole_drains(bed).boxed()
    }),
    ("five_servers_leave_without_one_lost", |bed| {
        moving::five(bed).boxed()
    }),
    ("a_shut_off_server_moves_cold_and_is_confirmed", |bed| {
        moving::cold(bed).boxed()
    }),
    ("an_incoming_migration_is_waited_for", |bed| {
        moving::incoming(bed).boxed()
    }),
    ("a_killed_driver_goes_on_without_a_second_migration", |bed| {
        resuming::killed(bed).boxed()
    }),
    ("a_stuck_server_is_aborted_at_its_deadline", |bed| {
        failing::deadline(bed).boxed()
    }),
    ("a_stuck_server_is_completed_by_force", |bed| {
        failing::force(bed).boxed()
    }),
    ("failures_are_told_in_novas_words", |bed| {
        failing::reasons(bed).boxed()
    }),
    ("no_valid_host_is_novas_reason", |bed| {
        failing::no_valid_host(bed).boxed()
    }),
    ("nowhere_to_go_is_told_before_anything_is_changed", |bed| {
        failing::nowhere(bed).boxed()
    }),
    ("a_dead_compute_service_is_no_drained_one", |bed| {
        failing::dead(bed).boxed()
    }),
    ("a_foreign_reason_survives_untouched", |bed| {
        giving_back::foreign(bed).boxed()
    }),
    ("cancel_aborts_what_is_under_way", |bed| {
        giving_back::cancel(bed).boxed()
    }),
    ("a_second_drain_keeps_the_old_mark", |bed| {
        second::marked(bed).boxed()
    }),
    ("in_driver_mode_a_second_drain_gives_nothing_back", |bed| {
        second::in_driver_mode(bed).boxed()
    }),
    ("from_a_terminal_a_second_drain_gives_nothing_back", |bed| {
        second::in_a_terminal(bed).boxed()
    }),
    ("in_driver_mode_a_failed_drain_is_not_given_back", |bed| {
        second::after_one_that_failed(bed).boxed()
    }),
    ("in_driver_mode_what_a_drain_changed_follows_the_cordon", |bed| {
        second::follows_the_cordon(bed).boxed()
    }),
    ("in_driver_mode_another_clusters_host_stays_disabled", |bed| {
        giving_back::of_another_cluster(bed).boxed()
    }),
    ("after_kubectl_uncordon_ours_puts_it_right", |bed| {
        giving_back::after_kubectl_uncordon(bed).boxed()
    }),
    ("a_check_finds_what_a_drain_would", |bed| {
        access::checked(bed).boxed()
    }),
    ("in_driver_mode_what_stays_disabled_is_named", |bed| {
        giving_back::what_stays(bed).boxed()
    }),
    ("from_a_terminal_what_stays_disabled_is_named", |bed| {
        giving_back::what_stays_in_a_terminal(bed).boxed()
    }),
    (
        "what_is_asked_to_move_and_has_no_record_is_cancelled_as_well",
        |bed| cancelling::before_the_record(bed).boxed(),
    ),
    (
        "in_driver_mode_a_cancel_enables_the_host_once_nova_compute_responds_again",
        |bed| cancelling::while_silent(bed).boxed(),
    ),
    ("in_driver_mode_what_has_no_record_is_cancelled_as_well", |bed| {
        cancelling::in_driver_mode(bed).boxed()
    }),
    ("seventy_old_records_are_checked_once_each", |bed| {
        records::seventy(bed).boxed()
    }),
    ("a_server_that_is_scheduled_in_the_middle_leaves_as_well", |bed| {
        arriving::scheduled(bed).boxed()
    }),
    (
        "a_server_that_is_migrated_here_in_the_middle_leaves_as_well",
        |bed| arriving::migrated(bed).boxed(),
    ),
    ("a_revoked_token_is_replaced_in_mid_drain", |bed| {
        access::revoked(bed).boxed()
    }),
    ("a_member_is_told_the_rule", |bed| access::member(bed).boxed()),
    ("a_wrong_password_is_refused", |bed| {
        access::wrong_password(bed).boxed()
    }),
    ("an_unknown_host_is_refused", |bed| {
        access::unknown_host(bed).boxed()
    }),
    ("a_wrong_region_is_refused", |bed| access::regions(bed).boxed()),
    (
        "in_driver_mode_a_server_that_is_started_while_pods_leave_is_migrated",
        |bed| looking_again::started(bed).boxed(),
    ),
    (
        "in_driver_mode_a_server_that_is_started_before_the_end_is_migrated",
        |bed| looking_again::started_before_the_end(bed).boxed(),
    ),
    (
        "in_driver_mode_a_server_on_a_host_without_nova_compute_is_named",
        |bed| looking_again::stranded(bed).boxed(),
    ),
    (
        "in_driver_mode_an_operator_who_enables_the_host_while_pods_leave_is_not_overridden",
        |bed| looking_again::enabled(bed).boxed(),
    ),
    (
        "in_driver_mode_an_operator_who_enables_the_host_while_servers_move_is_not_overridden",
        |bed| looking_again::enabled_while_servers_move(bed).boxed(),
    ),
    ("in_driver_mode_a_credential_that_goes_bad_is_waited_for", |bed| {
        credentials::disabled_for_a_while(bed).boxed()
    }),
    (
        "in_driver_mode_a_credential_that_stays_bad_ends_the_drain",
        |bed| credentials::disabled(bed).boxed(),
    ),
    ("in_driver_mode_a_stalled_migration_says_since_when", |bed| {
        words::stalled(bed).boxed()
    }),
    (
        "in_driver_mode_a_nova_compute_that_dies_while_a_server_moves_is_named_at_the_end",
        |bed| words::dead_compute(bed).boxed(),
    ),
    (
        "in_driver_mode_refused_migrations_are_retried_after_a_pause",
        |bed| words::refused(bed).boxed(),
    ),
    ("in_driver_mode_no_valid_host_names_the_disabled_one", |bed| {
        words::no_valid_host(bed).boxed()
    }),
    (
        "in_driver_mode_a_server_that_falls_into_error_says_why_at_once",
        |bed| words::error(bed).boxed(),
    ),
    (
        "in_driver_mode_requests_that_time_out_and_servers_are_named",
        |bed| words::silent(bed).boxed(),
    ),
    ("an_incoming_server_has_its_name", |bed| words::names(bed).boxed()),
    ("in_driver_mode_an_old_nova_is_named_with_the_remedy", |bed| {
        words::old_nova(bed).boxed()
    }),
    (
        "in_driver_mode_a_third_host_with_an_old_mark_holds_up_nothing",
        |bed| sharing::leftover(bed).boxed(),
    ),
    ("in_driver_mode_the_host_of_another_node_is_refused", |bed| {
        sharing::of_another_node(bed).boxed()
    }),
    ("two_drains_at_once_leave_one_host_in_service", |bed| {
        sharing::two_drains(bed).boxed()
    }),
    (
        "in_driver_mode_two_drains_at_once_leave_one_host_in_service",
        |bed| sharing::two_drains_in_driver_mode(bed).boxed(),
    ),
    ("in_driver_mode_servers_from_volumes_leave_as_well", |bed| {
        kinds::from_volumes(bed).boxed()
    }),
    ("in_driver_mode_shelved_servers_stay", |bed| {
        kinds::shelved(bed).boxed()
    }),
    (
        "in_driver_mode_a_server_that_is_unshelved_while_pods_leave_is_migrated",
        |bed| kinds::unshelved(bed).boxed(),
    ),
    (
        "in_driver_mode_a_resized_server_is_found_before_any_change",
        |bed| kinds::resized(bed).boxed(),
    ),
    (
        "in_driver_mode_a_cancel_while_nova_is_silent_keeps_the_host_disabled",
        |bed| cancelling::while_silent_to_the_end(bed).boxed(),
    ),
    (
        "in_driver_mode_a_nova_compute_that_falls_silent_in_the_cancel_stays_disabled",
        |bed| cancelling::falls_silent(bed).boxed(),
    ),
    ("overload_is_waited_out", |bed| faults::overload(bed).boxed()),
    ("lost_answers_begin_nothing_twice", |bed| {
        faults::lost(bed).boxed()
    }),
    ("the_driver_drains_a_node_with_it", |bed| {
        whole::drain(bed).boxed()
    }),
    ("the_driver_cancels_a_drain_with_it", |bed| {
        whole::cancel(bed).boxed()
    }),
    ("a_token_that_ends_in_mid_drain_is_renewed_before", |bed| {
        access::renewed(bed).boxed()
    }),
    ("a_token_that_has_ended_unseen_is_replaced", |bed| {
        access::expired(bed).boxed()
    }),
];

/// Up to this many testbeds run the usual scenarios.
const TESTBEDS: usize = 2;

/// On a testbed of its own, with a second cell of Nova.
const CELLS: &[Scenario] = &[
    ("long_in_driver_mode_servers_leave_within_their_cell", |bed| {
        cells::within(bed).boxed()
    }),
    (
        "long_in_driver_mode_the_last_host_of_a_cell_names_the_others",
        |bed| cells::alone(bed).boxed(),
    ),
    ("long_in_driver_mode_a_cell_that_is_down_is_named", |bed| {
        cells::down(bed).boxed()
    }),
];

const LONG: &[Scenario] = &[("long_fifty_servers_leave_side_by_side", |bed| {
    many::fifty(bed).boxed()
})];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    if skip::left_out("real-openstack") {
        println!("left out, as SCUPPER_SKIP says: real-openstack");
        return ExitCode::SUCCESS;
    }
    let mut failed = run(SCENARIOS, USUAL, TESTBEDS, &words);
    if long::wanted() {
        failed.extend(run(LONG, WIDE, 1, &words));
        failed.extend(run(CELLS, TWO_CELLS, 1, &words));
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {}", failed.join(", "));
    ExitCode::FAILURE
}

/// Runs the chosen scenarios of the list on up to `most` testbeds. Returns the names of those that failed.
fn run(list: &[Scenario], kind: Kind, most: usize, words: &[String]) -> Vec<&'static str> {
    let chosen =
        |(name, _): &Scenario| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let scenarios: Vec<Scenario> = list.iter().copied().filter(chosen).collect();
    if scenarios.is_empty() {
        return Vec::new();
    }
    println!("\nrunning {} scenarios on a real OpenStack", scenarios.len());
    let begun = Instant::now();
    let next = AtomicUsize::new(0);
    let failed: Vec<&'static str> = thread::scope(|scope| {
        let beds = (1..=most.min(scenarios.len())).map(|number| {
            let (scenarios, next) = (&scenarios, &next);
            let named = thread::Builder::new().name(format!("testbed {number}"));
            named
                .spawn_scoped(scope, move || on_a_testbed(kind, number, scenarios, next))
                .unwrap()
        });
        let beds: Vec<_> = beds.collect();
        // A panic is a testbed that did not start or end.
        beds.into_iter()
            .flat_map(|bed| bed.join().unwrap_or_else(|_| vec!["a testbed"]))
            .collect()
    });
    println!(
        "\ntest result: {} passed; {} failed; finished in {:.0} s",
        scenarios.len().saturating_sub(failed.len()),
        failed.len(),
        begun.elapsed().as_secs_f32()
    );
    failed
}

/// Takes the next scenario until there is none. The names of those that failed.
fn on_a_testbed(kind: Kind, number: usize, scenarios: &[Scenario], next: &AtomicUsize) -> Vec<&'static str> {
    let begun = Instant::now();
    let bed = Testbed::up(kind, number);
    println!(
        "testbed {number}: up after {:.0} s",
        begun.elapsed().as_secs_f32()
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let failed = runtime.block_on(async {
        tokio::select! {
            failed = all(&bed, scenarios, next) => failed,
            _ = tokio::signal::ctrl_c() => vec!["interrupted"],
        }
    });
    bed.down();
    failed
}

async fn all(bed: &Testbed, scenarios: &[Scenario], next: &AtomicUsize) -> Vec<&'static str> {
    let mut failed = Vec::new();
    while let Some((name, scenario)) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
        let begun = Instant::now();
        bed.purge();
        let result = AssertUnwindSafe(scenario(bed)).catch_unwind().await;
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        println!("test {name} ... {word} ({:.0} s)", begun.elapsed().as_secs_f32());
        if result.is_err() {
            failed.push(*name);
        }
    }
    failed
}
