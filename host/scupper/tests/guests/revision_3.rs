//! The third revision: it does not read the state of the others.

guests::revision!("3", 2);
