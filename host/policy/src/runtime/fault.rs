//! How a call of a policy can fail, with error texts for users.

use std::fmt;
use std::time::Duration;

use rustc_demangle::demangle;
use scupper_common::text::one_line;
use thiserror::Error;
use wasmtime::component::ResourceTableError;
use wasmtime::{Trap, WasmBacktrace};

use super::bounds::Bounds;
use super::usage::CallResult;

/// Bytes of wasmtime's error that are kept.
const DETAIL_BYTES: usize = 400;

/// Frames of a guest that are shown in one line.
const SHOWN: usize = 6;

/// A failed call of a policy.
#[derive(Debug, Error)]
#[error("policy `{policy}` failed in {function}: {fault}")]
pub struct CallError {
    /// The policy.
    pub policy: String,
    /// The exported function.
    pub function: &'static str,
    /// How it failed.
    pub fault: CallFault,
}

/// A bound that the call has exceeded.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Overrun {
    /// Of all its memories together, in bytes.
    #[error("it exceeded its limit of {} MiB of memory", .0 >> 20)]
    Memory(usize),
    /// Of all its tables together.
    #[error("it exceeded its limit of {0} table elements")]
    Tables(usize),
    /// Of handles to resources.
    #[error("it exceeded its limit of {0} handles")]
    Handles(usize),
    /// Of CPU time.
    #[error("it exceeded its limit of {} ms of CPU time", .0.as_millis())]
    Cpu(Duration),
}

/// How a call failed.
#[derive(Debug, Error)]
pub enum CallFault {
    /// It exceeded a bound of its memory, tables, handles or CPU time.
    #[error(transparent)]
    Overrun(Overrun),
    /// It did not return in time.
    #[error("it did not answer within {} s", .0.as_secs_f32())]
    Wall(Duration),
    /// It did not return in time, but spent most of it waiting for the API server or for the servers of its requests.
    /// That is not the policy's fault.
    #[error(
        "it did not answer within {} s; most of that time it waited for the API server or for servers that it called",
        .0.as_secs_f32()
    )]
    Waited(Duration),
    /// One answer or call of the host carries too many bytes.
    #[error("one answer or one call of the host carried more than {} MiB", .0 >> 20)]
    TooMuchData(usize),
    /// It ended itself, which policies have no reason to do.
    #[error("it called exit with code {0}: return an error instead")]
    Exit(i32),
    /// It trapped.
    #[error("{trap}{frames}")]
    Trap {
        /// The trap.
        trap: String,
        /// Its backtrace.
        frames: Frames,
    },
    /// Its answer breaks a bound of `wit/`.
    #[error("{0}")]
    Answer(String),
    /// Another error of wasmtime.
    #[error("{0}")]
    Other(String),
    /// The driver itself failed.
    #[error("the driver failed while it ran: this is a bug in the driver")]
    Panic,
}

/// The innermost functions of a guest that trapped.
#[derive(Debug)]
pub struct Frames(pub(crate) Vec<String>);

impl CallFault {
    /// Classifies an error of wasmtime.
    pub(crate) fn of(error: &wasmtime::Error, bounds: &Bounds) -> Self {
        if let Some(overrun) = error.downcast_ref::<Overrun>() {
            return Self::Overrun(*overrun);
        }
        if let Some(wasmtime_wasi::I32Exit(code)) = error.downcast_ref() {
            return Self::Exit(*code);
        }
        if let Some(trap) = error.downcast_ref::<Trap>() {
            return Self::Trap {
                trap: trap.to_string(),
                frames: Frames::of(error),
            };
        }
        if let Some(ResourceTableError::Full) = error.downcast_ref() {
            return Self::Overrun(Overrun::Handles(bounds.handles));
        }
        let text = format!("{:#}", error.root_cause());
        if text.contains("fuel allocated for hostcalls has been exhausted") {
            return Self::TooMuchData(bounds.answer_bytes);
        }
        if text.contains("store handle limit exceeded") {
            return Self::Overrun(Overrun::Handles(bounds.handles));
        }
        Self::Other(one_line(&text, DETAIL_BYTES))
    }

    /// The wall-clock limit is exceeded. A policy that spent most of the time waiting for servers is not to blame.
    pub(crate) fn late(wall: Duration, waited: Duration) -> Self {
        if waited >= wall / 2 {
            Self::Waited(wall)
        } else {
            Self::Wall(wall)
        }
    }

    /// Whether the policy is to blame, rather than the driver or a server that the policy waited for.
    pub const fn is_the_policys(&self) -> bool {
        !matches!(self, Self::Panic | Self::Waited(_))
    }

