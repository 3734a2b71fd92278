//! triggers
