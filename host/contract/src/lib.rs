//! host/contract
