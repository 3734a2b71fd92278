//! The names a component imports and exports, and which of them make it a Scupper policy.

use std::hash::Hash;

use scupper_common::text::one_line;
use wasmparser::{Parser, Payload};

use crate::wasi;
use crate::wasm_file::SourceError;

/// Our WIT package.
const PACKAGE: &str = "scupper:drain/";
/// The package's major and minor version that policies must be built for.
pub const VERSION: (u64, u64) = (0, 1);

/// The interfaces of the package that a policy may import. The first only has types.
pub(crate) const IMPORTS: [&str; 8] = [
    "types", "log", "config", "cluster", "plan", "facts", "events", "http",
];

/// The imports and exports of a component.
#[derive(Default)]
pub(crate) struct Names<'a> {
    imports: Vec<&'a str>,
    exports: Vec<&'a str>,
}

impl<'a> Names<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Result<Self, wasmparser::BinaryReaderError> {
        let mut names = Self::default();
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        names.imports.push(import?.name.name);
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        names.exports.push(export?.name.name);
                    }
                }
                _ => {}
            }
        }
        Ok(names)
    }

    pub(crate) fn check_exports(&self) -> Result<(), SourceError> {
        let ours = |name: &str| {
            self.exports
                .iter()
                .filter_map(|export| ours(export))
                .find(|our| our.name == name)
        };
        let Some(about) = ours("about") else {
            return Err(SourceError::NotAPolicy {
                exports: list(&self.exports),
            });
        };
        about.check_version()?;
        let roles = [ours("planner"), ours("hooks")];
        for ours in roles.iter().flatten().chain(&ours("surroundings")) {
            ours.check_version()?;
        }
        if roles.iter().all(Option::is_none) {
            Err(SourceError::Idle)
        } else {
            Ok(())
        }
    }

    /// `wasi`: the operator has granted the harmless part of WASI.
    pub(crate) fn check_imports(&self, wasi: bool) -> Result<(), SourceError> {
        let unknown: Vec<&str> = self
            .imports
            .iter()
            .filter(|import| !ours(import).is_some_and(|our| IMPORTS.contains(&our.name)))
            .filter(|import| !wasi::is_harmless(import))
            .copied()
            .collect();
        let system: Vec<&str> = unknown
            .iter()
            .filter(|import| import.starts_with("wasi:"))
            .copied()
            .collect();
        if !system.is_empty() {
            return Err(SourceError::System {
                imports: list(&system),
            });
        }
        if !unknown.is_empty() {
            return Err(SourceError::Imports {
                imports: list(&unknown),
            });
        }
        self.imports
            .iter()
            .filter_map(|import| ours(import))
            .try_for_each(|our| our.check_version())?;
        if wasi {
            return Ok(());
        }
        check_system(self.imports.iter().copied())
    }
}

/// Refuses imports that need the grant `wasi`, if the policy does not have it.
pub fn check_system<'a>(imports: impl Iterator<Item = &'a str>) -> Result<(), SourceError> {
    let system: Vec<&str> = imports.filter(|name| name.starts_with("wasi:")).collect();
    if system.is_empty() {
        return Ok(());
    }
    let imports = list(&system);
    Err(SourceError::Wasi { imports })
}

/// The rules of the scan as one value. Code compiled under other rules was also scanned under other rules.
pub fn rules() -> impl Hash {
    (VERSION, IMPORTS, wasi::HARMLESS)
}

/// An interface of our package.
struct Ours<'a> {
    name: &'a str,
    version: &'a str,
}

/// `scupper:drain/NAME@VERSION`
fn ours(name: &str) -> Option<Ours<'_>> {
    let (name, version) = name.strip_prefix(PACKAGE)?.split_once('@')?;
    Some(Ours { name, version })
}

impl Ours<'_> {
    /// Within one `0.y` versions only add.
    fn check_version(&self) -> Result<(), SourceError> {
        let mut numbers = self.version.split('.').map(str::parse::<u64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) if (major, minor) == VERSION => Ok(()),
            _ => Err(SourceError::Version {
                theirs: one_line(self.version, 40),
            }),
        }
    }
}

/// The first few names, for messages.
fn list(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| one_line(name, 100)).collect();
    match names.len() {
        0 => "nothing".to_owned(),
        more @ 9.. => {
            shown.push(format!("{} more", more - SHOWN));
            shown.join(", ")
        }
        _ => shown.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component<'a>(imports: &[&'a str], exports: &[&'a str]) -> Result<(), SourceError> {
        let names = Names {
            imports: imports.to_vec(),
            exports: exports.to_vec(),
        };
        names.check_exports()?;
        names.check_imports(false)
    }

    const ABOUT: &str = "scupper:drain/about@0.1.0";
    const HOOKS: &str = "scupper:drain/hooks@0.1.0";

    #[test]
    fn any_patch_of_our_version_will_do_and_other_exports_are_ignored() {
        let imports = ["scupper:drain/types@0.1.7", "scupper:drain/log@0.1.0"];
        let exports = ["scupper:drain/about@0.1.3", "init", "scupper:drain/planner@0.1.0"];
        assert!(component(&imports, &exports).is_ok());
    }

    #[test]
    fn other_versions_are_named_wherever_they_occur() {
        for (imports, exports) in [
            (
                [ABOUT, HOOKS].as_slice(),
                ["scupper:drain/about@0.2.0"].as_slice(),
            ),
            (&[], &[ABOUT, "scupper:drain/hooks@1.1.0"]),
            (&["scupper:drain/log@0.3.0"], &[ABOUT, HOOKS]),
            (&["scupper:drain/log@next"], &[ABOUT, HOOKS]),
        ] {
            assert!(
                matches!(component(imports, exports), Err(SourceError::Version { .. })),
                "{imports:?} {exports:?}"
            );
        }
    }

    #[test]
    fn imports_are_ours_or_refused_by_name() {
        let wasi = component(
            &[
                "wasi:sockets/tcp@0.2.6",
                "wasi:io/poll@0.2.6",
                "scupper:drain/log@0.1.0",
            ],
            &[ABOUT, HOOKS],
        );
        assert!(matches!(wasi, Err(SourceError::System { imports }) if imports == "wasi:sockets/tcp@0.2.6"));
        let other = component(
            &["shop:cart/total", "scupper:drain/planner@0.1.0"],
            &[ABOUT, HOOKS],
        );
        let error = other.unwrap_err();
        assert!(matches!(error, SourceError::Imports { .. }), "{error}");
        let text = error.to_string();
        for name in IMPORTS.into_iter().filter(|name| *name != "types") {
            assert!(text.contains(name), "{text}");
        }
    }

    #[test]
    fn the_harmless_part_of_the_system_must_be_granted() {
        let names = Names {
            imports: vec![
                "wasi:io/poll@0.2.6",
                "scupper:drain/log@0.1.0",
                "wasi:cli/exit@0.2.6",
            ],
            exports: vec![ABOUT, HOOKS],
        };
        assert!(names.check_imports(true).is_ok());
        let refused = names.check_imports(false);
        assert!(
            matches!(&refused, Err(SourceError::Wasi { imports }) if imports == "wasi:io/poll@0.2.6, wasi:cli/exit@0.2.6"),
            "{refused:?}"
        );
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..20).map(|number| format!("n{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(list(&names), "n0, n1, n2, n3, n4, n5, n6, n7, 12 more");
        assert_eq!(list(&[]), "nothing");
    }
}
