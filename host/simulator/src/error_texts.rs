//! Tests the text of every error of the simulators.

use std::io;

use rustix::io::Errno;
use scupper_common::samples::errors;
use scupper_common::variants;

use super::api::{self, StoreError};
use super::kubelet::{self, WatchError};

variants!(api::StartError: Bind Namespace);
variants!(StoreError: UnknownKind UnknownResource NotFound Refused);
variants!(kubelet::StartError: Folder Watch);
variants!(WatchError: Inotify Folder);

fn denied() -> io::Error {
    io::Error::from(io::ErrorKind::PermissionDenied)
}

fn watching() -> [WatchError; 2] {
    [
        WatchError::Inotify(Errno::MFILE),
        WatchError::Folder {
            path: "plugins_registry".into(),
            source: Errno::NOENT,
        },
    ]
}

#[test]
fn every_error() {
    let servers = [
        api::StartError::Bind {
            port: 6443,
            source: denied(),
        },
        api::StartError::Namespace("default"),
    ];
    let stores = [
        StoreError::UnknownKind {
            api_version: "v2".to_owned(),
            kind: "Pod".to_owned(),
        },
        StoreError::UnknownResource("cows".to_owned()),
        StoreError::NotFound("node worker-1".to_owned()),
        StoreError::Refused("in the server's words".to_owned()),
    ];
    let [inotify, _] = watching();
    let kubelets = [
        kubelet::StartError::Folder {
            path: "plugins".into(),
            source: denied(),
        },
        kubelet::StartError::Watch(inotify),
    ];
    let all = [
        errors("api::StartError", &servers),
        errors("StoreError", &stores),
        errors("kubelet::StartError", &kubelets),
        errors("WatchError", &watching()),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
