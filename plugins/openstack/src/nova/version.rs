//! The microversion of all requests: not newer than tested, not older than needed.

use serde::Deserialize;

/// The newest tested one.
const NEWEST: u32 = 96;
/// Pike, which gives services an id.
const OLDEST: u32 = 53;

/// `2.x`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32);

#[derive(Deserialize)]
struct Answer {
    version: Limits,
}

#[derive(Deserialize)]
struct Limits {
    version: String,
    #[serde(default)]
    min_version: String,
}

impl Version {
    /// Chooses from the version document of `/v2.1/`.
    pub(crate) fn choose(body: &[u8]) -> Result<Self, String> {
        let limits = serde_json::from_slice::<Answer>(body)
            .map_err(|error| format!("Nova's version document cannot be read: {error}"))?
            .version;
        let minor = |text: &str| text.strip_prefix("2.")?.parse::<u32>().ok();
        let newest = minor(&limits.version).unwrap_or_default();
        let oldest = minor(&limits.min_version).unwrap_or_default();
        if newest < OLDEST {
            let offers = if limits.version.is_empty() {
                "no microversions"
            } else {
                &limits.version
            };
            return Err(format!(
                "Nova supports {offers}, but this policy needs at least 2.{OLDEST} (Pike)"
            ));
        }
        if oldest > NEWEST {
            return Err(format!(
                "Nova requires at least 2.{oldest}, but this policy supports at most 2.{NEWEST}"
            ));
        }
        Ok(Self(newest.min(NEWEST)))
    }

    /// Whether migrations can be listed by time of change, in pages.
    pub(crate) const fn has_changes_since(self) -> bool {
        self.0 >= 59
    }

    /// Whether queued migrations can be aborted.
    pub(crate) const fn aborts_queued(self) -> bool {
        self.0 >= 65
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(newest: &str, oldest: &str) -> Result<Version, String> {
        let body =
            format!(r#"{{"version": {{"id": "v2.1", "version": "{newest}", "min_version": "{oldest}"}}}}"#);
        Version::choose(body.as_bytes())
    }

    #[test]
    fn the_newest_version_up_to_the_tested_one_is_chosen() {
        assert_eq!(choose("2.100", "2.1"), Ok(Version(96)));
        assert_eq!(choose("2.72", "2.1"), Ok(Version(72)));
        assert_eq!(choose("2.53", "2.1"), Ok(Version(53)));
    }

    #[test]
    fn an_unsupported_version_is_refused_with_both_limits() {
        let error = choose("2.42", "2.1").unwrap_err();
        assert!(error.contains("2.42") && error.contains("2.53"), "{error}");
        let error = choose("", "").unwrap_err();
        assert!(error.contains("no microversions"), "{error}");
        let error = choose("2.200", "2.97").unwrap_err();
        assert!(error.contains("2.97"), "{error}");
        assert!(Version::choose(b"<html>").is_err());
    }

    #[test]
    fn features_depend_on_the_version_that_introduced_them() {
        let at = |minor| {
            let version = Version(minor);
            (version.has_changes_since(), version.aborts_queued())
        };
        assert_eq!(at(58), (false, false));
        assert_eq!(at(59), (true, false));
        assert_eq!(at(64), (true, false));
        assert_eq!(at(65), (true, true));
    }
}
