//! Incoming HTTP/2 frames: those with headers are held until their block is complete, and rewritten.

use std::collections::VecDeque;

use tokio::io::ReadBuf;

use super::headers::{REFUSED, Rewriter};

/// Length of the client's connection preface.
const PREFACE: usize = 24;
/// Length (3), type (1), flags (1), stream (4).
const HEAD: usize = 9;
/// The types of frames that carry headers.
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
/// Flags: the block of headers ends with this frame; the frame is padded; it carries a priority.
const WHOLE: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
/// Length of a priority, in bytes.
const PRIORITY_LENGTH: usize = 5;
/// Maximum length of a frame: the standard's default, because we announce no other.
const LONGEST: usize = 16 * 1024;
/// Maximum length of a block of headers in its shortest encoding. Our HTTP/2 library refuses a quarter of it.
const LONGEST_BLOCK: usize = 64 * 1024;

/// The frames of one connection, in order.
#[derive(Debug)]
pub(super) struct Frames {
    state: State,
    /// The incomplete block.
    open: Option<Block>,
    rewriter: Rewriter,
    /// Bytes ready to be read.
    ready: VecDeque<u8>,
}

#[derive(Debug)]
enum State {
    /// This many bytes pass unchanged.
    Pass(usize),
    /// The bytes of a frame's head received so far.
    Head(Vec<u8>),
    /// A frame with headers, with the bytes received so far.
    Part(Head, Vec<u8>),
    /// The client broke the protocol. Everything passes from here on; our HTTP/2 library detects it and ends the
    /// connection.
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    length: usize,
    kind: u8,
    flags: u8,
    stream: [u8; 4],
}

#[derive(Debug)]
struct Block {
    /// The head of the block's first frame, without padding.
    head: Head,
    priority: Vec<u8>,
    bytes: Vec<u8>,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            state: State::Pass(PREFACE),
            open: None,
            rewriter: Rewriter::default(),
            ready: VecDeque::new(),
        }
    }
}

impl Frames {
    /// Copies ready bytes into `room`. Returns false if there were none.
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
        // A reader without room must not wait for more.
        room.filled().len() > before || room.remaining() == 0
    }

    /// Processes received bytes.
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
                State::Part(head, payload) => fill(payload, head.length, bytes),
                State::Over => {
                    self.ready.extend(bytes);
                    &[]
                }
            };
            self.advance();
        }
    }

    /// Moves from one part of a frame to the next. A frame with headers may have no payload.
    fn advance(&mut self) {
        if matches!(self.state, State::Pass(0)) {
            self.state = State::Head(Vec::with_capacity(HEAD));
        }
        if let State::Head(head) = &self.state
            && let Some(head) = Head::read(head)
        {
            self.begin(head);
        }
        if let State::Part(head, payload) = &mut self.state
            && payload.len() == head.length
        {
            let (head, payload) = (*head, std::mem::take(payload));
            self.state = State::Head(Vec::with_capacity(HEAD));
            self.end(head, &payload);
        }
    }

    /// Handles a complete head.
    fn begin(&mut self, head: Head) {
        let fits = match &self.open {
            // No frame may interrupt a block.
            Some(open) => head.kind == CONTINUATION && head.stream == open.head.stream,
            None => head.kind != CONTINUATION,
        };
        let carries_headers = matches!(head.kind, HEADERS | CONTINUATION);
        if !fits || (carries_headers && head.length > LONGEST) {
            self.give_up(head, &[]);
        } else if carries_headers {
            self.state = State::Part(head, Vec::with_capacity(head.length));
        } else {
            self.ready.extend(head.written());
            self.state = match head.length {
                0 => State::Head(Vec::with_capacity(HEAD)),
                length => State::Pass(length),
            };
        }
    }

    /// Handles a complete frame with headers.
    fn end(&mut self, head: Head, payload: &[u8]) {
        let block = match self.open.take() {
            Some(mut open) => {
                open.bytes.extend(payload);
                open
            }
            None => match Block::begin(head, payload) {
                Some(block) => block,
                None => return self.give_up(head, payload),
            },
        };
        if block.bytes.len() > LONGEST_BLOCK {
            self.refuse(block);
        } else if head.flags & WHOLE == 0 {
            self.open = Some(block);
        } else {
            match self.rewriter.rewrite(&block.bytes) {
                Ok(bytes) => Block { bytes, ..block }.write(&mut self.ready),
                Err(_) => self.refuse(block),
            }
        }
    }

    /// Passes a frame that breaks the protocol to our HTTP/2 library, after the bytes held before it.
    fn give_up(&mut self, head: Head, payload: &[u8]) {
        if let Some(open) = self.open.take() {
            let begun = Head {
                length: open.priority.len(),
                ..open.head
            };
            self.ready.extend(begun.written());
            self.ready.extend(open.priority);
        }
        self.ready.extend(head.written());
        self.ready.extend(payload);
        self.state = State::Over;
    }

    /// Makes our HTTP/2 library refuse an unreadable block.
    fn refuse(&mut self, block: Block) {
        let bytes = REFUSED.to_vec();
        Block { bytes, ..block }.write(&mut self.ready);
        self.state = State::Over;
    }
}

