//! Hostile guests, by the rows of the threat table: each stays within its limits, is named in the message, and disturbs
//! no other policy.
//!
//! | Row | Attack | Where |
//! |---|---|---|
//! | 1–3 | loops, loops without a check point, endless sleep | `time` |
//! | 4–6, 8 | memory, recursion, answers, handles | `space` |
//! | 7 | answers that break the binary interface | `wire` |
//! | 9–10 | floods of log lines, random numbers, clocks | `words` |
//! | 11–12 | requests to forbidden places, secrets | `reach`; the tables are in `http` |
//! | 13 | plans with pods that are not its own | `plans` |
//! | 14–15 | compile bombs, native code in disguise | `bytes` |
//! | 16 | guests that end themselves | `endings` |
//! | 17 | reload storms | `endings`: their first limit; `reload/flapping`: how few are tried |
//!
//! Each row below has its limit for the growth of the driver's memory, and `memory` checks them.

pub(crate) mod bytes;
mod endings;
mod memory;
mod modules;
mod neighbour;
mod plans;
mod reach;
mod space;
mod time;
mod wire;
mod words;

use std::pin::Pin;

use neighbour::{beside, beside_steps};
use scupper_policy::Policies;
use scupper_policy_spec::PolicySpec;

use crate::support::{load_spec, short, spec};

/// An attack of the table.
struct Row {
    name: &'static str,
    /// The allowed growth of the driver meanwhile, in MiB.
    most_mib: u64,
    run: fn() -> Pin<Box<dyn Future<Output = ()>>>,
}

/// Makes a test of each row, and a table of all rows.
macro_rules! rows {
    ($($module:ident::$row:ident within $mib:literal MiB,)+) => {
        const TABLE: &[Row] = &[
            $(Row { name: stringify!($row), most_mib: $mib, run: || Box::pin($module::$row()) },)+
        ];
        $(#[tokio::test]
        async fn $row() {
            $module::$row().await;
        })+
    };
}

rows! {
    time::row_01_a_loop_in_a_plan within 8 MiB,
    time::row_01_a_loop_in_a_step within 8 MiB,
    time::row_01_many_loops_share_the_workers within 8 MiB,
    time::row_01_a_call_that_is_dropped_leaves_nothing_behind within 8 MiB,
    time::row_02_a_loop_in_describe within 8 MiB,
    time::row_02_a_loop_at_the_start within 8 MiB,
    time::row_02_a_loop_while_arguments_are_given_and_while_answers_are_freed within 8 MiB,
    time::row_03_waiting_for_a_cluster_that_never_answers within 8 MiB,
    time::row_03_sleeping_for_a_day within 8 MiB,
    space::row_04_memory_until_there_is_none within 72 MiB,
    space::row_04_more_memory_than_allowed_to_begin_with within 8 MiB,
    space::row_04_more_instances_tables_and_memories_than_allowed within 8 MiB,
    space::row_05_recursion_without_end within 8 MiB,
    space::row_05_calling_the_host_while_it_gives_arguments within 8 MiB,
    space::row_06_answers_that_carry_too_much within 32 MiB,
    space::row_06_more_decisions_than_pods within 8 MiB,
    space::row_06_a_state_that_nobody_keeps within 8 MiB,
    wire::row_07_what_is_made_by_hand_can_be_right within 8 MiB,
    wire::row_07_texts_that_are_none within 8 MiB,
    wire::row_07_answers_that_lie_nowhere within 8 MiB,
    wire::row_07_cases_that_do_not_exist within 8 MiB,
    wire::row_07_outcomes_that_do_not_exist_and_room_where_there_is_none within 8 MiB,
    space::row_08_handles_that_are_never_let_go within 8 MiB,
    words::row_09_a_flood_of_log_lines within 8 MiB,
    words::row_10_more_random_bytes_than_there_is_memory within 8 MiB,
    words::row_10_dice_fall_the_same_way_for_the_same_drain within 8 MiB,
    reach::row_11_requests_to_where_nobody_sent_it within 8 MiB,
    reach::row_12_a_secret_by_its_name within 8 MiB,
    plans::row_13_a_stranger_in_a_plan within 8 MiB,
    bytes::row_14_compile_bombs within 16 MiB,
    bytes::row_15_native_code_in_disguise within 8 MiB,
    bytes::row_15_a_cache_that_somebody_changed within 8 MiB,
    endings::row_16_a_panic_names_the_function within 8 MiB,
    endings::row_16_a_failure_becomes_what_the_operator_wants within 8 MiB,
    endings::row_16_exit_and_abort within 8 MiB,
    endings::row_16_a_panic_of_the_driver_itself_becomes_an_answer within 8 MiB,
    endings::row_17_a_storm_of_broken_candidates_compiles_nothing within 8 MiB,
}

/// The policy `p` from a guest, with low limits.
async fn load_short(name: &str) -> Policies {
    load_spec(PolicySpec {
        limits: short(),
        ..spec(name)
    })
    .await
    .unwrap()
}
