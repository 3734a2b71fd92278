//! The sixth revision: it reads neither the first one's state nor the third one's.

guests::revision!("6", 3);
