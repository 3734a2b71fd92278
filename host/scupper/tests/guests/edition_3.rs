//! The third edition: it does not read the state of the others.

guests::edition!("3", 2);
