//! A client that writes its own HTTP/2, byte by byte, as the kubelet's gRPC library does.

use scupper_contract::registration::registration_server::{Registration, RegistrationServer};
use scupper_contract::registration::{
    InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::FromKubelet;

struct Plugin;

#[tonic::async_trait]
impl Registration for Plugin {
    async fn get_info(&self, _: Request<InfoRequest>) -> Result<Response<PluginInfo>, Status> {
        let name = "drain.example".to_owned();
        Ok(Response::new(PluginInfo {
            name,
            ..PluginInfo::default()
        }))
    }

    async fn notify_registration_status(
        &self,
        _: Request<RegistrationStatus>,
    ) -> Result<Response<RegistrationStatusResponse>, Status> {
        Ok(Response::new(RegistrationStatusResponse {}))
    }
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream][..], payload].concat()
}

fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0x40], text(name), text(value)].concat()
}

/// POST, http, the path, and what is remembered: once in full, later by its number.
fn call(stream: u8, authority: &[u8]) -> Vec<u8> {
    let path = "/pluginregistration.Registration/GetInfo";
    let mut block = vec![0x83, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    block.extend(path.as_bytes());
    if stream == 1 {
        block.extend(authority);
        block.extend(field("te", "trailers"));
        block.extend(field("content-type", "application/grpc"));
    } else {
        block.extend([0xc0, 0xbf, 0xbe]);
    }
    [frame(1, 0x4, stream, &block), frame(0, 0x1, stream, &[0; 5])].concat()
}

/// Reads frames until the headers of an answer, or the end of the stream.
async fn is_answered(client: &mut UnixStream, stream: u8) -> bool {
    loop {
        let mut head = [0; 9];
        client.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; usize::from(head[1]) * 256 + usize::from(head[2])];
        client.read_exact(&mut payload).await.unwrap();
        match (head[3], head[8]) {
            (1, of) if of == stream => return true,
            (3, of) if of == stream => return false,
            _ => {}
        }
    }
}

/// Two calls on one connection, written in pieces of `piece` bytes.
async fn calls(tolerant: bool, piece: usize) -> [bool; 2] {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reg.sock");
    let listener = UnixListenerStream::new(UnixListener::bind(&path).unwrap());
    let server = Server::builder().add_service(RegistrationServer::new(Plugin));
    let serving = if tolerant {
        let incoming = listener.map(|stream| stream.map(FromKubelet::new));
        tokio::spawn(server.serve_with_incoming(incoming))
    } else {
        tokio::spawn(server.serve_with_incoming(listener))
    };
    let mut client = UnixStream::connect(&path).await.unwrap();
    let start = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, &[])].concat();
    let authority = [&[0x41, 18][..], b"%2Fvar%2Flib%2Freg"].concat();
    let mut answered = [false; 2];
    for (answered, bytes) in answered
        .iter_mut()
        .zip([[start, call(1, &authority)].concat(), call(3, &authority)])
    {
        for piece in bytes.chunks(piece) {
            client.write_all(piece).await.unwrap();
        }
        let stream = if bytes.starts_with(b"PRI") { 1 } else { 3 };
        *answered = is_answered(&mut client, stream).await;
        if !*answered {
            break;
        }
    }
    serving.abort();
    answered
}

#[tokio::test]
async fn a_path_as_authority_is_answered() {
    for piece in [1, 7, 1000] {
        assert_eq!(calls(true, piece).await, [true, true], "in pieces of {piece}");
    }
}

/// When this fails, the HTTP/2 library takes such a request by itself, and this module can go.
#[tokio::test]
async fn without_help_it_is_refused() {
    assert_eq!(calls(false, 1000).await, [false, false]);
}
