//! The kubelet, as far as SLM goes, over real Unix sockets.
