//! The second edition: it reads the first one's state.

guests::edition!("2", 1);
