//! From a secret's name to its value, at the moment of use.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use scupper_policy_spec::{SecretRule, SecretRules, SecretSource, ValueSource};
use thiserror::Error;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::SecretString;
use super::captured::{Answer, Secrets};
use crate::{AccessError, ClusterAccess};

/// Bytes of a secret; a JSON web token has one to four thousand.
const MOST_BYTES: usize = 64 * 1024;

/// How long the cluster may take for a secret that the request does not need.
const READ_LIMIT: Duration = Duration::from_secs(2);

/// A shorter secret would appear in every response by chance, and removing it would garble them all.
const LEAST_BYTES: usize = 4;

/// Why a secret has no value now.
#[derive(Debug, Error)]
pub(crate) enum ReadError {
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    #[error("{0}")]
    Cluster(String),
    #[error("it was not captured yet")]
    NotCaptured,
    #[error("it is not UTF-8")]
    NotText,
    #[error("it has {0} bytes; a secret must have {LEAST_BYTES} to {MOST_BYTES}")]
    Size(usize),
}

/// Reads the secrets of one policy for one node.
pub(crate) struct Reader<'a> {
    pub(crate) policy: &'a str,
    pub(crate) node: &'a str,
    pub(crate) rules: &'a SecretRules,
    pub(crate) memory: &'a Secrets,
    pub(crate) cluster: &'a dyn ClusterAccess,
}

impl Reader<'_> {
    /// The value of one secret.
    pub(crate) async fn value(&self, rule: &SecretRule) -> Result<SecretString, ReadError> {
        let bytes = match &rule.source {
            ValueSource::Captured(capture) => {
                let of = (self.policy, self.node);
                let captured = self.memory.captured(of, &rule.name, capture);
                return captured.ok_or(ReadError::NotCaptured);
            }
            ValueSource::Stored(SecretSource::Kubernetes { namespace, name, key }) => {
                let key = [namespace.clone(), name.clone(), key.clone()];
                self.kubernetes(key).await.map_err(ReadError::Cluster)?
            }
            ValueSource::Stored(SecretSource::File(path)) => file(path.clone()).await?,
            // Read as `ValueSource::Captured`.
            ValueSource::Stored(SecretSource::Captured { .. }) => return Err(ReadError::NotCaptured),
        };
        let value = SecretString::new(&rule.name, text(&bytes)?);
        self.memory.remember(self.policy, &value);
        Ok(value)
    }

    /// Reads every secret once before a request goes out, so that checking the response needs no further reads. Values
    /// used earlier are remembered. A secret that we never read cannot have been sent by us, but a response may contain
    /// it all the same.
    pub(crate) async fn read_all(&self) {
        for rule in self.rules.iter() {
            let from_cluster = matches!(rule.source, ValueSource::Stored(SecretSource::Kubernetes { .. }));
            if from_cluster && !self.memory.lately(self.policy, &rule.name).is_empty() {
                continue;
            }
            // An unreadable secret fails where it is used.
            let _seen = timeout(READ_LIMIT, self.value(rule)).await.is_ok();
        }
    }

    /// Every value that a response could contain.
    pub(crate) fn known(&self) -> Vec<SecretString> {
        self.rules
            .iter()
            .flat_map(|rule| self.memory.lately(self.policy, &rule.name))
            .collect()
    }

    async fn kubernetes(&self, key: [String; 3]) -> Answer {
        if let Some(answer) = self.memory.fresh(&key) {
            return answer;
        }
        let [namespace, name, field] = &key;
        let answer = self.cluster.secret(namespace, name, field).await;
        let answer = answer.map_err(|error: AccessError| error.to_string());
        self.memory.keep(key, answer.clone());
        answer
    }
}

async fn file(path: PathBuf) -> Result<Vec<u8>, ReadError> {
    let failed = |source| ReadError::File {
        path: path.clone(),
        source,
    };
    let task = {
        let path = path.clone();
        spawn_blocking(move || read(&path))
    };
    let read = task.await.map_err(|error| failed(io::Error::other(error)))?;
    read.map_err(failed)?.ok_or(ReadError::NotAFile(path))
}

/// `None`: it is a directory, a pipe or a device.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // A named pipe would block the open itself.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    // One byte more than allowed, and a line break.
    let most = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX).saturating_add(3);
    file.take(most).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// The value without the final line break that editors and `echo` add.
fn text(bytes: &[u8]) -> Result<&str, ReadError> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if !(LEAST_BYTES..=MOST_BYTES).contains(&bytes.len()) {
        return Err(ReadError::Size(bytes.len()));
    }
    std::str::from_utf8(bytes).map_err(|_| ReadError::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_trailing_line_break_is_not_part_of_a_secret() {
        for (bytes, value) in [
            (&b"hunter2\n"[..], "hunter2"),
            (b"hunter2\r\n", "hunter2"),
            (b"hunter2", "hunter2"),
            (b"hunter2\n\n", "hunter2\n"),
            (b" hunter2 ", " hunter2 "),
        ] {
            assert_eq!(text(bytes).unwrap(), value);
        }
    }

    #[test]
    fn not_everything_is_a_secret() {
        for bytes in [&b""[..], b"\n", b"abc", b"abc\n"] {
            assert!(matches!(text(bytes), Err(ReadError::Size(_))));
        }
        assert!(matches!(text(&[b'x'; MOST_BYTES + 1]), Err(ReadError::Size(_))));
        assert!(matches!(text(b"abc\xff\xfe"), Err(ReadError::NotText)));
    }

    #[test]
    fn a_directory_or_a_device_is_not_accepted_as_a_secret() {
        assert!(read(Path::new("/")).unwrap().is_none());
        assert!(read(Path::new("/dev/zero")).unwrap().is_none());
        assert!(read(Path::new("/nowhere")).is_err());
    }
}
