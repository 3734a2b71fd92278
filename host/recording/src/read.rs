//! Reads a recording. One that ends in the middle, because its process was killed, is read as far as it goes.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde::de::Error as _;

use scupper_recorder::{
    End, FORMAT, Header, Input, KnownPods, LONGEST, Learned, Line, ShadowPlan, StartEstimate, Turn,
    WrittenInput, WrittenTurn,
};

/// A recording of more bytes before compression is none of ours.
const MOST: usize = 1 << 30;

/// A recording that was read.
#[derive(Clone, Debug)]
pub struct Recording {
    /// How the drain began.
    pub header: Header,
    /// Its turns.
    pub turns: Vec<Turn>,
    /// What policies have learned about the cluster, in order.
    pub facts: Vec<Learned>,
    /// What shadow policies would have made of it.
    pub shadows: Vec<ShadowPlan>,
    /// When it would probably end, as it was estimated at its start; `None`: not enough was known.
    pub estimate: Option<StartEstimate>,
    /// How it ended; `None`: the recording ends before the drain does.
    pub end: Option<End>,
    /// Why the recording ends before the drain does, where it says so.
    pub cut: Option<String>,
}

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened.
    #[error("cannot open {}", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be read or decompressed.
    #[error("{}: cannot be read after line {line}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The last good line.
        line: usize,
        /// Why.
        source: io::Error,
    },
    /// It does not begin as recordings do.
    #[error("{} is not a recording of a drain: it does not begin with a header", .path.display())]
    NoHeader {
        /// The file.
        path: PathBuf,
    },
    /// A line is not what it should be.
    #[error("{}: line {line} is not valid in format {FORMAT}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its number.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// Another version of the program wrote it.
    #[error("{} has format {format}; this version reads format {FORMAT}. Use Scupper {program}, which wrote it", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The program that wrote it.
        program: String,
    },
}

impl Recording {
    /// Of a drain that has done nothing yet.
    pub const fn begun(header: Header) -> Self {
        Self {
            header,
            turns: Vec::new(),
            facts: Vec::new(),
            shadows: Vec::new(),
            estimate: None,
            end: None,
            cut: None,
        }
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let mut lines = Lines::open(path)?;
        let mut recording = Self::begun(lines.header()?);
        let mut pods = KnownPods::default();
        while let Some(text) = lines.next()? {
            match lines.parse(&text)? {
                Line::Turn(turn) => recording.turns.push(lines.turn(turn, &mut pods)?),
                Line::End(end) => recording.end = Some(end),
                Line::Cut(why) => recording.cut = Some(why),
                Line::Shadows(plans) => recording.shadows.extend(plans),
                Line::Estimate(estimate) => recording.estimate = Some(estimate),
                Line::Facts(learned) => recording.facts.push(learned),
                Line::Header(_) | Line::Policies(_) => {}
            }
        }
        Ok(recording)
    }

    /// Reads how a drain began.
    pub fn header(path: &Path) -> Result<Header, ReadError> {
        Lines::open(path)?.header()
    }

    /// Shows its turns one after another, and keeps none of them. Returns how it began and ended.
    pub(crate) fn look_at_turns(
        path: &Path,
        mut look: impl FnMut(&Header, &Turn),
    ) -> Result<(Header, Option<End>), ReadError> {
        let mut lines = Lines::open(path)?;
        let header = lines.header()?;
        let (mut pods, mut end) = (KnownPods::default(), None);
        while let Some(text) = lines.next()? {
            match lines.parse(&text)? {
                Line::Turn(turn) => look(&header, &lines.turn(turn, &mut pods)?),
                Line::End(ended) => end = Some(ended),
                _ => {}
            }
        }
        Ok((header, end))
    }

    /// Reads how a drain began and ended, without what came between.
    pub(crate) fn ends(path: &Path) -> Result<(Header, Option<End>), ReadError> {
        let mut lines = Lines::open(path)?;
        let header = lines.header()?;
        let mut last = Vec::new();
        while let Some(text) = lines.next()? {
            last = text;
        }
        let last = serde_json::from_slice(&last).ok();
        Ok(match last {
            Some(Line::End(end)) => (header, Some(end)),
            _ => (header, None),
        })
    }
}

/// The lines of a file.
struct Lines<'a> {
    path: &'a Path,
    text: BufReader<MultiGzDecoder<File>>,
    number: usize,
    bytes: usize,
}

/// The part of a header that all versions have.
#[derive(Deserialize)]
struct AnyHeader {
    header: AnyVersion,
}

#[derive(Deserialize)]
struct AnyVersion {
    format: u32,
    program: String,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(|source| ReadError::Open {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path,
            text: BufReader::new(MultiGzDecoder::new(file)),
            number: 0,
            bytes: 0,
        })
    }

    fn header(&mut self) -> Result<Header, ReadError> {
        let none = || ReadError::NoHeader {
            path: self.path.to_owned(),
        };
        let text = match self.next() {
            Err(ReadError::Damaged { source, .. }) if source.kind() == io::ErrorKind::InvalidInput => None,
            text => text?,
        };
        let text = text.ok_or_else(none)?;
        let any: AnyHeader = serde_json::from_slice(&text).map_err(|_| none())?;
        let AnyVersion { format, program } = any.header;
        if format != FORMAT {
            return Err(ReadError::Format {
                path: self.path.to_owned(),
                format,
                program,
            });
        }
        match self.parse(&text)? {
            Line::Header(header) => Ok(*header),
            _ => Err(none()),
        }
    }

    /// The next whole line.
    fn next(&mut self) -> Result<Option<Vec<u8>>, ReadError> {
        let mut line = Vec::new();
        let most = LONGEST + 1;
        let read = (&mut self.text).take(most as u64).read_until(b'\n', &mut line);
        self.bytes += line.len();
        let read = match read {
            Ok(_) if line.len() > LONGEST || self.bytes > MOST => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is larger than a recording can be",
            )),
            read => read,
        };
        match read {
            Ok(_) if line.last() == Some(&b'\n') => {
                self.number += 1;
                Ok(Some(line))
            }
            Ok(_) => Ok(None),
            // What was written since the last flush is missing.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(source) => Err(ReadError::Damaged {
                path: self.path.to_owned(),
                line: self.number,
                source,
            }),
        }
    }

    /// The inputs as the engine was told them.
    fn turn(&self, turn: WrittenTurn, pods: &mut KnownPods) -> Result<Turn, ReadError> {
        let mut input = |(at, input)| {
            let input = match input {
                WrittenInput::Event(event) => {
                    pods.told(&event);
                    Input::Event(Cow::Owned(event))
                }
                WrittenInput::Timeout => Input::Timeout,
                WrittenInput::Recall { left, own } => Input::Recall { left, own },
                WrittenInput::Pod(change) => {
                    let unknown = || serde_json::Error::custom("a pod has changed that no line before has");
                    let event = pods.changed(change).ok_or_else(unknown);
                    Input::Event(Cow::Owned(event.map_err(|source| self.wrong(source))?))
                }
            };
            Ok((at, input))
        };
        Ok(Turn {
            line: self.number,
            inputs: turn
                .inputs
                .into_iter()
                .map(&mut input)
                .collect::<Result<_, _>>()?,
            commands: turn.commands,
        })
    }

    fn parse(&self, text: &[u8]) -> Result<Line, ReadError> {
        serde_json::from_slice(text).map_err(|source| self.wrong(source))
    }

    fn wrong(&self, source: serde_json::Error) -> ReadError {
        ReadError::Line {
            path: self.path.to_owned(),
            line: self.number,
            source,
        }
    }
}
