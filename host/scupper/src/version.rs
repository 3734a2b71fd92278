//! `scupper version`: what a bug report needs.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::exit::Exit;
use super::output::Output;
use crate::output::print;
use scupper_policy::WIT_VERSION;
use scupper_triggers::slm::{API_GROUP, API_VERSION, PLUGIN_VERSION};

/// Set in the image, or at build time by `SCUPPER_COMMIT`.
const COMMIT: (&str, Option<&str>) = ("SCUPPER_COMMIT", option_env!("SCUPPER_COMMIT"));
const IMAGE: (&str, Option<&str>) = ("SCUPPER_IMAGE", None);

/// Prints the versions of the program and of the interfaces that it speaks.
pub(super) fn run(output: Output) -> ExitCode {
    let versions = versions(|name| std::env::var(name).ok());
    print(&match output {
        Output::Human | Output::Wide => for_people(&versions),
        Output::Json | Output::Yaml => output.document(&versions),
    });
    Exit::Done.into()
}

fn versions(environment: impl Fn(&str) -> Option<String>) -> Value {
    let known = |(name, built): (&str, Option<&str>)| {
        let said = built.map(str::to_owned).or_else(|| environment(name));
        said.filter(|text| !text.is_empty())
    };
    let (major, minor) = WIT_VERSION;
    json!({
        "client": env!("CARGO_PKG_VERSION"),
        "commit": known(COMMIT),
        "image": known(IMAGE),
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
        let image = |name: &str| (name == "SCUPPER_IMAGE").then(|| "registry/scupper:1".to_owned());
        let versions = versions(image);
        assert_eq!(versions["image"], "registry/scupper:1");
        assert_eq!(versions["wit"], "scupper:drain@0.1");
        let nothing = super::versions(|_| Some(String::new()));
        assert_eq!(nothing["image"], Value::Null);
        assert!(for_people(&nothing).contains("Image:           unknown\n"));
    }
}
