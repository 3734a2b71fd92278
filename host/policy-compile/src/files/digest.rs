//! SHA-256 in lowercase hex, of bytes in memory or of a stream.

use std::fmt::Write;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// Of bytes in memory.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Of a stream, without keeping it in memory. Blocks.
pub(crate) fn sha256_of(mut from: impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut from, &mut hasher)?;
    Ok(hex(&hasher.finalize()))
}

/// Lowercase hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _written = write!(hex, "{byte:02x}").is_ok();
        hex
    })
}
