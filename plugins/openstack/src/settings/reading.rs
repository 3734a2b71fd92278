//! Reads single keys and collects the problems. It does not know what a key means.

use std::ops::RangeInclusive;

use scupper_sdk::{Problem, config};

/// Reads keys and collects problems, to report all of them together.
pub(super) struct Reader(Vec<Problem>);

impl Reader {
    pub(super) fn new(problems: Vec<Problem>) -> Self {
        Self(problems)
    }

    pub(super) fn finish(self) -> Result<(), Vec<Problem>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }

    pub(super) fn problem(&mut self, key: &str, message: impl Into<String>) {
        self.0.push(Problem::new(key, message.into()));
    }

    /// Rejects keys that `clouds.yaml` has and this configuration does not.
    pub(super) fn misplaced(&mut self) {
        let secret = "secrets do not belong in the configuration: grant it as a secret of this name";
        let grant = "the CA certificates of an origin belong beside its grant";
        for (key, message) in [
            ("password", secret),
            ("application-credential-secret", secret),
            ("token", "Keystone issues the token: grant its capture"),
            ("cacert", grant),
            ("verify", grant),
            ("cert", grant),
            ("key", grant),
            ("region", "use `region-name`"),
            ("profile", "set `auth-url` and the other keys directly"),
        ] {
            if config::get(key).is_some() {
                self.problem(key, message);
            }
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        config::get(key)
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    }

    /// What the SDK has read.
    pub(super) fn ok_or_report<T: Default>(&mut self, read: Result<T, Problem>) -> T {
        read.unwrap_or_else(|problem| {
            self.0.push(problem);
            T::default()
        })
    }

    /// A required URL, without a trailing slash.
    pub(super) fn url(&mut self, key: &str) -> String {
        self.ok_or_report(config::url(key, "https://cloud.example.com:5000"))
    }

    /// One of these values; the first is the default.
    pub(super) fn choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> T {
        #[expect(clippy::indexing_slicing, reason = "callers pass at least one choice")]
        let default = choices[0].1;
        let Some(text) = self.text(key) else {
            return default;
        };
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
            return *value;
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        self.problem(key, format!("`{text}`: must be one of {}", words.join(", ")));
        default
    }

    pub(super) fn number(&mut self, key: &str, default: u64, range: RangeInclusive<u64>) -> u64 {
        match config::parse(key, default) {
            Ok(number) if range.contains(&number) => number,
            Ok(number) => {
                let (from, to) = range.into_inner();
                self.problem(key, format!("`{number}`: must be a number from {from} to {to}"));
                default
            }
            Err(problem) => {
                self.0.push(problem);
                default
            }
        }
    }

    /// `a=b,c=d`
    pub(super) fn pairs(&mut self, key: &str, default: &str) -> Vec<(String, String)> {
        let text = self.text(key).unwrap_or_else(|| default.to_owned());
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let pairs: Option<Vec<_>> = parts
            .map(|part| {
                let (left, right) = part.split_once('=')?;
                let (left, right) = (left.trim(), right.trim());
                (!left.is_empty() && !right.is_empty()).then(|| (left.to_owned(), right.to_owned()))
            })
            .collect();
        pairs.unwrap_or_else(|| {
            self.problem(key, format!("`{text}`: must be pairs such as {default}"));
            Vec::new()
        })
    }
}
