//! Tests the text of every error of this crate.

use std::time::Duration;

use rustls::pki_types::pem;
use scupper_common::samples::errors;
use scupper_common::variants;

use super::collector::SendError;
use super::{TraceSettingsError, TracesError};

variants!(TracesError: Certificates NoCertificate Tls);
variants!(TraceSettingsError: Endpoint NotOffered List Timeout);
variants!(SendError: TimedOut Unreachable NotBelieved Refused);

#[test]
fn every_error() {
    let traces = [
        TracesError::Certificates {
            path: "ca.pem".into(),
            source: pem::Error::NoItemsFound,
        },
        TracesError::NoCertificate("ca.pem".into()),
        TracesError::Tls(rustls::Error::General("no provider".to_owned())),
    ];
    let name = || "OTEL_EXPORTER_OTLP_ENDPOINT".to_owned();
    let settings = [
        TraceSettingsError::Endpoint {
            name: name(),
            wrong: "has no host",
        },
        TraceSettingsError::NotOffered {
            name: name(),
            value: "udp".to_owned(),
            fix: "write grpc",
        },
        TraceSettingsError::List {
            name: name(),
            number: 2,
            wrong: "has no =",
        },
        TraceSettingsError::Timeout {
            name: name(),
            value: "soon".to_owned(),
        },
    ];
    let text = || "in the collector's words".to_owned();
    let sending = [
        SendError::TimedOut(Duration::from_millis(2500)),
        SendError::Unreachable(text()),
        SendError::NotBelieved(text()),
        SendError::Refused(text(), true),
    ];
    let all = [
        errors("TracesError", &traces),
        errors("TraceSettingsError", &settings),
        errors("SendError", &sending),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
