//! Standard output sink.

use crate::lines::Lines;
use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, PoisonError};

/// Standard output.
pub(crate) struct StdoutLines;

/// There is one standard output, however many sinks write to it.
static BROKEN: Mutex<Broken> = Mutex::new(Broken(false));

impl Lines for StdoutLines {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut broken = BROKEN.lock().unwrap_or_else(PoisonError::into_inner);
        broken.write(&mut io::stdout().lock(), lines)
    }
}

/// Whether the last line broke off, as it does on a full disk: the next one must not be written
/// behind it.
struct Broken(bool);

impl Broken {
    /// Writes these lines, after the end of one that broke off.
    fn write(&mut self, output: &mut impl Write, lines: &[u8]) -> io::Result<()> {
        if self.0 {
            self.put(output, b"\n")?;
        }
        self.put(output, lines)?;
        output.flush()
    }

    fn put(&mut self, output: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match output.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.0 = bytes[..count].last() != Some(&b'\n');
                    bytes = &bytes[count..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes, then no more until there is room again.
    struct Full {
        written: Vec<u8>,
        room: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            let count = bytes.len().min(self.room);
            self.room -= count;
            self.written.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_torn_line_is_terminated_before_the_next() {
        let mut output = Full { written: Vec::new(), room: 9 };
        let mut broken = Broken(false);
        broken.write(&mut output, b"one\n").unwrap();
        assert!(broken.write(&mut output, b"two\nthree\n").is_err());
        assert!(broken.write(&mut output, b"two\n").is_err(), "there is still no room");
        output.room = 100;
        broken.write(&mut output, b"two\n").unwrap();
        broken.write(&mut output, b"three\n").unwrap();
        let written = String::from_utf8(output.written).unwrap();
        assert_eq!(written, "one\ntwo\nt\ntwo\nthree\n");
    }

    #[test]
    fn an_unstarted_line_needs_no_terminator() {
        let mut output = Full { written: Vec::new(), room: 4 };
        let mut broken = Broken(false);
        broken.write(&mut output, b"one\n").unwrap();
        assert!(broken.write(&mut output, b"two\n").is_err());
        output.room = 100;
        broken.write(&mut output, b"two\n").unwrap();
        assert_eq!(output.written, b"one\ntwo\n");
    }
}
