//! host/engine/simulation
