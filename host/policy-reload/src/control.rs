//! What `scupper policy list` and `rollback` ask a running driver, over a socket in its state directory, which is
//! closed to everybody else. One line of JSON in, one line out.

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
/// Bytes of a question.
const QUESTION_BYTES: u64 = 4096;
/// Bytes of an answer.
const ANSWER_BYTES: u64 = 4 << 20;
/// How long anybody may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers questions.
pub struct Control {
    listener: UnixListener,
    catalogue: Arc<Catalogue>,
}

/// Why a driver does not answer.
#[derive(Debug, Error)]
pub enum ControlError {
    /// There is no driver, or it does not answer.
    #[error("ask the driver at {}; is it running, and is this its --state-dir?", path.display())]
    Ask {
        /// Its socket.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// It does not want to.
    #[error("{0}")]
    Refused(String),
    /// It is another version.
    #[error("the driver's answer is not understood; is it of this version?")]
    Answer,
}

impl Control {
    /// Opens the socket. A socket that a dead driver left behind is replaced; one that is answered is not.
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

    /// Answers until it is dropped, one after the other: few ask, and each has its time.
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

/// How the policies of a running driver stand: `{"generation": 3, "policies": [...], "compilerLacks": null}`. The last
/// says what the node's kernel lacks to sandbox the compiler.
pub async fn ask_list(state: &Path) -> Result<Value, ControlError> {
    ask(state, &json!({ "ask": "list" })).await
}

/// Has a running driver go back to the revision before, and says what it did.
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
