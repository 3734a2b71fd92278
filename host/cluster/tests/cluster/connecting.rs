//! From a kubeconfig to a connection, over real sockets: each error names its cause, and no request is repeated.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use scupper_cluster::{Cluster, ConnectError, ConnectOptions};
use scupper_engine::{Answer, EvictAnswer, PodRef, Task, Uid};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A server that answers `/version`, and every other request with one status.
struct Server {
    folder: TempDir,
    address: String,
    requests: Arc<AtomicUsize>,
    agents: Arc<std::sync::Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(version: u16, others: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(AtomicUsize::new(0));
        let agents = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (counter, log) = (Arc::clone(&requests), Arc::clone(&agents));
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = String::new();
                while !head.contains("\r\n\r\n") {
                    let mut bytes = [0; 4096];
                    match stream.read(&mut bytes).await.unwrap() {
                        0 => break,
                        count => head.push_str(&String::from_utf8_lossy(&bytes[..count])),
                    }
                }
                let agent = head.lines().find_map(|line| line.strip_prefix("user-agent: "));
                log.lock().unwrap().push(agent.unwrap_or("none").to_owned());
                let code = if head.starts_with("GET /version ") {
                    version
                } else {
                    others
                };
                if !head.starts_with("GET /version ") {
                    counter.fetch_add(1, Ordering::SeqCst);
                }
                let body =
                    r#"{"kind":"Status","status":"Failure","reason":"X","message":"words","major":"1"}"#;
                let answer = format!(
                    "HTTP/1.1 {code} X\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self {
            folder: TempDir::new().unwrap(),
            address,
            requests,
            agents,
            task,
        }
    }

    fn options(&self) -> ConnectOptions {
        options(&self.folder, &kubeconfig(&self.address, ""))
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn kubeconfig(address: &str, more: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: k, user: u}}}}], \
         clusters: [{{name: k, cluster: {{server: 'http://{address}'{more}}}}}], users: [{{name: u, user: {{token: t}}}}]}}"
    )
}

fn options(folder: &TempDir, text: &str) -> ConnectOptions {
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, text).unwrap();
    ConnectOptions {
        connection: path.into(),
        ..ConnectOptions::default()
    }
}

async fn fault(options: &ConnectOptions) -> ConnectError {
    Cluster::connect(options).await.expect_err("this cannot work")
}

#[tokio::test]
async fn refused_requests_are_not_repeated_by_the_client() {
    for code in [429, 500, 503, 504] {
        let server = Server::start(200, code).await;
        let cluster = Cluster::connect(&server.options()).await.unwrap();
        let pod = PodRef {
            namespace: "ns".into(),
            name: "p".into(),
            uid: Uid::new("u"),
        };
        let answer = cluster
            .perform(
                "n1",
                &Task::Evict {
                    pod,
                    grace_seconds: None,
                },
            )
            .await;
        assert!(
            !matches!(
                answer,
                Answer::Evict(EvictAnswer::Accepted | EvictAnswer::Unreachable { .. })
            ),
            "{answer:?}"
        );
        assert_eq!(server.requests(), 1, "evictions answered {code}");
        assert!(matches!(
            cluster.perform("n1", &Task::Forget { node: Uid::new("u") }).await,
            Answer::Unavailable { .. }
        ));
        assert_eq!(server.requests(), 2, "writes of the node answered {code}");
        assert!(cluster.node("n1").await.is_err());
        assert_eq!(server.requests(), 3, "reads answered {code}");
        let agents = server.agents.lock().unwrap().clone();
        assert_eq!(agents, vec![concat!("scupper/", env!("CARGO_PKG_VERSION")); 4]);
    }
}

#[tokio::test]
async fn a_missing_or_broken_kubeconfig() {
    let path = PathBuf::from("/nowhere/kubeconfig");
    let error = fault(&ConnectOptions {
        connection: path.into(),
        ..ConnectOptions::default()
    })
    .await;
    assert!(
        matches!(&error, ConnectError::Kubeconfig { path, .. } if path == "/nowhere/kubeconfig"),
        "{error}"
    );
    let folder = TempDir::new().unwrap();
    for text in [
        "{",
        "{apiVersion: v1, kind: Config}",
        &kubeconfig("not a host", ""),
    ] {
        let error = fault(&options(&folder, text)).await;
        assert!(
            matches!(error, ConnectError::Kubeconfig { .. }),
            "{text}: {error}"
        );
    }
}

