//! Combines the lines of several drains in one stream; a prefix identifies the drain.

use std::io::{self, Write};

/// Writes whole lines, each with a prefix and in one piece.
pub struct PrefixedWriter {
    prefix: String,
    line: Vec<u8>,
    out: Box<dyn Write + Send>,
}

impl PrefixedWriter {
    /// Puts `prefix` before every line that goes to `out`.
    pub fn new(prefix: String, out: Box<dyn Write + Send>) -> Self {
        Self {
            line: prefix.clone().into_bytes(),
            prefix,
            out,
        }
    }
}

impl Write for PrefixedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::replace(&mut self.line, self.prefix.clone().into_bytes());
                self.out.write_all(&line)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.0.lock().unwrap().push(text);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_is_written_at_once_with_its_prefix() {
        let kept = Kept::default();
        let mut lines = PrefixedWriter::new("a  ".to_owned(), Box::new(kept.clone()));
        write!(lines, "one {}\ntwo", 1).unwrap();
        writeln!(lines, " and half").unwrap();
        assert_eq!(*kept.0.lock().unwrap(), ["a  one 1\n", "a  two and half\n"]);
    }
}
