//! plugins/priority
