//! Describes itself and does nothing.

guests::about!();
