//! The second revision: it reads the first one's state.

guests::revision!("2", 1);
