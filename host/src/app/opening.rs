//! How the driver begins a drain, or goes on with one.

use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{Checkpoint, Node, Request};
use tokio::time::sleep;

use super::AppError;
use super::drive::{Drive, Tools};
use super::lease::Begin;
use super::own_node::OwnNode;
use super::reporter::{Output, Reporter};
use crate::policy::Catalogue;
use crate::report::{Format, Metrics};

/// A node that could not be looked at is looked at again after so long.
const RETRY: Duration = Duration::from_secs(2);

/// What a drain is begun with.
pub(super) struct Opening {
    pub(super) tools: Tools,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) request: Request,
    /// Where it was left.
    pub(super) resume: Option<Checkpoint>,
    pub(super) format: Format,
    pub(super) output: Output,
    pub(super) metrics: Metrics,
    /// Somebody follows it: it was handed over.
    pub(super) followed: bool,
}

impl Begin for Opening {
    async fn begin(&mut self, again: bool) -> Result<Drive, AppError> {
        if again {
            self.resume = self.left().await;
        } else if self.resume.is_none() {
            // A predecessor may have begun with it after we had looked at the node.
            let newest = self.tools.own_node.as_ref().and_then(OwnNode::newest);
            self.resume = newest.and_then(|node| self.of_this(node));
        }
        let resume = self.resume.clone();
        // May have to wait until editions of a former process are loaded.
        let session = match &resume {
            Some(checkpoint) => self.catalogue.resume(&checkpoint.hooks).await,
            None => self.catalogue.session(),
        };
        let mut request = self.request.clone();
        request.policies = session.infos();
        let now = self.tools.clock.now();
        let started = resume.as_ref().map_or(now, |checkpoint| checkpoint.started);
        let reporter = Reporter::lines(self.format, &self.output, now, started, &request)
            .and_cluster(self.tools.cluster.clone(), &request)
            .and_metrics(&self.metrics, &request)
            .and_traces(
                self.tools.traces.as_ref(),
                self.tools.clock,
                &request,
                resume.as_ref(),
            )
            .and_follower(self.followed);
        let session = Arc::new(session);
        Ok(Drive::new(self.tools.clone(), session, request, resume, reporter))
    }

    fn has_begun(&self) -> bool {
        self.resume.is_some()
    }

    fn stands_by(&self, holder: &str) {
        let (node, drain) = (&self.request.node, &self.request.name);
        tracing::warn!(node, drain, "standing by: {holder} is at work at this node");
    }
}

impl Opening {
    /// What stands on the node of this very drain.
    async fn left(&self) -> Option<Checkpoint> {
        loop {
            match self.tools.cluster.node(&self.request.node).await {
                Ok(node) => return node.and_then(|node| self.of_this(node)),
                Err(error) => tracing::warn!(%error, "the node could not be looked at; trying again"),
            }
            sleep(RETRY).await;
        }
    }

    fn of_this(&self, node: Node) -> Option<Checkpoint> {
        node.checkpoint.filter(|mark| mark.id == self.request.id)
    }
}
