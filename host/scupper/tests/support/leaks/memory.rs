//! What the policies of a process have in their memories at this moment, seen from outside.
//!
//! A linear memory stands alone: no page before it can be touched, and none of the gigabytes after it. Nothing else in
//! the process looks like that, so the memory of the driver itself, where secrets are, is not taken for a policy's.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// What the engine keeps free for one memory, but for what it has by now.
const RESERVED: u64 = 2 << 30;

struct Region {
    from: u64,
    to: u64,
    readable: bool,
    closed: bool,
}

/// The memories of all policies that are being called in this process.
pub(crate) fn guests_of(process: u32) -> Vec<Vec<u8>> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let regions: Vec<Region> = maps.lines().filter_map(region).collect();
    let Ok(memory) = File::open(format!("/proc/{process}/mem")) else {
        return Vec::new();
    };
    let mut guests = Vec::new();
    for (at, region) in regions.iter().enumerate() {
        if !region.closed || region.to - region.from < RESERVED {
            continue;
        }
        let mut pieces: Vec<&Region> = Vec::new();
        let mut end = region.from;
        for before in regions[..at].iter().rev() {
            if before.to != end || before.closed {
                break;
            }
            end = before.from;
            pieces.push(before);
        }
        let mut bytes = Vec::new();
        for piece in pieces.into_iter().rev().filter(|piece| piece.readable) {
            let mut part = vec![0; usize::try_from(piece.to - piece.from).unwrap()];
            if memory.read_exact_at(&mut part, piece.from).is_ok() {
                bytes.append(&mut part);
            }
        }
        if !bytes.is_empty() {
            guests.push(bytes);
        }
    }
    guests
}

/// `from-to rights …`
fn region(line: &str) -> Option<Region> {
    let (range, rest) = line.split_once(' ')?;
    let (from, to) = range.split_once('-')?;
    Some(Region {
        from: u64::from_str_radix(from, 16).ok()?,
        to: u64::from_str_radix(to, 16).ok()?,
        readable: rest.starts_with('r'),
        closed: rest.starts_with("---"),
    })
}
