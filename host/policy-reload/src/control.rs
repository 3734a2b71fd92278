//! Answers requests of `scupper policy list` and `rollback` to a running driver, over a socket in its state directory,
//! which only the driver's user can reach. One line of JSON in, one line out.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use scupper_policy::compiler_lacks;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use super::catalogue::Catalogue;
use super::status::SlotStatus;

const SOCKET: &str = "control.sock";
/// Longest request, in bytes.
const QUESTION_BYTES: u64 = 4096;
/// Longest answer, in bytes.
const ANSWER_BYTES: u64 = 4 << 20;
/// The time limit for one client.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers requests.
pub struct Control {
    listener: UnixListener,
    catalogue: Arc<Catalogue>,
}

/// Why a driver does not answer.
#[derive(Debug, Error)]
pub enum ControlError {
    /// There is no driver, or it does not answer.
    #[error("cannot reach the driver at {} (is it running, and is this its --state-dir?)", path.display())]
    Ask {
        /// Its socket.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// It refuses the request.
    #[error("{0}")]
    Refused(String),
    /// It runs another version.
    #[error("the driver's answer is not understood; is its version the same as this program's?")]
    Answer,
}

impl Control {
    /// Opens the socket. It replaces the socket of a dead driver, but not one that a driver answers.
    pub async fn open(state: &Path, catalogue: Arc<Catalogue>) -> io::Result<Self> {
        let path = state.join(SOCKET);
        if UnixStream::connect(&path).await.is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another driver has this state directory",
            ));
        }
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, catalogue })
    }

    /// Answers requests one after the other until dropped: requests are rare, and each has a time limit.
    pub async fn run(self) {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // Out of file descriptors, most likely.
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            };
            if !matches!(timeout(PATIENCE, self.answer(stream)).await, Ok(Ok(()))) {
                tracing::debug!(target: "scupper::policy", "a client disconnected before it read the answer");
            }
        }
    }

    async fn answer(&self, mut stream: UnixStream) -> io::Result<()> {
        let (reader, mut writer) = stream.split();
        let mut line = String::new();
        BufReader::new(reader.take(QUESTION_BYTES))
            .read_line(&mut line)
            .await?;
        let question: Value = serde_json::from_str(&line).unwrap_or_default();
        let text = |key: &str| question.get(key).and_then(Value::as_str);
        let answer = match (text("ask"), text("policy")) {
            (Some("list"), _) => {
                let slots: Vec<Value> = self
                    .catalogue
                    .slots()
                    .iter()
                    .map(|slot| self.slot(slot))
                    .collect();
                json!({
                    "generation": self.catalogue.generation(),
                    "policies": slots,
                    "compilerLacks": compiler_lacks(),
                })
            }
            (Some("rollback"), Some(name)) => match self.catalogue.roll_back(name).await {
                Ok(done) => json!({ "done": done }),
                Err(error) => json!({ "error": error }),
            },
            _ => json!({ "error": "this driver does not know this request" }),
        };
        writer.write_all(format!("{answer}\n").as_bytes()).await
    }
}

impl Control {
    fn slot(&self, slot: &SlotStatus) -> Value {
        let mut json = slot.to_json();
        if let Some(fields) = json.as_object_mut() {
            fields.insert("check".to_owned(), self.catalogue.last_check(&slot.name));
        }
        json
    }
}

/// The state of a running driver's policies: `{"generation": 3, "policies": [...], "compilerLacks": null}`. The last
/// lists the mechanisms that the node's kernel lacks to sandbox the compiler.
pub async fn ask_list(state: &Path) -> Result<Value, ControlError> {
    ask(state, &json!({ "ask": "list" })).await
}

/// Asks a running driver to return to the previous revision, and returns its report.
pub async fn ask_rollback(state: &Path, policy: &str) -> Result<String, ControlError> {
    let answer = ask(state, &json!({ "ask": "rollback", "policy": policy })).await?;
    let done = answer.get("done").and_then(Value::as_str);
    done.map(str::to_owned).ok_or(ControlError::Answer)
}

async fn ask(state: &Path, question: &Value) -> Result<Value, ControlError> {
    let path = state.join(SOCKET);
    let asked = async {
        let mut stream = UnixStream::connect(&path).await?;
        stream.write_all(format!("{question}\n").as_bytes()).await?;
        let mut line = String::new();
        BufReader::new(stream.take(ANSWER_BYTES))
            .read_line(&mut line)
            .await?;
        Ok(line)
    };
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it takes too long");
    let line = timeout(PATIENCE, asked)
        .await
        .map_err(late)
        .and_then(|asked| asked);
    let line = line.map_err(|source| ControlError::Ask {
        path: path.clone(),
        source,
    })?;
    let answer: Value = serde_json::from_str(&line).map_err(|_garbled| ControlError::Answer)?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(ControlError::Refused(error.to_owned())),
        None => Ok(answer),
    }
}
