//! Names that both sides of the contract must spell alike.

/// The plugin type as which an SLM driver registers.
pub const PLUGIN_TYPE: &str = "SLMPlugin";

/// The version of the service that an SLM driver offers at registration.
pub const PLUGIN_VERSION: &str = "v1alpha1.SLMPlugin";

/// The gRPC service with its protobuf package.
pub const SERVICE: &str = "k8s.io.kubelet.pkg.apis.slm.v1alpha1.SLMPlugin";

/// The same service under the short path, which is served as well.
pub const SERVICE_ALIAS: &str = "v1alpha1.SLMPlugin";

/// The type of the Node condition whose reason carries the state of a transition.
pub const CONDITION: &str = "LifecycleTransition";

/// The finalizer that the kubelet sets on an event that it has claimed.
pub const FINALIZER: &str = "lifecycle.k8s.io/claim-protection";

/// The API group of LifecycleTransition and LifecycleEvent.
pub const GROUP: &str = "lifecycle.k8s.io";

/// The version of that group.
pub const VERSION: &str = "v1alpha1";

/// The folder of registration sockets below the kubelet's root. The kubelet creates it.
pub const REGISTRY_DIR: &str = "plugins_registry";

/// The folder of drivers' service sockets below the kubelet's root. The kubelet creates it.
pub const PLUGINS_DIR: &str = "plugins";

/// The longest path a Unix socket can have, in bytes.
pub const MAX_SOCKET_PATH: usize = 107;

/// The kubelet's limit for one call and the node patch that follows it, in seconds.
pub const CALL_TIMEOUT_SECS: u64 = 45;
