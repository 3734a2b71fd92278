//! The short list, `GET /jobs/state/`: numbers and states of all jobs, without their nodes. Only jobs that may be on a node
//! are kept, so 50,000 queued jobs need no memory.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;

use super::job::may_run;
use super::wire::{ErrorEntry, errors, words};

/// The body of a response with states. A missing list is not the same as an empty one.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Body {
    pub(super) jobs: Option<States>,
    #[serde(default, deserialize_with = "errors")]
    pub(super) errors: Vec<ErrorEntry>,
}

/// The states of all jobs.
#[derive(Debug, Default)]
pub(super) struct States {
    /// The number of listed jobs.
    pub(super) listed: usize,
    /// Whether a job that may be on a node has no number.
    pub(super) has_nameless: bool,
    /// The jobs that may be on a node, by number.
    pub(super) there: BTreeMap<u64, Vec<String>>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default, rename = "job_id", deserialize_with = "leading_number")]
    id: Option<u64>,
    #[serde(default, deserialize_with = "words")]
    state: Vec<String>,
}

impl<'de> Deserialize<'de> for States {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(List)
    }
}

struct List;

impl<'de> Visitor<'de> for List {
    type Value = States;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<States, A::Error> {
        let mut states = States::default();
        while let Some(entry) = list.next_element::<Entry>()? {
            states.listed = states.listed.saturating_add(1);
            if !may_run(&entry.state) {
                continue;
            }
            match entry.id {
                Some(id) => states.there.entry(id).or_default().extend(entry.state),
                None => states.has_nameless = true,
            }
        }
        Ok(states)
    }
}

/// `8`, `8_3` for a task of an array, `8+1` for a part of a heterogeneous job: in Slurm 24.11 the
/// job's own number comes first.
fn leading_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text.get(..end).and_then(|digits| digits.parse().ok())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::Body;

    fn read(jobs: &str) -> Result<Body, serde_json::Error> {
        serde_json::from_str(&format!(r#"{{"jobs": {jobs}, "errors": []}}"#))
    }

    #[test]
    fn all_jobs_are_counted_and_those_that_may_be_on_a_node_are_kept() {
        let body = read(
            r#"[{"job_id":"1","state":["RUNNING"]},{"job_id":"5_0","state":["SUSPENDED"]},
                {"job_id":"4+1","state":["PENDING","COMPLETING"]},{"job_id":"2_4","state":["PENDING"]},
                {"job_id":"2_[5-99]","state":["PENDING"]},{"job_id":7,"state":"SOMETHING_NEW"},
                {"job_id":"9","state":["COMPLETED"]},{"job_id":"10"}]"#,
        );
        let states = body.unwrap().jobs.unwrap();
        assert_eq!(states.listed, 8);
        let there: Vec<u64> = states.there.into_keys().collect();
        assert_eq!(there, [1, 4, 5, 7, 10]);
    }

    #[test]
    fn a_running_job_without_a_number_is_reported() {
        let has_nameless = |jobs: &str| read(jobs).unwrap().jobs.unwrap().has_nameless;
        assert!(has_nameless(
            r#"[{"job_id":"x","state":["RUNNING"]},{"job_id":"1","state":["RUNNING"]}]"#
        ));
        assert!(!has_nameless(r#"[{"job_id":"x","state":["PENDING"]}]"#));
        assert!(read("{}").is_err());
        assert!(read("null").unwrap().jobs.is_none());
    }
}
