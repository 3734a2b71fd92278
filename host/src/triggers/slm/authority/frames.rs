//! HTTP/2 frames on their way in: those with headers are held until they are whole, and rewritten.

use std::collections::VecDeque;

use tokio::io::ReadBuf;

use super::headers;

/// What a client says first.
const PREFACE: usize = 24;
/// Length (3), type (1), flags (1), stream (4).
const HEAD: usize = 9;
const HEADERS: u8 = 1;
/// The block of headers ends with this frame, and neither padding nor a priority stands before it.
const PLAIN: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// Frames in the order they come.
#[derive(Debug)]
pub(super) struct Frames {
    state: State,
    /// Ready to be read.
    ready: VecDeque<u8>,
}

#[derive(Debug)]
enum State {
    /// So many bytes pass as they are.
    Pass(usize),
    /// The head of a frame, as far as it has come.
    Head(Vec<u8>),
    /// The head of a frame with headers, how long its block is, and the block as far as it has come.
    Block(Vec<u8>, usize, Vec<u8>),
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            state: State::Pass(PREFACE),
            ready: VecDeque::new(),
        }
    }
}

impl Frames {
    /// Puts what is ready into `room`. False: nothing was.
    pub(super) fn give(&mut self, room: &mut ReadBuf<'_>) -> bool {
        let before = room.filled().len();
        while room.remaining() > 0 {
            let (first, _) = self.ready.as_slices();
            let taken = first.len().min(room.remaining());
            let Some(bytes) = first.get(..taken).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            room.put_slice(bytes);
            self.ready.drain(..taken);
        }
        // A reader without room is not to wait for more.
        room.filled().len() > before || room.remaining() == 0
    }

    /// Takes in what has come.
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = match &mut self.state {
                State::Pass(left) => {
                    let (now, rest) = split(bytes, *left);
                    self.ready.extend(now);
                    *left -= now.len();
                    rest
                }
                State::Head(head) => fill(head, HEAD, bytes),
                State::Block(_, length, block) => fill(block, *length, bytes),
            };
            self.advance();
        }
    }

    /// From one part of a frame to the next.
    fn advance(&mut self) {
        match &mut self.state {
            State::Pass(0) => self.state = State::Head(Vec::with_capacity(HEAD)),
            State::Head(head) if head.len() == HEAD => {
                let head = std::mem::take(head);
                self.begin(head);
            }
            State::Block(head, length, block) if block.len() == *length => {
                let rewritten = headers::rewrite(block);
                let length = u32::try_from(rewritten.len()).unwrap_or_default().to_be_bytes();
                // A length has three bytes; the rest of the head stays.
                self.ready
                    .extend(length.iter().skip(1).chain(head.iter().skip(3)));
                self.ready.extend(rewritten);
                self.state = State::Head(Vec::with_capacity(HEAD));
            }
            State::Pass(_) | State::Head(_) | State::Block(..) => {}
        }
    }

    fn begin(&mut self, head: Vec<u8>) {
        let length = head
            .iter()
            .take(3)
            .fold(0, |length, byte| (length << 8) | usize::from(*byte));
        let of = |at: usize| head.get(at).copied().unwrap_or_default();
        let is_plain = of(4) & (PLAIN | PADDED | PRIORITY) == PLAIN;
        if of(3) == HEADERS && is_plain && length > 0 {
            self.state = State::Block(head, length, Vec::with_capacity(length));
        } else {
            self.ready.extend(head);
            self.state = match length {
                0 => State::Head(Vec::with_capacity(HEAD)),
                length => State::Pass(length),
            };
        }
    }
}

/// Fills up to `length`, and gives what is left over.
fn fill<'a>(into: &mut Vec<u8>, length: usize, bytes: &'a [u8]) -> &'a [u8] {
    let (now, rest) = split(bytes, length - into.len());
    into.extend(now);
    rest
}

fn split(bytes: &[u8], at: usize) -> (&[u8], &[u8]) {
    bytes.split_at_checked(at).unwrap_or((bytes, &[]))
}
