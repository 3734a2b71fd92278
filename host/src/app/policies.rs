//! From the operator's words to loaded policies.

use std::fs::Permissions;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use super::access::Access;
use super::{AppError, PoliciesOptions};
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::policy::{Policies, Runtime, RuntimeOptions};

/// The loaded policies, with what they need to live.
pub(crate) struct Loaded {
    pub(crate) policies: Arc<Policies>,
    /// Where their compiled code is, when nobody named a place for it.
    _cache: Option<TempDir>,
}

pub(crate) async fn load(
    options: &PoliciesOptions,
    compiler: Option<PathBuf>,
    clock: Clock,
    cluster: &Cluster,
) -> Result<Loaded, AppError> {
    let (cache, kept) = cache_dir(options)?;
    let compiler = match compiler {
        Some(compiler) => compiler,
        None => std::env::current_exe().map_err(|source| AppError::Cache {
            path: cache.clone(),
            source,
        })?,
    };
    let runtime = Runtime::new(RuntimeOptions {
        cache,
        compiler,
        clock,
    })
    .map_err(AppError::Runtime)?;
    let access = Arc::new(Access::new(cluster.clone()));
    let policies = Policies::load(&runtime, &options.policies, access)
        .await
        .map_err(AppError::Policies)?;
    Ok(Loaded {
        policies: Arc::new(policies),
        _cache: kept,
    })
}

fn cache_dir(options: &PoliciesOptions) -> Result<(PathBuf, Option<TempDir>), AppError> {
    match &options.cache {
        Some(path) => {
            let failed = |source| AppError::Cache {
                path: path.clone(),
                source,
            };
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(failed)?;
            Ok((path.clone(), None))
        }
        None => {
            let failed = |source| AppError::Cache {
                path: std::env::temp_dir(),
                source,
            };
            let dir = tempfile::Builder::new()
                .prefix("scupper-policies-")
                .permissions(Permissions::from_mode(0o700))
                .tempdir()
                .map_err(failed)?;
            Ok((dir.path().to_owned(), Some(dir)))
        }
    }
}
