//! Finds the server and the user: from kubectl's connection flags, the kubeconfig, or the pod's service account.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::ConnectError;
use super::proxy::{self, Proxy};

/// Replaces the kubeconfig's proxy, so that the library does not search the environment for one.
const NOT_IN_USE: &str = "http://not-in-use";

/// The connection flags, with the same meaning as for `kubectl`. The default follows the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// `--kubeconfig`; `None`: `KUBECONFIG`, `~/.kube/config` or the pod's own service account.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`, instead of the current one.
    pub context: Option<String>,
    /// `--cluster`, instead of the context's.
    pub cluster: Option<String>,
    /// `--user`, instead of the context's.
    pub user: Option<String>,
    /// `--as`: the user to impersonate.
    pub impersonate: Option<String>,
    /// `--as-group`: the groups to impersonate.
    pub impersonate_groups: Vec<String>,
    /// `--request-timeout`, instead of [`super::ConnectOptions::request_timeout`].
    pub request_timeout: Option<Duration>,
    /// `--insecure-skip-tls-verify`
    pub insecure: bool,
}

impl From<PathBuf> for Connection {
    fn from(kubeconfig: PathBuf) -> Self {
        Self {
            kubeconfig: Some(kubeconfig),
            ..Self::default()
        }
    }
}

/// The configuration that was found.
pub(super) struct FoundConfig {
    pub(super) config: Config,
    pub(super) proxy: Option<Proxy>,
    /// Its source, for errors.
    pub(super) origin: String,
}

/// Finds the configuration: `--kubeconfig`, else `KUBECONFIG`, else `~/.kube/config`, else the pod's service account. A
/// named file must work: falling back to another cluster would drain the wrong one.
pub(super) async fn find(connection: &Connection) -> Result<FoundConfig, ConnectError> {
    let (mut config, named, origin) = read(connection).await?;
    if let Some(user) = &connection.impersonate {
        config.auth_info.impersonate = Some(user.clone());
    }
    if !connection.impersonate_groups.is_empty() {
        config.auth_info.impersonate_groups = Some(connection.impersonate_groups.clone());
    }
    if connection.insecure {
        config.accept_invalid_certs = true;
        (config.root_cert, config.root_cert_file) = (None, None);
    }
    config.proxy_url = None;
    let proxy = proxy::choose(named.as_deref(), &config.cluster_url, |name| env::var(name).ok())?;
    Ok(FoundConfig {
        config,
        proxy,
        origin,
    })
}

/// The configuration, its proxy, and its source.
type Read = (Config, Option<String>, String);

async fn read(connection: &Connection) -> Result<Read, ConnectError> {
    if let Some(path) = &connection.kubeconfig {
        return from_file(path, connection).await;
    }
    let mut tried = Vec::new();
    match env::var("KUBECONFIG") {
        Ok(list) if !list.is_empty() => {
            let merged = Kubeconfig::from_env().and_then(|config| config.ok_or(KubeconfigError::FindPath));
            return from_kubeconfig(merged, list, connection).await;
        }
        _ => tried.push("KUBECONFIG (not set)".to_owned()),
    }
    match env::home_dir().map(|home| home.join(".kube/config")) {
        Some(path) if path.exists() => return from_file(&path, connection).await,
        Some(path) => tried.push(format!("{} (no such file)", path.display())),
        None => tried.push("~/.kube/config (no home directory)".to_owned()),
    }
    let chosen = [&connection.context, &connection.cluster, &connection.user];
    if env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
        tried.push("the pod's service account (KUBERNETES_SERVICE_HOST is not set)".to_owned());
    } else if chosen.iter().any(|choice| choice.is_some()) {
        tried.push("the pod's service account (it has no contexts, clusters or users to choose)".to_owned());
    } else {
        let config = Config::incluster_env();
        let config = config.map_err(|error| ConnectError::ServiceAccount(Box::new(error)))?;
        return Ok((config, None, "the pod's service account".to_owned()));
    }
    Err(ConnectError::NoConfig { tried })
}

async fn from_file(path: &Path, connection: &Connection) -> Result<Read, ConnectError> {
    let name = path.display().to_string();
    from_kubeconfig(Kubeconfig::read_from(path), name, connection).await
}

async fn from_kubeconfig(
    read: Result<Kubeconfig, KubeconfigError>,
    path: String,
    connection: &Connection,
) -> Result<Read, ConnectError> {
    let unusable = |error| ConnectError::Kubeconfig {
        path: path.clone(),
        source: Box::new(error),
    };
    let mut kubeconfig = read.map_err(unusable)?;
    let context = check(&kubeconfig, &path, connection)?;
    let named = take_proxy(&mut kubeconfig, connection);
    let options = KubeConfigOptions {
        context: connection.context.clone(),
        cluster: connection.cluster.clone(),
        user: connection.user.clone(),
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let context = context.unwrap_or_default();
    Ok((
        config.map_err(unusable)?,
        named,
        format!("kubeconfig {path}, context {context}"),
    ))
}

/// Checks that all names exist. Returns the name of the context.
fn check(
    kubeconfig: &Kubeconfig,
    path: &str,
    connection: &Connection,
) -> Result<Option<String>, ConnectError> {
    let contexts: Vec<String> = kubeconfig.contexts.iter().map(|it| it.name.clone()).collect();
    let is_there = |what, name: &String, known: Vec<String>| {
        if known.contains(name) {
            return Ok(());
        }
        Err(ConnectError::NotThere {
            path: path.to_owned(),
            what,
            name: name.clone(),
            known,
        })
    };
    let name = connection
        .context
        .as_ref()
        .or(kubeconfig.current_context.as_ref());
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        // The library reports what is wrong with an empty file.
        return if contexts.is_empty() {
            Ok(None)
        } else {
            Err(ConnectError::NoCurrentContext {
                path: path.to_owned(),
                known: contexts,
            })
        };
    };
    is_there("context", name, contexts)?;
    let context = kubeconfig.contexts.iter().find(|it| it.name == *name);
    let context = context.and_then(|it| it.context.as_ref());
    let cluster = connection
        .cluster
        .as_ref()
        .or_else(|| context.map(|it| &it.cluster));
    if let Some(cluster) = cluster {
        let known = kubeconfig.clusters.iter().map(|it| it.name.clone()).collect();
        is_there("cluster", cluster, known)?;
    }
    // A context may name a missing user, as for `kubectl`.
    if let Some(user) = &connection.user {
        let known = kubeconfig.auth_infos.iter().map(|it| it.name.clone()).collect();
        is_there("user", user, known)?;
    }
    Ok(Some(name.clone()))
}

/// Removes and returns the chosen cluster's proxy. Without one, the library would search the environment, and compare
/// `NO_PROXY` with the proxy instead of the server.
fn take_proxy(kubeconfig: &mut Kubeconfig, connection: &Connection) -> Option<String> {
    let context = connection
        .context
        .as_ref()
        .or(kubeconfig.current_context.as_ref())?;
    let context = kubeconfig.contexts.iter().find(|it| it.name == *context)?;
    let context = context.context.as_ref()?;
    let cluster = connection.cluster.as_ref().unwrap_or(&context.cluster).clone();
    let known = kubeconfig.clusters.iter_mut().find(|it| it.name == cluster)?;
    known.cluster.as_mut()?.proxy_url.replace(NOT_IN_USE.to_owned())
}
