//! Code that the guests share: the generated types, and macros that make a component of plain functions. It bypasses
//! the SDK, as a hostile policy would.

#[doc(hidden)]
pub use scupper_sdk::bindings;
#[doc(hidden)]
pub use scupper_sdk::glue;
pub use scupper_sdk::{
    Call, Decision, Description, Drain, Entry, Finding, Grant, Node, Outcome, Phase, Plan, Pod, Problem,
    Subject, Verdict, Wave, cluster, config, facts, http, log,
};

/// A decision on a pod.
pub fn decision(pod: &str, verdict: Verdict, reason: impl Into<String>) -> Decision {
    Decision {
        pod: pod.to_owned(),
        verdict,
        reason: reason.into(),
        policy: String::new(),
    }
}

/// Keeps code without an effect from being optimized away.
pub fn spin() -> ! {
    let mut turns: u64 = 0;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

/// Exports `about`, with a description of its own if there is one, and its own `check-config`.
#[macro_export]
macro_rules! about {
    () => {
        $crate::about!($crate::Description::new("guest", "0.1.0", "A guest of the tests"));
    };
    ($description:expr) => {
        $crate::about!($description, ::std::vec::Vec::new());
    };
    ($description:expr, $problems:expr) => {
        struct About;
        impl $crate::glue::About for About {
            fn describe() -> $crate::Description {
                $description
            }
            fn check_config() -> ::std::vec::Vec<$crate::Problem> {
                $problems
            }
        }
        $crate::bindings::about::export_about!(About with_types_in $crate::bindings::about);
    };
}

/// Exports `planner` with this function.
#[macro_export]
macro_rules! planner {
    ($plan:path) => {
        struct Planner;
        impl $crate::glue::Planner for Planner {
            fn make_plan(
                drain: $crate::Drain,
                node: $crate::Node,
                pods: ::std::vec::Vec<$crate::Pod>,
                draft: $crate::Plan,
            ) -> ::std::result::Result<$crate::Plan, ::std::string::String> {
                $plan(drain, node, pods, draft)
            }
        }
        $crate::bindings::planner::export_planner!(Planner with_types_in $crate::bindings::planner);
    };
}

/// Exports `hooks` with these phases and this function.
#[macro_export]
macro_rules! hooks {
    ($phases:expr, $step:path) => {
        struct Hooks;
        impl $crate::glue::Hooks for Hooks {
            fn phases() -> ::std::vec::Vec<$crate::Phase> {
                ::std::vec::Vec::from($phases)
            }
            fn step(call: $crate::Call) -> $crate::Outcome {
                $step(&call)
            }
        }
        $crate::bindings::hooks::export_hooks!(Hooks with_types_in $crate::bindings::hooks);
    };
}

/// Exports `surroundings` with this function.
#[macro_export]
macro_rules! surroundings {
    ($check:path) => {
        struct Surroundings;
        impl $crate::glue::Surroundings for Surroundings {
            fn check(node: ::std::option::Option<$crate::Node>) -> ::std::vec::Vec<$crate::Finding> {
                $check(node)
            }
        }
        $crate::bindings::surroundings::export_surroundings!(Surroundings with_types_in $crate::bindings::surroundings);
    };
}

/// A revision of one policy, for tests of reloading: each answer names the built-in version, twice, and the
/// configuration. With `trap` in the configuration its steps trap; `refuse` is an invalid configuration; with `state`
/// it reports the state that it received; with `look` its steps first read the node.
#[macro_export]
macro_rules! revision {
    ($version:literal, $state_version:literal) => {
        $crate::about!(
            $crate::Description::new("revision", $version, "Answers with its version")
                .state_version($state_version),
            $crate::config::get("refuse")
                .map(|_| $crate::Problem::new("refuse", "no"))
                .into_iter()
                .collect()
        );
        $crate::hooks!(
            [$crate::Phase::BeforeDrain, $crate::Phase::AfterDrain],
            step
        );

        fn step(call: &$crate::Call) -> $crate::Outcome {
            if $crate::config::get("trap").is_some() {
                panic!("as configured");
            }
            if $crate::config::get("look").is_some() {
                let _whatever = $crate::cluster::get_node();
            }
            let note = match $crate::config::get("state") {
                Some(_) => format!("after {}", String::from_utf8_lossy(&call.state)),
                None => $crate::config::get("note").unwrap_or_default(),
            };
            $crate::Outcome::pending(format!("{} {note}", $version))
                .state(*$version.as_bytes().first_chunk::<1>().unwrap())
                .into()
        }
    };
}
