//! Tests the text of every error of the cluster edge.

use std::io;

use kube::config::{InClusterError, KubeconfigError};
use scupper_common::samples::errors;
use scupper_common::variants;

use super::{ConnectError, DecodeError, ProxyUrlError, ReadError, WriteError};

variants!(ConnectError: NoConfig Kubeconfig NotThere NoCurrentContext ServiceAccount Proxy Setup Unreachable
    Unauthorized Unexpected);
variants!(DecodeError: NoKind NoName Field);
variants!(ReadError: NotFound Unauthorized Forbidden NotSaved Unavailable Unexpected);
variants!(WriteError: Conflict Rejected Unavailable);

fn text(text: &str) -> String {
    text.to_owned()
}

fn connecting() -> Vec<ConnectError> {
    let url = || text("https://127.0.0.1:6443");
    let origin = || text("kubeconfig admin.conf, context prod");
    let path = || text("admin.conf");
    let known = || vec![text("prod"), text("test")];
    let unreachable = |proxy| ConnectError::Unreachable {
        url: url(),
        origin: origin(),
        proxy,
        message: text("connection refused"),
    };
    let not_there = |known| ConnectError::NotThere {
        path: path(),
        what: "context",
        name: text("live"),
        known,
    };
    vec![
        ConnectError::NoConfig {
            tried: vec![
                text("~/.kube/config: no such file"),
                text("the pod's service account: none"),
            ],
        },
        ConnectError::Kubeconfig {
            path: path(),
            source: Box::new(KubeconfigError::CurrentContextNotSet),
        },
        not_there(known()),
        not_there(Vec::new()),
        ConnectError::NoCurrentContext {
            path: path(),
            known: known(),
        },
        ConnectError::ServiceAccount(Box::new(InClusterError::ReadDefaultNamespace(io::Error::from(
            io::ErrorKind::NotFound,
        )))),
        ConnectError::Proxy(ProxyUrlError {
            source_name: "HTTPS_PROXY",
            url: text("ftp://127.0.0.1"),
        }),
        ConnectError::Setup {
            url: url(),
            origin: origin(),
            source: "the client certificate is not valid".into(),
        },
        unreachable(None),
        unreachable(Some(text("http://127.0.0.1:3128"))),
        ConnectError::Unauthorized {
            url: url(),
            origin: origin(),
            message: text("Unauthorized"),
        },
        ConnectError::Unexpected {
            url: url(),
            origin: origin(),
            message: text("404 page not found"),
        },
    ]
}

fn reading() -> Vec<ReadError> {
    let what = || text("list pods");
    let message = || text("in the server's words");
    vec![
        ReadError::NotFound {
            what: text("node worker-1"),
        },
        ReadError::Unauthorized { message: message() },
        ReadError::Forbidden {
            what: what(),
            message: message(),
        },
        ReadError::NotSaved {
            message: text("the file has no persistentvolumeclaims"),
        },
        ReadError::Unavailable {
            what: what(),
            message: message(),
        },
        ReadError::Unexpected {
            what: what(),
            message: message(),
        },
    ]
}

fn writing() -> Vec<WriteError> {
    let what = || text("annotate pod shop/web");
    let message = || text("in the server's words");
    vec![
        WriteError::Conflict {
            what: what(),
            message: message(),
        },
        WriteError::Rejected {
            what: what(),
            code: 422,
            message: message(),
        },
        WriteError::Unavailable {
            what: what(),
            message: message(),
        },
    ]
}

#[test]
fn every_error() {
    let decoding = [
        DecodeError::NoKind,
        DecodeError::NoName(text("Pod")),
        DecodeError::Field {
            kind: text("Pod"),
            name: text("web"),
            source: serde_json::from_str::<u32>("\"one\"").unwrap_err(),
        },
    ];
    let all = [
        errors("ConnectError", &connecting()),
        errors("DecodeError", &decoding),
        errors("ReadError", &reading()),
        errors("WriteError", &writing()),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
