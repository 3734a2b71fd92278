//! The two gRPC contracts between a driver and the kubelet: plugin registration, and Specialized Lifecycle Management.
//!
//! Messages, clients and servers are generated from `proto/` and committed, so that a build needs no protobuf
//! compiler; `tests/bootstrap.rs` checks that they are current. The crate does not know how either side behaves.
#![deny(missing_docs)]

mod names;

pub use names::*;

/// Specialized Lifecycle Management: the driver serves, the kubelet calls.
pub mod slm {
    #![expect(unused_qualifications, reason = "generated code")]
    #![expect(
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        reason = "generated code"
    )]

    include!("gen/k8s.io.kubelet.pkg.apis.slm.v1alpha1.rs");
}

/// Plugin registration: the driver serves, the kubelet calls.
pub mod registration {
    #![expect(unused_qualifications, reason = "generated code")]
    #![expect(
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        reason = "generated code"
    )]

    include!("gen/pluginregistration.rs");
}
