//! host/simulator