impl Head {
    /// Parses a head. Returns `None` if it is incomplete.
    fn read(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, kind, flags, ref stream @ ..] = <&[u8; HEAD]>::try_from(bytes).ok()?;
        Some(Self {
            length: [a, b, c]
                .iter()
                .fold(0, |length, byte| (length << 8) | usize::from(*byte)),
            kind,
            flags,
            stream: *stream,
        })
    }

    fn written(self) -> impl Iterator<Item = u8> {
        // A length has three bytes.
        let length = u32::try_from(self.length).unwrap_or_default().to_be_bytes();
        let kind = [self.kind, self.flags];
        length.into_iter().skip(1).chain(kind).chain(self.stream)
    }
}

impl Block {
    /// Begins a block with its part in the first frame. Returns `None` if the padding exceeds the frame or the priority
    /// does not fit.
    fn begin(head: Head, mut payload: &[u8]) -> Option<Self> {
        if head.flags & PADDED != 0 {
            let (padding, rest) = payload.split_first()?;
            let length = rest.len().checked_sub(usize::from(*padding))?;
            payload = rest.get(..length)?;
        }
        let priority = if head.flags & PRIORITY == 0 {
            0
        } else {
            PRIORITY_LENGTH
        };
        let (priority, bytes) = payload.split_at_checked(priority)?;
        let flags = head.flags & !PADDED;
        Some(Self {
            head: Head { flags, ..head },
            priority: priority.to_vec(),
            bytes: bytes.to_vec(),
        })
    }

    /// Writes the block as a frame, and as many continuations as needed.
    fn write(self, into: &mut VecDeque<u8>) {
        let (first, mut rest) = split(&self.bytes, LONGEST - self.priority.len());
        let mut head = Head {
            length: self.priority.len() + first.len(),
            flags: (self.head.flags & !WHOLE) | if rest.is_empty() { WHOLE } else { 0 },
            ..self.head
        };
        into.extend(head.written());
        into.extend(&self.priority);
        into.extend(first);
        while !rest.is_empty() {
            let (part, after) = split(rest, LONGEST);
            head = Head {
                length: part.len(),
                kind: CONTINUATION,
                flags: if after.is_empty() { WHOLE } else { 0 },
                ..head
            };
            into.extend(head.written());
            into.extend(part);
            rest = after;
        }
    }
}

/// Fills `into` up to `length` and returns the remaining bytes.
fn fill<'a>(into: &mut Vec<u8>, length: usize, bytes: &'a [u8]) -> &'a [u8] {
    let (now, rest) = split(bytes, length - into.len());
    into.extend(now);
    rest
}

fn split(bytes: &[u8], at: usize) -> (&[u8], &[u8]) {
    bytes.split_at_checked(at).unwrap_or((bytes, &[]))
}
