//! https: which servers are trusted, and by which authority.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use scupper_policy_spec::HttpGrant;
use tokio_rustls::TlsAcceptor;

use super::rig::{LOOPBACK, Rig, secret_file};
use super::server::{Server, ok};
use crate::support::chain;

/// A certificate authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// A server of this name.
    fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Arc::new(config).into()
    }
}

/// A policy that may send to this origin, which is trusted by this file.
fn rig(origin: &str, ca: Option<PathBuf>) -> Rig {
    let http = HttpGrant {
        origin: origin.to_owned(),
        networks: LOOPBACK,
        ca,
        ..HttpGrant::default()
    };
    Rig::new().http(http).wants(&format!("http GET {origin}"))
}

#[tokio::test]
async fn an_origin_is_trusted_by_the_certificate_that_the_operator_named() {
    let authority = Authority::new();
    let server = Server::start_tls(authority.acceptor("secure.test"), |_| ok("whispered")).await;
    let ca = secret_file(&authority.pem);
    let port = server.port;
    let get = format!("GET https://secure.test:{port}/");
    let loaded = rig(&format!("https://secure.test:{port}"), Some(ca)).load().await;
    assert_eq!(loaded.step(&[&get, "send"]).await, "200 [] [] whispered");
    assert!(server.only().contains(&format!("host: secure.test:{port}\r\n")));
}

#[tokio::test]
async fn no_other_certificate_is_trusted_and_nothing_is_sent() {
    let authority = Authority::new();
    let server = Server::start_tls(authority.acceptor("secure.test"), |_| ok("whispered")).await;
    let port = server.port;
    let other = secret_file(&Authority::new().pem);
    let right = secret_file(&authority.pem);
    for (name, ca) in [
        ("secure.test", None),
        ("secure.test", Some(other)),
        // The certificate is for another name.
        ("else.test", Some(right)),
    ] {
        let origin = format!("https://{name}:{port}");
        let reported = rig(&origin, ca)
            .load()
            .await
            .step(&[&format!("GET {origin}/"), "send"])
            .await;
        assert!(
            reported.starts_with(&format!("unreachable: TLS with {origin} failed: ")),
            "{reported}"
        );
        assert!(reported.contains("certificate"), "{reported}");
    }
    assert!(server.requests().is_empty());
    // A server without TLS is not trusted either.
    let plain = Server::echo().await;
    let origin = format!("https://secure.test:{}", plain.port);
    let reported = rig(&origin, None)
        .load()
        .await
        .step(&[&format!("GET {origin}/"), "timeout 2000", "send"])
        .await;
    assert!(reported.starts_with("unreachable: "), "{reported}");
}

#[tokio::test]
async fn certificates_can_be_exchanged_while_the_policy_runs() {
    let (old, new) = (Authority::new(), Authority::new());
    let server = Server::start_tls(new.acceptor("secure.test"), |_| ok("whispered")).await;
    let origin = format!("https://secure.test:{}", server.port);
    let ca = secret_file(&old.pem);
    let loaded = rig(&origin, Some(ca.clone())).load().await;
    let get = format!("GET {origin}/");
    let reported = loaded.step(&[&get, "send"]).await;
    assert!(
        reported.starts_with("unreachable: TLS with https://"),
        "{reported}"
    );
    std::fs::write(&ca, format!("{}{}", old.pem, new.pem)).unwrap();
    assert_eq!(loaded.step(&[&get, "send"]).await, "200 [] [] whispered");
    std::fs::remove_file(&ca).unwrap();
    let reported = loaded.step(&[&get, "send"]).await;
    assert!(reported.starts_with("unreachable: cannot read /"), "{reported}");
}

#[tokio::test]
async fn a_file_without_a_certificate_prevents_the_load_of_the_policy() {
    let origin = "https://secure.test";
    let wrong = |ca: PathBuf| async move {
        let Err(error) = rig(origin, Some(ca)).try_load().await else {
            panic!("it was loaded")
        };
        chain(&error)
    };
    let reported = wrong("/nowhere/ca.pem".into()).await;
    assert!(
        reported.contains("the grant http of `https://secure.test`: ca: cannot read /nowhere/ca.pem"),
        "{reported}"
    );
    for text in [
        "",
        "hello",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let reported = wrong(secret_file(text)).await;
        assert!(
            reported.ends_with("contains no usable certificate"),
            "{text}: {reported}"
        );
    }
    let reported = wrong(secret_file("-----BEGIN CERTIFICATE-----\n!\n")).await;
    assert!(
        reported.contains("is not a list of PEM certificates"),
        "{reported}"
    );
}
