//! `scupper version`: what a bug report needs.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::exit::Exit;
use super::output::Output;
use crate::output::print;
use scupper_policy::WIT_VERSION;
use scupper_report::Format;
use scupper_triggers::slm::{API_GROUP, API_VERSION, PLUGIN_VERSION};

/// The commit of the sources; empty if `build.rs` found none.
const COMMIT: &str = env!("SCUPPER_COMMIT");

/// The variable in which the image names itself.
const IMAGE: &str = "SCUPPER_IMAGE";

/// Prints the versions of the program and of the interfaces that it speaks.
pub fn run(output: Output) -> ExitCode {
    let versions = versions(COMMIT, std::env::var(IMAGE).ok().as_deref());
    print(&match output.format() {
        Format::Human => for_people(&versions),
        Format::Json => output.document(&versions),
    });
    Exit::Done.into()
}

fn versions(commit: &str, image: Option<&str>) -> Value {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (major, minor) = WIT_VERSION;
    json!({
        "client": env!("CARGO_PKG_VERSION"),
        "commit": known(commit),
        "image": image.and_then(known),
        "lifecycleApi": format!("{API_GROUP}/{API_VERSION}"),
        "kubeletPlugin": PLUGIN_VERSION,
        "wit": format!("scupper:drain@{major}.{minor}"),
    })
}

fn for_people(versions: &Value) -> String {
    let line = |label: &str, field: &str| {
        let value = versions.get(field).and_then(Value::as_str).unwrap_or("unknown");
        format!("{label:<17}{value}")
    };
    [
        line("Client:", "client"),
        line("Commit:", "commit"),
        line("Image:", "image"),
        line("Lifecycle API:", "lifecycleApi"),
        line("Kubelet plugin:", "kubeletPlugin"),
        line("Policies (WIT):", "wit"),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_are_null_or_unknown() {
        let versions = versions("abc", Some("registry/scupper:1"));
        assert_eq!(versions["image"], "registry/scupper:1");
        assert_eq!(versions["commit"], "abc");
        assert_eq!(versions["wit"], "scupper:drain@0.1");
        let nothing = super::versions("", Some(""));
        assert_eq!(nothing["image"], Value::Null);
        assert_eq!(nothing["commit"], Value::Null);
        assert!(for_people(&nothing).contains("Image:           unknown\n"));
    }
}
