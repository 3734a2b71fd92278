//! Reads the responses of slurmrestd, in all versions of its API.
//!
//! A field can be a string in one version and a list of strings in the next, or a number in one and
//! `{set, infinite, number}` in the next. A field in an unknown form counts as absent; the caller decides what that means.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::job::Job;
use super::node::SlurmNode;

/// The body of a response. A missing list is not the same as an empty one.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Body {
    pub(crate) nodes: Option<Vec<SlurmNode>>,
    pub(crate) jobs: Option<Vec<Job>>,
    #[serde(default, deserialize_with = "errors")]
    pub(crate) errors: Vec<ErrorEntry>,
    /// The results of a request about jobs.
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) status: Vec<JobStatus>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) statistics: Statistics,
    #[serde(default, rename = "slurm_conf_meta", deserialize_with = "lenient")]
    pub(crate) conf: Conf,
}

/// slurmctld's statistics.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Statistics {
    #[serde(default, rename = "req_time_start", deserialize_with = "number")]
    pub(crate) since: Option<u64>,
}

/// Facts about slurmctld's configuration.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Conf {
    #[serde(default, rename = "BOOT_TIME", deserialize_with = "number")]
    pub(crate) started: Option<u64>,
}

/// One of `errors`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct ErrorEntry {
    #[serde(default, alias = "errno", deserialize_with = "lenient")]
    pub(crate) error_number: i64,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) error: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) description: String,
}

/// One of `status`: `error` is an object after a cancel, and a text after a requeue.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct JobStatus {
    #[serde(default, deserialize_with = "job_error")]
    pub(crate) error: JobError,
    #[serde(default, rename = "error_code", deserialize_with = "lenient")]
    code: i64,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct JobError {
    #[serde(default, deserialize_with = "lenient")]
    code: i64,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) message: String,
}

impl JobStatus {
    /// 0: no error.
    pub(crate) const fn code(&self) -> i64 {
        if self.code == 0 {
            self.error.code
        } else {
            self.code
        }
    }
}

fn job_error<'de, D: Deserializer<'de>>(from: D) -> Result<JobError, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(message) => JobError { code: 0, message },
        other => serde_json::from_value(other).unwrap_or_default(),
    })
}

/// The value, or its default if the field has another form.
pub(crate) fn lenient<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned + Default,
{
    let value = Value::deserialize(from)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Errors in any form: an unreadable one also counts.
pub(super) fn errors<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ErrorEntry>, D::Error> {
    let one = |value: &Value| {
        serde_json::from_value(value.clone()).unwrap_or_else(|_not_an_object| ErrorEntry {
            error: value.to_string(),
            ..ErrorEntry::default()
        })
    };
    Ok(match Value::deserialize(from)? {
        Value::Null => Vec::new(),
        Value::Array(values) => values.iter().map(one).collect(),
        other => vec![one(&other)],
    })
}

/// A word or a list of words, in upper case.
pub(crate) fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(word) => vec![word.to_ascii_uppercase()],
        Value::Array(words) => words
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_ascii_uppercase)
            .collect(),
        _ => Vec::new(),
    })
}

/// A number, or `{set, infinite, number}`. Infinite and unset count as none.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(from)?;
    let is = |key: &str| value.get(key).and_then(Value::as_bool);
    Ok(match &value {
        Value::Number(number) => number.as_u64(),
        Value::Object(_) if is("set") != Some(false) && is("infinite") != Some(true) => {
            value.get("number").and_then(Value::as_u64)
        }
        _ => None,
    })
}
