//! The SLM service on one socket: passes each call on and returns its answer. It must not interpret either.

use std::task::{Context, Poll};

use http::Uri;
use http::uri::PathAndQuery;
use scupper_contract::slm::slm_plugin_server::{SlmPlugin, SlmPluginServer};
use scupper_contract::slm::{
    EndLifecycleTransitionRequest, LifecycleTransitionResponse, StartLifecycleTransitionRequest,
};
use scupper_contract::{SERVICE, SERVICE_ALIAS};
use tokio::sync::{mpsc, oneshot};
use tonic::server::NamedService;
use tonic::{Request, Response, Status};
use tower::Service;

use super::call::{Call, Method, Reply};

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) call: Call,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// The service on one socket.
#[derive(Clone, Debug)]
pub(super) struct Plugin {
    pub(super) calls: mpsc::Sender<PendingCall>,
}

impl Plugin {
    async fn ask(&self, call: Call) -> Result<Response<LifecycleTransitionResponse>, Status> {
        let stopped = || Status::unavailable("the driver has stopped");
        let node_name = call.node.clone();
        let (reply, answer) = oneshot::channel();
        self.calls
            .send(PendingCall { call, reply })
            .await
            .map_err(|_| stopped())?;
        let reply = answer.await.map_err(|_| stopped())?;
        let (lifecycle_condition, error) = match reply {
            Reply::ConditionReason(reason) => (reason, String::new()),
            Reply::Empty => (String::new(), String::new()),
            Reply::Error(error) => (String::new(), error),
        };
        Ok(Response::new(LifecycleTransitionResponse {
            lifecycle_condition,
            node_name,
            error,
        }))
    }
}

#[tonic::async_trait]
impl SlmPlugin for Plugin {
    async fn start_lifecycle_transition(
        &self,
        request: Request<StartLifecycleTransitionRequest>,
    ) -> Result<Response<LifecycleTransitionResponse>, Status> {
        let StartLifecycleTransitionRequest {
            transition_name,
            event_name,
            node_name,
            start,
            end,
        } = request.into_inner();
        self.ask(Call {
            method: Method::Start,
            transition: transition_name,
            event: event_name,
            node: node_name,
            start,
            end,
        })
        .await
    }

    async fn end_lifecycle_transition(
        &self,
        request: Request<EndLifecycleTransitionRequest>,
    ) -> Result<Response<LifecycleTransitionResponse>, Status> {
        let EndLifecycleTransitionRequest {
            transition_name,
            event_name,
            node_name,
            start,
            end,
            sla_expired,
        } = request.into_inner();
        self.ask(Call {
            method: Method::End { expired: sla_expired },
            transition: transition_name,
            event: event_name,
            node: node_name,
            start,
            end,
        })
        .await
    }
}

/// The same service under its short path.
#[derive(Clone, Debug)]
pub(super) struct Alias(pub(super) SlmPluginServer<Plugin>);

impl NamedService for Alias {
    const NAME: &'static str = SERVICE_ALIAS;
}

impl<B> Service<http::Request<B>> for Alias
where
    SlmPluginServer<Plugin>: Service<http::Request<B>>,
{
    type Response = <SlmPluginServer<Plugin> as Service<http::Request<B>>>::Response;
    type Error = <SlmPluginServer<Plugin> as Service<http::Request<B>>>::Error;
    type Future = <SlmPluginServer<Plugin> as Service<http::Request<B>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        if let Some(uri) = full_path(request.uri()) {
            *request.uri_mut() = uri;
        }
        self.0.call(request)
    }
}

/// The path under which the generated server knows the method.
fn full_path(uri: &Uri) -> Option<Uri> {
    let method = uri.path().strip_prefix('/')?.strip_prefix(SERVICE_ALIAS)?;
    let path = PathAndQuery::try_from(format!("/{SERVICE}{method}")).ok()?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).ok()
}
