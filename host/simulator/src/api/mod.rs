//! A Kubernetes API server in memory, over real HTTP.