#[tokio::test]
async fn a_missing_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let folder = TempDir::new().unwrap();
    let error = fault(&options(&folder, &kubeconfig(&address, ""))).await;
    assert!(matches!(error, ConnectError::Unreachable { .. }));
    let text = error.to_string();
    assert!(
        text.contains(&format!("http://{address}")) && text.contains("refused"),
        "{text}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_know_us_or_is_none() {
    let server = Server::start(401, 401).await;
    assert!(matches!(
        fault(&server.options()).await,
        ConnectError::Unauthorized { .. }
    ));
    let server = Server::start(404, 404).await;
    assert!(matches!(
        fault(&server.options()).await,
        ConnectError::Unexpected { .. }
    ));
    let server = Server::start(403, 200).await;
    assert!(
        Cluster::connect(&server.options()).await.is_ok(),
        "who may not ask for the version is known all the same"
    );
}

/// A proxy that answers one connection's `CONNECT` or SOCKS greeting with `answers`, one for each message, and records
/// the messages.
async fn proxy(answers: &'static [&'static [u8]]) -> (String, tokio::task::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        for answer in answers {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).await.unwrap();
            heard.extend_from_slice(&bytes[..count]);
            stream.write_all(answer).await.unwrap();
        }
        heard
    });
    (address, heard)
}

const VERSION: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 13\r\n\r\n{\"major\":\"1\"}";

#[tokio::test]
async fn a_proxy_that_the_kubeconfig_names_is_used() {
    let folder = TempDir::new().unwrap();
    let (address, heard) = proxy(&[b"HTTP/1.1 200 Connection established\r\n\r\n", VERSION]).await;
    let more = format!(", proxy-url: 'http://user:word@{address}'");
    let options = options(&folder, &kubeconfig("api.example:6443", &more));
    Cluster::connect(&options).await.unwrap();
    let heard = String::from_utf8(heard.await.unwrap()).unwrap();
    assert!(
        heard.starts_with("CONNECT api.example:6443 HTTP/1.1\r\n"),
        "{heard}"
    );
    assert!(
        heard.contains("Proxy-Authorization: Basic dXNlcjp3b3Jk\r\n"),
        "{heard}"
    );
    assert!(heard.contains("GET /version HTTP/1.1\r\n"), "{heard}");
}

#[tokio::test]
async fn a_socks_proxy_that_the_kubeconfig_names_is_used() {
    let folder = TempDir::new().unwrap();
    // No login, then connected from 0.0.0.0:0.
    let (address, heard) = proxy(&[b"\x05\x00", b"\x05\x00\x00\x01\0\0\0\0\0\0", VERSION]).await;
    let more = format!(", proxy-url: 'socks5://{address}'");
    let options = options(&folder, &kubeconfig("api.example:6443", &more));
    Cluster::connect(&options).await.unwrap();
    let heard = heard.await.unwrap();
    let text = String::from_utf8_lossy(&heard);
    // The proxy resolves the name.
    assert!(text.contains("\x05\x01\x00\x03\x0bapi.example\x19"), "{text:?}");
    assert!(text.contains("GET /version HTTP/1.1\r\n"), "{text:?}");
}

#[tokio::test]
async fn an_invalid_or_unreachable_proxy_is_named() {
    let folder = TempDir::new().unwrap();
    let text = kubeconfig("127.0.0.1:1", ", proxy-url: 'ftp://proxy:3128'");
    let error = fault(&options(&folder, &text)).await;
    assert!(matches!(error, ConnectError::Proxy(_)), "{error}");
    assert!(
        error.to_string().contains("proxy-url is ftp://proxy:3128"),
        "{error}"
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let text = kubeconfig("api.example:6443", &format!(", proxy-url: 'http://{address}'"));
    let error = fault(&options(&folder, &text)).await;
    let words = format!("http://api.example:6443/ through the proxy http://{address}: ");
    assert!(error.to_string().contains(&words), "{error}");
}
