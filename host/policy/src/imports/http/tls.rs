//! Which certificates an https origin is verified against: the system's, and those that the operator named.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore, crypto};
use thiserror::Error;

/// A bundle of all public authorities has a quarter of this.
const CA_BYTES: u64 = 1024 * 1024;

/// Why certificates are unusable.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is too long.
    #[error("{} has more than {} KiB", .0.display(), CA_BYTES >> 10)]
    Long(PathBuf),
    /// The file has no PEM certificates.
    #[error("{} is not a list of PEM certificates", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: pem::Error,
    },
    /// The file has no usable certificate.
    #[error("{} contains no usable certificate", .0.display())]
    Empty(PathBuf),
    /// TLS cannot be set up on this machine.
    #[error("cannot set up TLS")]
    Setup(#[source] rustls::Error),
}

/// The configurations of one policy's origins, kept until their file changes.
#[derive(Default)]
pub(crate) struct Tls {
    made: Mutex<HashMap<Option<PathBuf>, Made>>,
}

struct Made {
    pem: Vec<u8>,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// The TLS configuration for an origin. It reads the file each time, so that certificates can be replaced while the
    /// driver runs; the file is small and on the node's own disk.
    pub(crate) fn config(&self, ca: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
        let pem = ca.map(read).transpose()?.unwrap_or_default();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let known = made.get(&ca.map(Path::to_owned)).filter(|made| made.pem == pem);
        if let Some(known) = known {
            return Ok(Arc::clone(&known.config));
        }
        let config = Arc::new(make(ca, &pem)?);
        let kept = Made {
            pem,
            config: Arc::clone(&config),
        };
        made.insert(ca.map(Path::to_owned), kept);
        Ok(config)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |source| TlsError::Read {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(CA_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|bytes| bytes <= CA_BYTES) {
        Ok(bytes)
    } else {
        Err(TlsError::Long(path.to_owned()))
    }
}

fn make(ca: Option<&Path>, pem: &[u8]) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca {
        let listed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let listed = listed.map_err(|source| TlsError::Pem {
            path: path.to_owned(),
            source,
        })?;
        let (added, _) = roots.add_parsable_certificates(listed);
        if added == 0 {
            return Err(TlsError::Empty(path.to_owned()));
        }
    }
    roots.add_parsable_certificates(system_roots().iter().cloned());
    let mut config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The system's certificates, read once. A machine without any trusts only the certificates that the operator names.
fn system_roots() -> &'static [CertificateDer<'static>] {
    static ROOTS: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();
    ROOTS.get_or_init(|| rustls_native_certs::load_native_certs().certs)
}
