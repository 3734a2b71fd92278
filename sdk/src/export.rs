//! The export macro, and the glue between the generated traits and those that authors implement.

/// Exports a type as a component, with the interfaces that it implements.
///
/// ```
/// # use scupper_sdk::*;
/// # struct Mine;
/// # impl Policy for Mine { fn describe() -> Description { description!("") } }
/// # impl Planner for Mine {
/// #     fn plan(_: &Drain, _: &Node, _: &mut Draft<'_>) -> Result<(), String> { Ok(()) }
/// # }
/// # impl Hooks for Mine {
/// #     fn phases() -> Vec<Phase> { vec![] }
/// #     fn step(_: &Call) -> Outcome { Outcome::Done }
/// # }
/// scupper_sdk::export!(Mine with planner, hooks);
/// ```
///
/// Name only what the policy implements: `planner`, `hooks`, `surroundings`. In native builds the macro only checks that
/// the traits are implemented.
#[macro_export]
macro_rules! export {
    ($policy:ident with $($interface:ident),+) => {
        const _: () = {
            struct Exported;
            $crate::__export_interface!(about $policy);
            $($crate::__export_interface!($interface $policy);)+
        };
    };
}

/// One interface of [`export!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __export_interface {
    (about $policy:ident) => {
        impl $crate::glue::About for Exported {
            fn describe() -> $crate::Description {
                $crate::glue::describe::<$policy>()
            }
            fn check_config() -> ::std::vec::Vec<$crate::Problem> {
                $crate::glue::check_config::<$policy>()
            }
        }
        #[cfg(target_family = "wasm")]
        $crate::bindings::about::export_about!(Exported with_types_in $crate::bindings::about);
        #[cfg(not(target_family = "wasm"))]
        const _: fn() -> $crate::Description = <Exported as $crate::glue::About>::describe;
    };
    (planner $policy:ident) => {
        impl $crate::glue::Planner for Exported {
            fn make_plan(
                drain: $crate::Drain,
                node: $crate::Node,
                pods: ::std::vec::Vec<$crate::Pod>,
                draft: $crate::Plan,
            ) -> ::std::result::Result<$crate::Plan, ::std::string::String> {
                $crate::glue::make_plan::<$policy>(&drain, &node, &pods, draft)
            }
        }
        #[cfg(target_family = "wasm")]
        $crate::bindings::planner::export_planner!(Exported with_types_in $crate::bindings::planner);
        #[cfg(not(target_family = "wasm"))]
        const _: fn(
            $crate::Drain,
            $crate::Node,
            ::std::vec::Vec<$crate::Pod>,
            $crate::Plan,
        ) -> ::std::result::Result<$crate::Plan, ::std::string::String> = <Exported as $crate::glue::Planner>::make_plan;
    };
    (hooks $policy:ident) => {
        impl $crate::glue::Hooks for Exported {
            fn phases() -> ::std::vec::Vec<$crate::Phase> {
                $crate::glue::phases::<$policy>()
            }
            fn step(call: $crate::Call) -> $crate::Outcome {
                $crate::glue::step::<$policy>(&call)
            }
        }
        #[cfg(target_family = "wasm")]
        $crate::bindings::hooks::export_hooks!(Exported with_types_in $crate::bindings::hooks);
        #[cfg(not(target_family = "wasm"))]
        const _: fn($crate::Call) -> $crate::Outcome = <Exported as $crate::glue::Hooks>::step;
    };
    (surroundings $policy:ident) => {
        impl $crate::glue::Surroundings for Exported {
            fn check(
                node: ::std::option::Option<$crate::Node>,
            ) -> ::std::vec::Vec<$crate::Finding> {
                $crate::glue::check::<$policy>(node.as_ref())
            }
        }
        #[cfg(target_family = "wasm")]
        $crate::bindings::surroundings::export_surroundings!(Exported with_types_in $crate::bindings::surroundings);
        #[cfg(not(target_family = "wasm"))]
        const _: fn(
            ::std::option::Option<$crate::Node>,
        ) -> ::std::vec::Vec<$crate::Finding> = <Exported as $crate::glue::Surroundings>::check;
    };
}

/// The functions that the expansion of [`export!`] calls. Not for authors.
#[doc(hidden)]
pub mod glue {
    pub use crate::bindings::{
        about::exports::scupper::drain::about::Guest as About,
        hooks::exports::scupper::drain::hooks::Guest as Hooks,
        planner::exports::scupper::drain::planner::Guest as Planner,
        surroundings::exports::scupper::drain::surroundings::Guest as Surroundings,
    };
    use crate::{Call, Description, Draft, Drain, Finding, Node, Outcome, Phase, Plan, Pod, Problem};

    pub fn describe<P: crate::Policy>() -> Description {
        log_panics();
        P::describe()
    }

    pub fn check_config<P: crate::Policy>() -> Vec<Problem> {
        log_panics();
        P::check_config()
    }

    pub fn make_plan<P: crate::Planner>(
        drain: &Drain,
        node: &Node,
        pods: &[Pod],
        plan: Plan,
    ) -> Result<Plan, String> {
        log_panics();
        let mut draft = Draft::new(pods, plan);
        P::plan(drain, node, &mut draft)?;
        Ok(draft.finish())
    }

    pub fn phases<P: crate::Hooks>() -> Vec<Phase> {
        log_panics();
        P::phases()
    }

    pub fn step<P: crate::Hooks>(call: &Call) -> Outcome {
        log_panics();
        P::step(call)
    }

    pub fn check<P: crate::Surroundings>(node: Option<&Node>) -> Vec<Finding> {
        log_panics();
        P::check(node)
    }

    /// In wasm a panic is a trap without a message, so the message is logged first.
    fn log_panics() {
        #[cfg(target_family = "wasm")]
        std::panic::set_hook(Box::new(|info| crate::log::error!("{info}")));
    }
}
