//! The first revision of a policy.

guests::revision!("1", 1);
