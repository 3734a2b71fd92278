//! The words both sides of the contract must spell alike.

/// The kind of plugin an SLM driver registers as.
pub const PLUGIN_TYPE: &str = "SLMPlugin";

/// The version of the service that an SLM driver offers at registration.
pub const PLUGIN_VERSION: &str = "v1alpha1.SLMPlugin";

/// The gRPC service as the protobuf package spells it.
pub const SERVICE: &str = "k8s.io.kubelet.pkg.apis.slm.v1alpha1.SLMPlugin";

/// The same service under the short path, which is served as well.
pub const SERVICE_ALIAS: &str = "v1alpha1.SLMPlugin";

/// The type of the Node condition whose reason carries the state of a transition.
pub const CONDITION: &str = "LifecycleTransition";

/// The finalizer by which the kubelet holds an event that it has claimed.
pub const FINALIZER: &str = "lifecycle.k8s.io/claim-protection";

/// The API group of LifecycleTransition and LifecycleEvent.
pub const GROUP: &str = "lifecycle.k8s.io";

/// The version of that group.
pub const VERSION: &str = "v1alpha1";

/// Below the kubelet's root: where registration sockets are looked for. The kubelet makes it.
pub const REGISTRY_DIR: &str = "plugins_registry";

/// Below the kubelet's root: where drivers keep their service sockets. The kubelet makes it.
pub const PLUGINS_DIR: &str = "plugins";

/// The longest path a Unix socket can have, in bytes.
pub const MAX_SOCKET_PATH: usize = 107;

/// The kubelet's limit for one call and the node patch that follows it, in seconds.
pub const CALL_TIMEOUT_SECS: u64 = 45;
