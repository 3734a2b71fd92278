//! Reads one key of a Kubernetes Secret, for policies with that grant. Its value is never shown.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::transport::{Fault, escaped};
use super::{Cluster, ReadError};

/// The fields of a Secret that the driver needs.
#[derive(Default, Deserialize)]
struct WireSecret {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

impl Cluster {
    /// Reads the current value of a key of a Secret.
    pub async fn secret(&self, namespace: &str, name: &str, key: &str) -> Result<Vec<u8>, ReadError> {
        let what = format!("secret {namespace}/{name}");
        let path = format!(
            "/api/v1/namespaces/{}/secrets/{}",
            escaped(namespace),
            escaped(name)
        );
        let secret = self
            .get::<WireSecret>(&path)
            .await
            .map_err(|fault| fault.read(&what))?;
        let value = secret.data.get(key).ok_or_else(|| ReadError::NotFound {
            what: format!("key {key} of {what}"),
        })?;
        STANDARD
            .decode(value)
            .map_err(|_| Fault::Malformed("its value is not valid base64".to_owned()).read(&what))
    }
}

impl fmt::Debug for WireSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.data.keys()).finish()
    }
}
