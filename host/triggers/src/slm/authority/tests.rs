//! A client that writes its own HTTP/2, byte by byte, as the gRPC libraries do.

use std::time::Duration;

use scupper_contract::registration::registration_server::{Registration, RegistrationServer};
use scupper_contract::registration::{
    InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::KubeletStream;

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

/// `:authority` by its number, as Go writes it.
const NUMBERED: &[u8] = b"\x41\x12%2Fvar%2Flib%2Freg";
/// The same spelled out, as gRPC's C core writes it.
const SPELLED_OUT: &[u8] = b"\x40\x0a:authority\x12%2Fvar%2Flib%2Freg";
/// And in Huffman's code.
const CODED: &[u8] = b"\x40\x88\xb8\x3b\x53\x39\xec\x32\x7d\x7f\x83\x54\x58\x7f";

/// POST, http, the path, and indexed headers: once in full, later by number.
fn block(stream: u8, authority: &[u8]) -> Vec<u8> {
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
    block
}

/// An empty message.
fn message(stream: u8) -> Vec<u8> {
    frame(0, 0x1, stream, &[0; 5])
}

fn call(stream: u8, authority: &[u8]) -> Vec<u8> {
    let headers = frame(1, 0x4, stream, &block(stream, authority));
    [headers, message(stream)].concat()
}

/// The same in frames of one byte, the first with a priority and padding.
fn call_in_parts(stream: u8, authority: &[u8]) -> Vec<u8> {
    let block = block(stream, authority);
    let first = [&[3, 0, 0, 0, 0, 7, block[0]][..], &[0; 3]].concat();
    let mut frames = frame(1, 0x28, stream, &first);
    for (at, byte) in block.iter().enumerate().skip(1) {
        let is_last = at + 1 == block.len();
        frames.extend(frame(9, if is_last { 0x4 } else { 0 }, stream, &[*byte]));
    }
    [frames, message(stream)].concat()
}

fn preface() -> Vec<u8> {
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, &[])].concat()
}

/// The type and the stream of the next frame that is not about the connection's settings.
async fn next_frame(client: &mut UnixStream) -> (u8, u8) {
    loop {
        let mut head = [0; 9];
        client.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; usize::from(head[1]) * 256 + usize::from(head[2])];
        client.read_exact(&mut payload).await.unwrap();
        if !matches!(head[3], 4 | 6 | 8) {
            return (head[3], head[8]);
        }
    }
}

/// Reads frames until the headers of an answer, or the end of the stream.
async fn is_answered(client: &mut UnixStream, stream: u8) -> bool {
    loop {
        match next_frame(client).await {
            (1, of) if of == stream => return true,
            (3, of) if of == stream => return false,
            _ => {}
        }
    }
}

/// A server, and a client of it. The folder is the socket's.
async fn connected(tolerant: bool) -> (tempfile::TempDir, UnixStream) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reg.sock");
    let listener = UnixListenerStream::new(UnixListener::bind(&path).unwrap());
    let server = Server::builder().add_service(RegistrationServer::new(Plugin));
    if tolerant {
        let incoming = listener.map(|stream| stream.map(KubeletStream::new));
        tokio::spawn(server.serve_with_incoming(incoming));
    } else {
        tokio::spawn(server.serve_with_incoming(listener));
    }
    let client = UnixStream::connect(&path).await.unwrap();
    (folder, client)
}

/// Two calls on one connection, written in pieces of `piece` bytes.
async fn answered(tolerant: bool, piece: usize, calls: [Vec<u8>; 2]) -> [bool; 2] {
    let (_folder, mut client) = connected(tolerant).await;
    client.write_all(&preface()).await.unwrap();
    let mut answered = [false; 2];
    for ((answered, bytes), stream) in answered.iter_mut().zip(calls).zip([1, 3]) {
        for piece in bytes.chunks(piece) {
            client.write_all(piece).await.unwrap();
        }
        *answered = is_answered(&mut client, stream).await;
        if !*answered {
            break;
        }
    }
    answered
}

#[tokio::test]
async fn a_path_as_authority_is_answered() {
    for authority in [NUMBERED, SPELLED_OUT, CODED] {
        for piece in [1, 7, 1000] {
            let calls = [call(1, authority), call(3, authority)];
            let answered = answered(true, piece, calls).await;
            assert_eq!(answered, [true, true], "{authority:x?} in pieces of {piece}");
        }
    }
}

#[tokio::test]
async fn headers_in_several_frames_with_padding_and_priority_are_answered() {
    let calls = [call_in_parts(1, SPELLED_OUT), call_in_parts(3, SPELLED_OUT)];
    assert_eq!(answered(true, 1000, calls).await, [true, true]);
}

/// Earlier bytes are not lost, and later ones are not waited for.
#[tokio::test]
async fn a_protocol_violation_ends_the_connection() {
    let begun = frame(1, 0, 1, &[0x83]);
    let too_long = [&[0, 0x40, 1, 1, 0x4, 0, 0, 0, 1][..], &[0x83; 0x4001]].concat();
    for (what, bytes) in [
        (
            "another frame in the middle of a block",
            [begun.clone(), message(1)].concat(),
        ),
        (
            "another stream's",
            [begun.clone(), frame(9, 0x4, 3, &[0x86])].concat(),
        ),
        ("the rest of no block", frame(9, 0x4, 1, &[0x83])),
        ("more padding than frame", frame(1, 0xc, 1, &[9, 0x83])),
        ("a field that was never sent", frame(1, 0x4, 1, &[0xbe])),
        ("a text that ends too soon", frame(1, 0x4, 1, b"\x40\x0a:auth")),
        ("a frame that is too long", too_long),
    ] {
        let (_folder, mut client) = connected(true).await;
        client.write_all(&[preface(), bytes].concat()).await.unwrap();
        let goaway = timeout(Duration::from_secs(20), next_frame(&mut client)).await;
        assert_eq!(goaway, Ok((7, 0)), "{what}");
    }
}

/// Once this fails, the HTTP/2 library accepts such a request itself, and this module can be removed.
#[tokio::test]
async fn without_help_it_is_refused() {
    let calls = [call(1, NUMBERED), call(3, NUMBERED)];
    assert_eq!(answered(false, 1000, calls).await, [false, false]);
}
