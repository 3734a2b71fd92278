//! Tests the text of every error of a policy's requests.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use rustls::pki_types::pem;
use scupper_common::samples::errors;
use scupper_common::variants;
use scupper_policy_spec::HttpGrantError;

use super::address::Refusal;
use super::connect::ConnectError;
use super::exchange::ExchangeError;
use super::headers::HeaderError;
use super::{HttpSetupError, TlsError};

variants!(Refusal: Loopback Private Metadata LinkLocal Multicast Unspecified Reserved Tunnel);
variants!(ConnectError: NoAddress Refused Forbidden Tcp Tls);
variants!(ExchangeError: NotSent Broken Encoded TooLarge);
variants!(HeaderError: Name Ours Value Many Long);
variants!(HttpSetupError: Grant Ca);
variants!(TlsError: Read Long Pem Empty Setup);

fn connecting() -> Vec<ConnectError> {
    let host = || "db.example.com".to_owned();
    let origin = || "https://db.example.com".to_owned();
    let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    vec![
        ConnectError::NoAddress {
            host: host(),
            reason: "no such host".to_owned(),
        },
        ConnectError::Refused {
            host: host(),
            address,
            refusal: Refusal::Private,
        },
        ConnectError::Forbidden("https://10.96.0.1".to_owned()),
        ConnectError::Tcp {
            origin: origin(),
            address,
            source: io::Error::from(io::ErrorKind::ConnectionRefused),
        },
        ConnectError::Tls {
            origin: origin(),
            source: io::Error::other("invalid peer certificate: UnknownIssuer"),
        },
    ]
}

fn certificates() -> Vec<TlsError> {
    vec![
        TlsError::Read {
            path: "ca.pem".into(),
            source: io::Error::from(io::ErrorKind::NotFound),
        },
        TlsError::Long("ca.pem".into()),
        TlsError::Pem {
            path: "ca.pem".into(),
            source: pem::Error::NoItemsFound,
        },
        TlsError::Empty("ca.pem".into()),
        TlsError::Setup(rustls::Error::General("no provider".to_owned())),
    ]
}

#[test]
fn every_error() {
    let refusals = [
        Refusal::Loopback,
        Refusal::Private,
        Refusal::Metadata,
        Refusal::LinkLocal,
        Refusal::Multicast,
        Refusal::Unspecified,
        Refusal::Reserved,
        Refusal::Tunnel,
    ];
    let exchange = [
        ExchangeError::NotSent("connection reset".to_owned()),
        ExchangeError::Broken("invalid HTTP version parsed".to_owned()),
        ExchangeError::Encoded("gzip".to_owned()),
        ExchangeError::TooLarge,
    ];
    let headers = [
        HeaderError::Name("x y".to_owned()),
        HeaderError::Ours("host".to_owned()),
        HeaderError::Value("x-token".to_owned()),
        HeaderError::Many(70),
        HeaderError::Long,
    ];
    let setup = [
        HttpSetupError::Grant(HttpGrantError::CaWithoutTls),
        HttpSetupError::Ca(TlsError::Empty("ca.pem".into())),
    ];
    let all = [
        errors("Refusal", &refusals),
        errors("ConnectError", &connecting()),
        errors("ExchangeError", &exchange),
        errors("HeaderError", &headers),
        errors("HttpSetupError", &setup),
        errors("TlsError", &certificates()),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
