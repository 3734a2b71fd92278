//! Finds out whether the kubelet of this machine supports SLM: registers as a driver would, and unregisters.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::endpoints::Endpoints;
use super::registration::Registration;
use super::sockets;
use super::{SlmError, SlmOptions};

/// The name to register under. No transition names it, so the kubelet never calls it.
const ASKER: &str = "doctor.scupper.dev";

/// Returns the kubelet's answer, or [`Registration::Silent`] if none arrives within `limit`.
///
/// # Errors
/// The kubelet's directories are missing or not writable.
pub async fn ask_kubelet(
    kubelet_root: &Path,
    node: &str,
    instance: String,
    limit: Duration,
) -> Result<Registration, SlmError> {
    let options = SlmOptions {
        kubelet_root: kubelet_root.to_owned(),
        ..SlmOptions::new(ASKER, node, instance)
    };
    options.check()?;
    if let Some(path) = sockets::missing_directory(&options) {
        return Err(SlmError::NoDirectory { path });
    }
    let (calls, _nobody_calls) = mpsc::channel(1);
    let (report_sender, mut reports) = mpsc::unbounded_channel();
    let endpoints = Endpoints::open(&options, calls, report_sender).await?;
    let report = timeout(limit, reports.recv()).await;
    endpoints.close().await;
    if let Err(error) = fs::remove_dir(options.driver_dir()) {
        tracing::debug!(%error, path = %options.driver_dir().display(), "left behind");
    }
    Ok(match report {
        Ok(Some(report)) => report.registration,
        Ok(None) | Err(_) => Registration::Silent,
    })
}
