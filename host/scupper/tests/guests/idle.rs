//! Says who it is and has nothing to do.

guests::about!();