    /// As one word.
    pub const fn result(&self) -> CallResult {
        match self {
            Self::Overrun(Overrun::Memory(_)) => CallResult::Memory,
            Self::Overrun(Overrun::Tables(_)) => CallResult::Tables,
            Self::Overrun(Overrun::Handles(_)) => CallResult::Handles,
            Self::Overrun(Overrun::Cpu(_)) => CallResult::Cpu,
            Self::Wall(_) | Self::Waited(_) => CallResult::Wall,
            Self::TooMuchData(_) => CallResult::Data,
            Self::Exit(_) => CallResult::Exit,
            Self::Trap { .. } => CallResult::Trap,
            Self::Answer(_) => CallResult::Answer,
            Self::Other(_) => CallResult::Other,
            Self::Panic => CallResult::Driver,
        }
    }
}

impl Frames {
    fn of(error: &wasmtime::Error) -> Self {
        let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else {
            return Self(Vec::new());
        };
        let frames = backtrace.frames().iter();
        Self::named(frames.map(|frame| readable(frame.func_name(), frame.func_index())))
    }

    /// The author's functions; all of them where none is the author's.
    fn named(names: impl Iterator<Item = String>) -> Self {
        let names: Vec<String> = names.filter(|name| !is_machinery(name)).collect();
        let authors: Vec<&String> = names.iter().filter(|name| !is_glue(name)).collect();
        let shown = if authors.is_empty() {
            names.iter().collect()
        } else {
            authors
        };
        let shown = shown.into_iter().take(SHOWN).map(|name| one_line(name, 120));
        Self(shown.collect())
    }
}

/// The function's name without what a compiler adds to it. Linkers of C and C++ write readable names already.
fn readable(name: Option<&str>, index: u32) -> String {
    match name {
        Some(name) => format!("{:#}", demangle(name)),
        None => format!("<wasm function {index}>"),
    }
}

/// Functions that every panic of a Rust guest passes before it traps; they hide the function to blame.
fn is_machinery(name: &str) -> bool {
    const PANICKING: [&str; 8] = [
        "__rust",
        "rust_begin_unwind",
        "rust_panic",
        "core::panicking",
        "std::panicking",
        "std::process",
        "std::sys",
        "alloc::alloc::handle_alloc_error",
    ];
    PANICKING
        .iter()
        .any(|prefix| name.trim_start_matches('<').starts_with(prefix))
}

/// Functions between the host and those that the author wrote: the generated ones, and those of the SDK that call the author's.
fn is_glue(name: &str) -> bool {
    let is_generated = name.ends_with("_cabi") || name.starts_with("scupper:drain/");
    let is_of_sdk = name.starts_with("scupper_sdk::export::")
        || name.contains("::_::Exported as scupper_sdk::bindings::");
    is_generated || is_of_sdk
}

impl fmt::Display for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(f, " in {}", self.0.join(", called by "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Frames, readable};

    /// As a policy of the SDK's tutorial trapped.
    #[test]
    fn a_backtrace_has_only_the_authors_functions() {
        let shown = |names: &[&str]| Frames::named(names.iter().map(|name| (*name).to_owned())).to_string();
        let bindings = "scupper_sdk::bindings::planner::exports::scupper::drain::planner";
        let guest = format!("<p::_::Exported as {bindings}::Guest>::make_plan");
        let cabi = format!("{bindings}::_export_make_plan_cabi");
        let glue = [
            "scupper_sdk::export::glue::make_plan",
            &guest,
            &cabi,
            "scupper:drain/planner@0.1.0#make-plan",
        ];
        let panicking = ["rust_begin_unwind", "core::panicking::panic_fmt"];
        let own = ["p::sort", "<p::P as scupper_sdk::policy::Planner>::plan"];
        assert_eq!(
            shown(&[&panicking[..], &own, &glue].concat()),
            " in p::sort, called by <p::P as scupper_sdk::policy::Planner>::plan"
        );
        // Functions of the SDK that the author has called say what was asked of it.
        assert_eq!(
            shown(&[&["scupper_sdk::draft::Draft::keep"], &own[1..], &glue].concat()),
            " in scupper_sdk::draft::Draft::keep, called by <p::P as scupper_sdk::policy::Planner>::plan"
        );
        // Better than nothing.
        assert!(
            shown(&glue).starts_with(" in scupper_sdk::export::glue::make_plan, called by <p::_::Exported")
        );
        assert_eq!(shown(&panicking), "");
    }

    #[test]
    fn names_are_readable() {
        for (name, shown) in [
            (Some("_ZN4plan4look17h0123456789abcdefE"), "plan::look"),
            (Some("_RNvNtCs1234_4plan4look5twice"), "plan::look::twice"),
            (
                Some("scupper:drain/hooks@0.1.0#step"),
                "scupper:drain/hooks@0.1.0#step",
            ),
            (Some("void sort<int>(int*)"), "void sort<int>(int*)"),
            (None, "<wasm function 7>"),
        ] {
            assert_eq!(readable(name, 7), shown);
        }
    }
}
