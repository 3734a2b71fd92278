//! A YAML document as a tree in which every value has its place.
//!
//! It accepts the maps, lists and scalars of YAML. Features that make one text ambiguous, or put one value in several
//! places, are refused by name: anchors, aliases, tags, merge keys, several documents, keys that are not text.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::place::{FieldPath, Position};
use super::problem::Problems;
use super::scalar::{Kind, kind};
use scupper_common::text::one_line;

/// How deep maps and lists may be nested.
const DEPTH: usize = 32;
/// Bytes of a key that are shown.
const KEY_BYTES: usize = 80;

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: Position,
    pub(super) value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A scalar as it was written; `plain`: without quotes, so that it may be a number, a boolean or nothing.
    Scalar { text: String, plain: bool },
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the file, every key once.
    Map(Vec<Entry>),
    /// A value whose problem is already reported.
    Broken,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: Position,
    pub(super) key: String,
    pub(super) value: Node,
}

impl Node {
    /// A missing value.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if kind(text) == Kind::Nothing)
    }
}

/// Reads one document. `None`: there is none, or it cannot be read completely.
pub(super) fn read(text: &str, problems: &mut Problems) -> Option<Node> {
    let mut builder = Builder {
        open: Vec::new(),
        root: None,
        documents: 0,
        problems,
    };
    let mut parser = Parser::new_from_str(text);
    loop {
        match parser.next_event()? {
            Ok((Event::StreamEnd, _)) => return builder.root,
            Ok((event, span)) => builder.take(event, span)?,
            Err(error) => {
                let (at, message) = reported(text, &error);
                let path = builder.path();
                builder.problems.add(at, &path, message);
                return None;
            }
        }
    }
}

/// A syntax error in our own words where the parser's would not help.
fn reported(text: &str, error: &ScanError) -> (Position, String) {
    let at = Position {
        line: error.marker().line(),
        column: error.marker().col() + 1,
    };
    // The parser may notice a tab only in the next line.
    let tabbed = (at.line.saturating_sub(1)..=at.line).find_map(|number| {
        let line = text.lines().nth(number.checked_sub(1)?)?;
        let indent = line.len() - line.trim_start().len();
        let tab = line.get(..indent)?.find('\t')?;
        Some(Position {
            line: number,
            column: tab + 1,
        })
    });
    match tabbed {
        Some(at) => (at, "a tab may not indent in YAML: use spaces".to_owned()),
        None => (
            at,
            format!("this is not valid YAML: {}", one_line(error.info(), 200)),
        ),
    }
}

/// Open maps and lists.
struct Builder<'a> {
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
    problems: &'a mut Problems,
}

struct Open {
    at: Position,
    body: Body,
}

enum Body {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        /// The line of the first occurrence of each key.
        seen: BTreeMap<String, usize>,
        key: Option<Key>,
    },
}

struct Key {
    at: Position,
    /// `None`: the problem is already reported, and the value is dropped.
    text: Option<String>,
}

impl Builder<'_> {
    /// `None`: the parser cannot continue.
    fn take(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let at = Position {
            line: span.start.line(),
            column: span.start.col() + 1,
        };
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.problem(
                        at,
                        "a second document begins here, and a configuration is one document",
                    );
                    return None;
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_extras(at, anchor, tag.as_deref());
                let value = Value::Scalar {
                    text: text.into_owned(),
                    plain: style == ScalarStyle::Plain,
                };
                self.place(Node { at, value });
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_extras(at, anchor, tag.as_deref());
                self.open(at, Body::List(Vec::new()))?;
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_extras(at, anchor, tag.as_deref());
                let body = Body::Map {
                    entries: Vec::new(),
                    seen: BTreeMap::new(),
                    key: None,
                };
                self.open(at, body)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(_) => {
                self.problem(at, "aliases are not supported: write the value out");
                let value = Value::Broken;
                self.place(Node { at, value });
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Some(())
    }

    fn refuse_extras(&mut self, at: Position, anchor: usize, tag: Option<&Tag>) {
        if anchor > 0 {
            self.problem(at, "anchors are not supported: write each value where it belongs");
        }
        if let Some(tag) = tag {
            let tag = match tag.is_yaml_core_schema() {
                true => format!("!!{}", tag.suffix),
                false => tag.to_string(),
            };
            let tag = one_line(&tag, KEY_BYTES);
            self.problem(at, format!("tags are not supported: leave `{tag}` out"));
        }
    }

    fn open(&mut self, at: Position, body: Body) -> Option<()> {
        if self.open.len() == DEPTH {
            self.problem(at, format!("maps and lists are nested more than {DEPTH} deep"));
            return None;
        }
        self.open.push(Open { at, body });
        Some(())
    }

    fn close(&mut self) {
        let Some(Open { at, body }) = self.open.pop() else {
            return;
        };
        let value = match body {
            Body::List(items) => Value::List(items),
            Body::Map { entries, .. } => Value::Map(entries),
        };
        self.place(Node { at, value });
    }

    /// Adds a finished value to the open map or list: as an element, a key, or the value of a key.
    fn place(&mut self, node: Node) {
        let path = self.path();
        match self.open.last_mut().map(|open| &mut open.body) {
            None => self.root = Some(node),
            Some(Body::List(items)) => items.push(node),
            Some(Body::Map { entries, seen, key }) => match key.take() {
                None => *key = Some(read_key(node, &path, seen, self.problems)),
                Some(Key { at, text: Some(key) }) => entries.push(Entry { at, key, value: node }),
                Some(Key { text: None, .. }) => {}
            },
        }
    }

    fn problem(&mut self, at: Position, message: impl Into<String>) {
        let path = self.path();
        self.problems.add(at, &path, message);
    }

    fn path(&self) -> FieldPath {
        self.open
            .iter()
            .fold(FieldPath::default(), |path, open| match &open.body {
                Body::List(items) => path.item(items.len()),
                Body::Map { key, .. } => match key.as_ref().and_then(|key| key.text.as_ref()) {
                    Some(key) => path.key(key),
                    None => path,
                },
            })
    }
}

fn read_key(
    node: Node,
    path: &FieldPath,
    seen: &mut BTreeMap<String, usize>,
    problems: &mut Problems,
) -> Key {
    let at = node.at;
    let text = match node.value {
        Value::Scalar { text, plain } if plain && text == "<<" => {
            problems.add(at, path, "merge keys are not supported: write the values out");
            None
        }
        Value::Scalar { text, plain } if plain && text.is_empty() => {
            problems.add(at, path, "a key is missing before the colon");
            None
        }
        Value::Scalar { text, .. } => match seen.get(&text) {
            Some(line) => {
                let path = path.key(&text);
                problems.add(
                    at,
                    &path,
                    format!("this key is given twice; the first is in line {line}"),
                );
                None
            }
            None => {
                seen.insert(text.clone(), at.line);
                Some(text)
            }
        },
        Value::Broken => None,
        Value::List(_) | Value::Map(_) => {
            problems.add(at, path, "a key must be text, not a map or a list");
            None
        }
    };
    Key { at, text }
}
