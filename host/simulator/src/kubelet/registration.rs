//! One attempt to register the plugin behind a socket: dial, `GetInfo`, validate, register, notify.
//!
//! A plugin is notified of every failure, unless it cannot be reached or does not answer `GetInfo`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use scupper_contract::PLUGIN_TYPE;
use scupper_contract::registration::registration_client::RegistrationClient;
use scupper_contract::registration::{InfoRequest, PluginInfo, RegistrationStatus};
use tokio::time::timeout;
use tonic::{Response, Status};

use super::channel::Channel;
use super::options::Options;
use super::plugins::Plugins;
use super::record::Attempt;

/// A registered plugin.
#[derive(Clone, Debug)]
pub(super) struct Plugin {
    pub driver: String,
    pub endpoint: PathBuf,
}

/// The result of one attempt.
pub(super) struct Tried {
    /// For the record.
    pub attempt: Attempt,
    /// The plugin, if it was registered.
    pub plugin: Option<Plugin>,
    /// It was registered, but the notification failed: the registration must be undone.
    pub undo: bool,
}

/// Tries to register the plugin behind `socket`.
pub(super) async fn attempt(socket: &Path, plugins: &Plugins, options: &Options) -> Tried {
    let mut tried = Tried {
        attempt: Attempt {
            socket: socket.to_owned(),
            driver: None,
            notified: None,
            error: None,
        },
        plugin: None,
        undo: false,
    };
    if let Err(error) = run(socket, plugins, options, &mut tried).await {
        tried.attempt.error = Some(error);
    }
    tried
}

async fn run(socket: &Path, plugins: &Plugins, options: &Options, tried: &mut Tried) -> Result<(), String> {
    let timing = &options.timing;
    let channel = Channel::dial(socket, timing);
    channel
        .ready(timing.dial)
        .await
        .map_err(|error| format!("failed to dial: {error}"))?;
    let way = channel
        .call()
        .await
        .map_err(|status| status.message().to_owned())?;
    let mut client = RegistrationClient::new(way.channel.clone());
    let info = within(timing.info, client.get_info(InfoRequest {})).await;
    let info = info.map_err(|error| format!("failed to get plugin info: {error}"))?;
    tried.attempt.driver = Some(info.name.clone());

    let outcome = register(socket, &info, plugins, options);
    let (registered, error) = match outcome {
        Ok(plugin) => {
            tried.plugin = Some(plugin);
            (true, String::new())
        }
        Err(why) => (false, format!("RegisterPlugin error -- {why}")),
    };
    tried.attempt.notified = Some((registered, error.clone()));
    let status = RegistrationStatus {
        plugin_registered: registered,
        error: error.clone(),
    };
    let reported = within(timing.notify, client.notify_registration_status(status)).await;
    reported.map_err(|error| {
        tried.undo = registered;
        format!("RegisterPlugin error -- failed to send registration status: {error}")
    })?;
    if registered { Ok(()) } else { Err(error) }
}

fn register(
    socket: &Path,
    info: &PluginInfo,
    plugins: &Plugins,
    options: &Options,
) -> Result<Plugin, String> {
    if info.r#type != PLUGIN_TYPE || !options.gate {
        let (kind, path) = (&info.r#type, socket.display());
        return Err(format!(
            "no handler registered for plugin type: {kind} at socket {path}"
        ));
    }
    Plugins::validate(&info.supported_versions)
        .map_err(|error| format!("plugin validation failed with err: {error}"))?;
    let endpoint = if info.endpoint.is_empty() {
        socket.to_owned()
    } else {
        options.slash.join(info.endpoint.trim_start_matches('/'))
    };
    plugins
        .register(&info.name, &endpoint)
        .map_err(|error| format!("plugin registration failed with err: {error}"))?;
    Ok(Plugin {
        driver: info.name.clone(),
        endpoint,
    })
}

async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, String> {
    match timeout(limit, call).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(format!("{:?}: {}", status.code(), status.message())),
        Err(_) => Err(format!("no response within {limit:?}")),
    }
}
