//! A scripted driver: a registration socket, a service socket, and answers from a script.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use scupper_contract::registration::registration_server::{Registration, RegistrationServer};
use scupper_contract::registration::{
    InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse,
};
use scupper_contract::slm::slm_plugin_server::{SlmPlugin, SlmPluginServer};
use scupper_contract::slm::{
    EndLifecycleTransitionRequest, LifecycleTransitionResponse, StartLifecycleTransitionRequest,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// The driver's answer to a call.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// The wanted reason, for the node of the request.
    Condition(&'static str),
    /// The wanted reason, for this node.
    ConditionOf(&'static str, &'static str),
    /// The error field.
    Error(&'static str),
    /// The error field beside a condition.
    ErrorBeside(&'static str, &'static str),
    /// A gRPC error.
    Refuse,
    /// Nothing for this long, then an empty answer.
    Late(Duration),
}

/// A received call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedCall {
    pub(crate) call: &'static str,
    pub(crate) transition: String,
    pub(crate) event: String,
    pub(crate) node: String,
    pub(crate) start: String,
    pub(crate) end: String,
    pub(crate) sla_expired: bool,
}

/// The information that a plugin reports.
#[derive(Clone, Debug)]
pub(crate) struct Plugin {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) endpoint: String,
    pub(crate) versions: Vec<String>,
    pub(crate) info_delay: Duration,
    pub(crate) notify_delay: Duration,
    pub(crate) notify_fails: bool,
}

impl Plugin {
    pub(crate) fn new(name: &str, endpoint: &Path) -> Self {
        Self {
            kind: "SLMPlugin".into(),
            name: name.into(),
            endpoint: endpoint.to_str().unwrap().into(),
            versions: vec!["v1alpha1.SLMPlugin".into()],
            info_delay: Duration::ZERO,
            notify_delay: Duration::ZERO,
            notify_fails: false,
        }
    }
}

/// The connections of a server, so that they can end with it.
#[derive(Clone, Default)]
struct Connections(Arc<Mutex<Vec<StdStream>>>);

impl Connections {
    fn incoming(&self, listener: UnixListener) -> impl Stream<Item = io::Result<UnixStream>> + use<> {
        let kept = self.clone();
        UnixListenerStream::new(listener).map(move |accepted| {
            let stream = accepted?.into_std()?;
            kept.0.lock().unwrap().push(stream.try_clone()?);
            UnixStream::from_std(stream)
        })
    }

    fn end(&self) {
        for stream in self.0.lock().unwrap().drain(..) {
            // The other side may already have ended it.
            stream.shutdown(Shutdown::Both).ok();
        }
    }
}

/// The notifications to a plugin.
#[derive(Debug)]
pub(crate) struct Ears {
    pub(crate) asked: Mutex<usize>,
    pub(crate) notified: watch::Sender<Vec<(bool, String)>>,
}

/// A registration socket that is served until it is dropped. The file stays, as after a crash, unless removed.
pub(crate) struct Registered {
    pub(crate) path: PathBuf,
    pub(crate) ears: Arc<Ears>,
    connections: Connections,
    task: JoinHandle<()>,
}

impl Registered {
    /// Serves `plugin` on `path`: bound under a hidden name and renamed into place.
    pub(crate) fn serve(path: &Path, plugin: Plugin) -> Self {
        let hidden = path.with_file_name(format!(".{}", path.file_name().unwrap().to_str().unwrap()));
        let listener = UnixListener::bind(&hidden).unwrap();
        fs::rename(&hidden, path).unwrap();
        let ears = Arc::new(Ears {
            asked: Mutex::new(0),
            notified: watch::Sender::new(Vec::new()),
        });
        let service = RegistrationServer::new(Front {
            plugin,
            ears: Arc::clone(&ears),
        });
        let connections = Connections::default();
        let incoming = connections.incoming(listener);
        let serve = Server::builder()
            .add_service(service)
            .serve_with_incoming(incoming);
        let task = tokio::spawn(async move { serve.await.unwrap() });
        Self {
            path: path.into(),
            ears,
            connections,
            task,
        }
    }

    pub(crate) fn remove(&self) {
        fs::remove_file(&self.path).unwrap();
    }

    pub(crate) fn notified(&self) -> Vec<(bool, String)> {
        self.ears.notified.borrow().clone()
    }

    pub(crate) async fn wait_notified(&self, times: usize) -> Vec<(bool, String)> {
        let mut notified = self.ears.notified.subscribe();
        let wait = notified.wait_for(|notified| notified.len() >= times);
        tokio::time::timeout(Duration::from_secs(60), wait)
            .await
            .expect("notified in time")
            .unwrap()
            .clone()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.task.abort();
        self.connections.end();
    }
}

struct Front {
    plugin: Plugin,
    ears: Arc<Ears>,
}

