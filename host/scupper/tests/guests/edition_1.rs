//! The first edition of a policy.

guests::edition!("1", 1);
