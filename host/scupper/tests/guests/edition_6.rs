//! The sixth edition: it reads neither the first one's state nor the third one's.

guests::edition!("6", 3);
