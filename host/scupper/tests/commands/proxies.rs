//! `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` in the environment mean the same as for `kubectl`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use scupper_simulator::api::objects;

use crate::rig::Rig;

/// A proxy in front of `server`, which is called by another name; it ends with the process.
fn proxy(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, server) = (stream.unwrap(), server.clone());
            thread::spawn(move || pass(stream, &server));
        }
    });
    format!("http://{address}")
}

fn pass(mut client: TcpStream, server: &str) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if client.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    if !head.starts_with(b"CONNECT api.example:80 ") {
        client
            .write_all(b"HTTP/1.1 502 Elsewhere\r\n\r\n")
            .unwrap_or_default();
        return;
    }
    let upstream = TcpStream::connect(server).unwrap();
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap_or_default();
    let pairs = [
        (client.try_clone().unwrap(), upstream.try_clone().unwrap()),
        (upstream, client),
    ];
    for (mut from, mut to) in pairs {
        thread::spawn(move || {
            std::io::copy(&mut from, &mut to).unwrap_or_default();
            to.shutdown(std::net::Shutdown::Both).unwrap_or_default();
        });
    }
}

/// The cluster by a name that only the proxy can resolve.
fn renamed(rig: &Rig) -> String {
    let server = rig
        .api
        .url()
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    let file = rig.dir.path().join("kubeconfig");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(&server), "{text}");
    std::fs::write(&file, text.replace(&server, "api.example:80")).unwrap();
    server
}

#[test]
fn proxies_for_other_schemes_and_hosts_do_not_affect_a_command() {
    let rig = Rig::new();
    rig.apply(objects::pod("shop", "web", "worker-1").owner_replicaset("web"));
    let nobody = "http://127.0.0.1:1";
    // The simulator speaks plain HTTP, and on this machine.
    for (variable, except) in [
        ("HTTPS_PROXY", ""),
        ("https_proxy", "127.0.0.0/8"),
        ("HTTP_PROXY", ""),
    ] {
        let run = rig
            .start_in(&["plan", "worker-1"], &[(variable, nobody), ("NO_PROXY", except)])
            .ended();
        assert_eq!(run.code, Some(0), "{variable}: {run:#?}");
    }
}

#[test]
fn a_drain_goes_through_the_proxy_that_the_environment_names() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let url = proxy(renamed(&rig));
    let run = rig
        .start_in(&["drain", "worker-1"], &[("HTTP_PROXY", &url)])
        .ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(rig.pods().is_empty());
    // Not for this one.
    let environment = [("HTTP_PROXY", &*url), ("NO_PROXY", "other,.example")];
    let run = rig.start_in(&["drain", "worker-1"], &environment).ended();
    assert_eq!(run.code, Some(4), "{run:#?}");
    assert!(run.stderr.contains("api.example"), "{run:#?}");
}
