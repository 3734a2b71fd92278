//! A client on gRPC's C core (Python's), which spells `:authority` out. `triggers/slm/authority` tests its bytes.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use prost::Message;
use scupper_contract::registration::{InfoRequest, PluginInfo};
use scupper_contract::slm::LifecycleTransitionResponse;
use scupper_contract::slm::slm_plugin_server::SERVICE_NAME;
use tokio::process::Command;

use crate::fixture::{DRIVER, NODE, Root, SlmTrigger, claimed, start_request, wait_for_socket};
use crate::skip;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testbeds/grpc/client.py");
/// Enough to evict the client's first headers from its table.
const CALLS: usize = 100;

/// The interpreter that has gRPC.
fn python() -> PathBuf {
    let cache = std::env::var_os("SCUPPER_CACHE").unwrap_or_else(|| "/var/cache/scupper".into());
    let python = Path::new(&cache).join("testbeds/grpc/bin/python");
    assert!(
        python.exists(),
        "{} is missing: host/testbeds/tools grpc (SCUPPER_SKIP=grpc leaves this test out)",
        python.display()
    );
    python
}

/// Calls a method repeatedly over one connection; returns each answer.
async fn call<A: Message + Default>(socket: &Path, method: &str, request: &impl Message) -> Vec<A> {
    let digits: String = request
        .encode_to_vec()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let run = Command::new(python())
        .args([SCRIPT.as_ref(), socket.as_os_str()])
        .args([method, &digits, &CALLS.to_string()])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let answers = String::from_utf8(run.stdout).unwrap();
    answers
        .lines()
        .map(|line| A::decode(bytes(line).as_slice()).unwrap())
        .collect()
}

fn bytes(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[tokio::test]
async fn a_client_on_the_c_core_is_answered_on_both_sockets() {
    if skip::left_out("grpc") {
        return;
    }
    let root = Root::new();
    let trigger = SlmTrigger::open(root.options("one"), None);
    let socket = wait_for_socket(&root).await;

    let method = "/pluginregistration.Registration/GetInfo";
    let known: Vec<PluginInfo> = call(&socket, method, &InfoRequest {}).await;
    assert_eq!(known.len(), CALLS);
    assert!(
        known.iter().all(|info| info.name == DRIVER && *info == known[0]),
        "{known:?}"
    );

    trigger.list(vec![claimed("u1", "drain-1")]);
    let method = format!("/{SERVICE_NAME}/StartLifecycleTransition");
    let service = Path::new(&known[0].endpoint);
    let answers: Vec<LifecycleTransitionResponse> = call(service, &method, &start_request("drain-1")).await;
    assert_eq!(answers.len(), CALLS);
    let started = |answer: &LifecycleTransitionResponse| {
        answer.node_name == NODE && answer.lifecycle_condition == "drain-started"
    };
    assert!(answers.iter().all(started), "{answers:?}");
}
