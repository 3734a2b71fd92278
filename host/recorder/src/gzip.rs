//! Writes a gzip file bit by bit (RFC 1952). flate2 compresses; its own checksum does not use the CPU's instructions for it, and
//! would take a tenth of the CPU time of a recording. A file that is not finished has no end, as after a kill.

use std::io::{self, Write};

use flate2::write::ZlibEncoder;
use flate2::{Compress, Compression};

/// Deflate, without a name and a time; compressed as fast as possible, on an unknown operating system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// The compression window, as a power of two: 8 KiB. With the largest, 15, a recording would be a tenth smaller and take 100 KiB
/// more of the driver's memory.
const WINDOW_BITS: u8 = 13;

/// See the module.
pub(crate) struct Gzip<W: Write> {
    /// It writes Deflate without a frame, as it is told below: only this encoder lets its window be chosen.
    body: ZlibEncoder<W>,
    checksum: crc32fast::Hasher,
    /// Bytes before compression, modulo 2³², as the file's end has them.
    length: u32,
}

impl<W: Write> Gzip<W> {
    pub(crate) fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(&HEADER)?;
        let deflate = Compress::new_with_window_bits(Compression::fast(), false, WINDOW_BITS);
        Ok(Self {
            body: ZlibEncoder::new_with_compress(out, deflate),
            checksum: crc32fast::Hasher::new(),
            length: 0,
        })
    }

    /// What it writes to.
    pub(crate) fn get_ref(&self) -> &W {
        self.body.get_ref()
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        let mut out = self.body.finish()?;
        out.write_all(&self.checksum.finalize().to_le_bytes())?;
        out.write_all(&self.length.to_le_bytes())
    }
}

impl<W: Write> Write for Gzip<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.body.write(bytes)?;
        self.checksum.update(bytes.get(..taken).unwrap_or_default());
        self.length = self.length.wrapping_add(taken as u32);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.body.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn others_read_what_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.gz");
        let mut gzip = Gzip::begin(File::create(&path).unwrap()).unwrap();
        for part in ["one line\n", "", "and another\n"] {
            gzip.write_all(part.as_bytes()).unwrap();
            gzip.flush().unwrap();
        }
        gzip.finish().unwrap();
        let mut file = std::fs::read(&path).unwrap();
        // It checks the sum and the length.
        let read = |file: &[u8]| io::read_to_string(GzDecoder::new(file));
        assert_eq!(read(&file).unwrap(), "one line\nand another\n");
        for wrong in [8, 4] {
            let place = file.len() - wrong;
            file[place] ^= 1;
            assert!(read(&file).is_err());
            file[place] ^= 1;
        }
    }
}