#[tonic::async_trait]
impl Registration for Front {
    async fn get_info(&self, _: Request<InfoRequest>) -> Result<Response<PluginInfo>, Status> {
        *self.ears.asked.lock().unwrap() += 1;
        sleep(self.plugin.info_delay).await;
        Ok(Response::new(PluginInfo {
            r#type: self.plugin.kind.clone(),
            name: self.plugin.name.clone(),
            endpoint: self.plugin.endpoint.clone(),
            supported_versions: self.plugin.versions.clone(),
        }))
    }

    async fn notify_registration_status(
        &self,
        status: Request<RegistrationStatus>,
    ) -> Result<Response<RegistrationStatusResponse>, Status> {
        let status = status.into_inner();
        self.ears
            .notified
            .send_modify(|all| all.push((status.plugin_registered, status.error)));
        sleep(self.plugin.notify_delay).await;
        if self.plugin.notify_fails {
            return Err(Status::internal("the driver does not like it"));
        }
        Ok(Response::new(RegistrationStatusResponse {}))
    }
}

/// The service socket of a scripted driver, served until it is dropped.
pub(crate) struct Service {
    pub(crate) path: PathBuf,
    script: Arc<Script>,
    connections: Connections,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Script {
    replies: Mutex<VecDeque<Reply>>,
    heard: Mutex<Vec<ReceivedCall>>,
    finished: Mutex<usize>,
}

impl Service {
    /// Serves on `path`. Each call takes the next reply; after the last one all answers are empty.
    pub(crate) fn serve(path: &Path, replies: impl IntoIterator<Item = Reply>) -> Self {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let listener = UnixListener::bind(path).unwrap();
        let script = Arc::new(Script {
            replies: Mutex::new(replies.into_iter().collect()),
            ..Script::default()
        });
        let service = SlmPluginServer::from_arc(Arc::new(Back(Arc::clone(&script))));
        let connections = Connections::default();
        let incoming = connections.incoming(listener);
        let serve = Server::builder()
            .add_service(service)
            .serve_with_incoming(incoming);
        let task = tokio::spawn(async move { serve.await.unwrap() });
        Self {
            path: path.into(),
            script,
            connections,
            task,
        }
    }

    pub(crate) fn calls(&self) -> Vec<ReceivedCall> {
        self.script.heard.lock().unwrap().clone()
    }

    pub(crate) fn reply_next(&self, reply: Reply) {
        self.script.replies.lock().unwrap().push_back(reply);
    }

    /// Calls that were answered, rather than cut.
    pub(crate) fn finished(&self) -> usize {
        *self.script.finished.lock().unwrap()
    }

    /// As in a crash: the listener and its connections end, the file stays.
    pub(crate) async fn crash(mut self) {
        self.task.abort();
        (&mut self.task).await.expect_err("aborted");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
        self.connections.end();
    }
}

struct Back(Arc<Script>);

impl Back {
    async fn answer(&self, heard: ReceivedCall) -> Result<Response<LifecycleTransitionResponse>, Status> {
        let node = heard.node.clone();
        self.0.heard.lock().unwrap().push(heard);
        let reply = self.0.replies.lock().unwrap().pop_front();
        let answer = |condition: &str, node: &str, error: &str| LifecycleTransitionResponse {
            lifecycle_condition: condition.into(),
            node_name: node.into(),
            error: error.into(),
        };
        let answer = match reply {
            None => answer("", &node, ""),
            Some(Reply::Condition(condition)) => answer(condition, &node, ""),
            Some(Reply::ConditionOf(condition, node)) => answer(condition, node, ""),
            Some(Reply::Error(error)) => answer("", &node, error),
            Some(Reply::ErrorBeside(error, condition)) => answer(condition, &node, error),
            Some(Reply::Refuse) => return Err(Status::unavailable("not now")),
            Some(Reply::Late(delay)) => {
                sleep(delay).await;
                answer("", &node, "")
            }
        };
        *self.0.finished.lock().unwrap() += 1;
        Ok(Response::new(answer))
    }
}

#[tonic::async_trait]
impl SlmPlugin for Back {
    async fn start_lifecycle_transition(
        &self,
        request: Request<StartLifecycleTransitionRequest>,
    ) -> Result<Response<LifecycleTransitionResponse>, Status> {
        let request = request.into_inner();
        self.answer(ReceivedCall {
            call: "start",
            transition: request.transition_name,
            event: request.event_name,
            node: request.node_name,
            start: request.start,
            end: request.end,
            sla_expired: false,
        })
        .await
    }

    async fn end_lifecycle_transition(
        &self,
        request: Request<EndLifecycleTransitionRequest>,
    ) -> Result<Response<LifecycleTransitionResponse>, Status> {
        let request = request.into_inner();
        self.answer(ReceivedCall {
            call: "end",
            transition: request.transition_name,
            event: request.event_name,
            node: request.node_name,
            start: request.start,
            end: request.end,
            sla_expired: request.sla_expired,
        })
        .await
    }
}
