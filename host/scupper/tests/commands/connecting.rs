//! `--context`, `--as` and the other connection flags of `kubectl`.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::rig::{Rig, Run};

/// A kubeconfig of two clusters: `dev`, which is current and does not exist, and `prod`.
fn two_clusters(rig: &Rig, prod: &str) -> String {
    let file = rig.dir.path().join("two");
    fs::write(
        &file,
        format!(
            "{{apiVersion: v1, kind: Config, current-context: dev, \
             contexts: [{{name: dev, context: {{cluster: dev, user: me}}}}, {{name: prod, context: {{cluster: prod, user: me}}}}], \
             clusters: [{{name: dev, cluster: {{server: 'http://127.0.0.1:1'}}}}, {{name: prod, cluster: {{server: '{prod}'}}}}], \
             users: [{{name: me, user: {{token: admin}}}}, {{name: other, user: {{token: other}}}}]}}"
        ),
    )
    .unwrap();
    file.to_str().unwrap().to_owned()
}

fn status(rig: &Rig, flags: &[&str]) -> Run {
    rig.run(&[&["status", "worker-1"], flags].concat())
}

#[test]
fn context_cluster_and_user_choose_from_the_kubeconfig() {
    let rig = Rig::new();
    let file = two_clusters(&rig, &rig.api.url());
    let run = status(&rig, &["--kubeconfig", &file]);
    assert_eq!(run.code, Some(4), "{run:#?}");
    let origin = format!("(kubeconfig {file}, context dev)");
    assert!(
        run.stderr.contains("at http://127.0.0.1:1/: ") && run.stderr.contains(&origin),
        "{run:#?}"
    );
    let mark = rig.api.mark();
    for flags in [&["--context", "prod"][..], &["--cluster=prod"]] {
        let run = status(&rig, &[&["--kubeconfig", &file], flags].concat());
        assert_eq!(run.code, Some(0), "{run:#?}");
    }
    assert!(rig.api.requests_since(mark).iter().all(|it| it.user == "admin"));
    let mark = rig.api.mark();
    status(
        &rig,
        &["--kubeconfig", &file, "--context", "prod", "--user", "other"],
    );
    let requests = rig.api.requests_since(mark);
    assert!(!requests.is_empty() && requests.iter().all(|it| it.user == "other"));
}

#[test]
fn a_name_that_the_kubeconfig_does_not_have_is_answered_with_those_that_it_has() {
    let rig = Rig::new();
    let file = two_clusters(&rig, &rig.api.url());
    let mark = rig.api.mark();
    for (flag, has) in [
        ("context", "dev, prod"),
        ("cluster", "dev, prod"),
        ("user", "me, other"),
    ] {
        let run = status(&rig, &["--kubeconfig", &file, &format!("--{flag}=stage")]);
        assert_eq!(run.code, Some(4), "{run:#?}");
        let words =
            format!("the kubeconfig {file} has no {flag} \"stage\"; choose one with --{flag}: {has}\n");
        assert!(run.stderr.contains(&words), "{words}: {run:#?}");
    }
    let text = fs::read_to_string(&file)
        .unwrap()
        .replace("current-context: dev, ", "");
    fs::write(&file, text).unwrap();
    let run = status(&rig, &["--kubeconfig", &file]);
    assert!(
        run.stderr
            .contains("has no current context; choose one with --context: dev, prod\n"),
        "{run:#?}"
    );
    assert!(rig.api.requests_since(mark).is_empty());
}

#[test]
fn every_request_impersonates_the_user_and_the_groups() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let mark = rig.api.mark();
    let who = ["--as=jane", "--as-group=admins", "--as-group=night-shift"];
    let run = rig.run(&[&["drain", "worker-1"], &who[..]].concat());
    assert_eq!(run.code, Some(0), "{run:#?}");
    let requests = rig.api.requests_since(mark);
    assert!(requests.iter().any(|it| it.subresource == "eviction"));
    for request in &requests {
        assert_eq!(request.impersonated, "jane", "{request:?}");
        assert_eq!(
            request.impersonated_groups,
            ["admins", "night-shift"],
            "{request:?}"
        );
    }
    let run = rig.run(&["drain", "worker-1", "--as-group=admins"]);
    assert_eq!(run.code, Some(2), "{run:#?}");
}

#[test]
fn a_request_has_no_more_time_than_request_timeout() {
    let rig = Rig::new();
    // It accepts connections and answers nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let file = two_clusters(&rig, &format!("http://{}", silent.local_addr().unwrap()));
    let flags = ["--kubeconfig", &file, "--context=prod"];
    let run = status(&rig, &[&flags[..], &["--request-timeout=200ms"]].concat());
    assert_eq!(run.code, Some(4), "{run:#?}");
    assert!(run.stderr.contains("no answer within 0.2 s"), "{run:#?}");
    let run = status(&rig, &[&flags[..], &["--request-timeout=1"]].concat());
    assert!(run.stderr.contains("no answer within 1 s"), "{run:#?}");
    let run = status(&rig, &["--request-timeout=0"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let run = status(&rig, &["--request-timeout=soon"]);
    assert_eq!(run.code, Some(2), "{run:#?}");
}

/// The cluster behind a certificate that no authority has signed; it ends with the rig.
fn behind_tls(rig: &Rig) -> SocketAddr {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["api.example".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            key.serialize_der().try_into().unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = rig
        .api
        .url()
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    rig.inside(|| {
        let listener = TcpListener::from_std(listener).unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, server) = (acceptor.clone(), server.clone());
                tokio::spawn(async move {
                    // A client that does not trust the certificate disconnects.
                    let Ok(mut client) = acceptor.accept(stream).await else {
                        return;
                    };
                    let mut upstream = TcpStream::connect(server).await.unwrap();
                    drop(tokio::io::copy_bidirectional(&mut client, &mut upstream).await);
                });
            }
        });
    });
    address
}

#[test]
fn an_unknown_certificate_is_refused_unless_the_user_insists_and_then_a_warning_says_so_once() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let file = two_clusters(&rig, &format!("https://{}", behind_tls(&rig)));
    let flags = ["drain", "worker-1", "--kubeconfig", &file, "--context", "prod"];
    let mark = rig.api.mark();
    let run = rig.run(&flags);
    assert_eq!(run.code, Some(4), "{run:#?}");
    assert!(
        run.stderr.contains("certificate") && run.stderr.contains("context prod"),
        "{run:#?}"
    );
    let run = rig.run(&[&flags[..], &["--insecure-skip-tls-verify=false"]].concat());
    assert_eq!(run.code, Some(4), "{run:#?}");
    assert!(rig.api.requests_since(mark).is_empty());
    let run = rig.run(&[&flags[..], &["--insecure-skip-tls-verify"]].concat());
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(rig.pods().is_empty());
    let warnings = run.stderr.matches("warning: --insecure-skip-tls-verify").count();
    assert_eq!(warnings, 1, "{run:#?}");
}
