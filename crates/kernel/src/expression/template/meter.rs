//! Work budget of a render. Everything that reads or makes a value pays for its size first, so
//! neither memory nor time can exceed the budget, whatever the template says.

use minijinja::{Error, ErrorKind, State, Value};
use std::fmt::{self, Write};

/// How many bytes of values one render reads and makes. A text can look through the largest output
/// of a tool many times; one that uses all of this takes about a second.
pub(super) const WORK_MAX: u64 = 32 * 1024 * 1024;
/// How long a rendered text may be.
pub(super) const RENDERED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Fixed cost of one value, in addition to its bytes.
pub(super) const NODE: u64 = 32;
/// Fixed cost of one written piece, in addition to its bytes.
const PIECE: u64 = 32;

pub(super) struct Meter {
    work: u64,
    room: u64,
    /// The bytes of the value that is being measured.
    bytes: u64,
}

impl Default for Meter {
    fn default() -> Self {
        Self { work: WORK_MAX, room: RENDERED_BYTES_MAX as u64, bytes: 0 }
    }
}

impl Meter {
    /// The meter of this render.
    pub(super) fn of<'s>(state: &'s mut State<'_, '_>) -> &'s mut Self {
        state.get_or_insert_extension_with(Self::default)
    }

    /// Takes so much of what is left.
    pub(super) fn pay(&mut self, cost: u64) -> Result<(), Error> {
        self.work = self.work.checked_sub(cost).ok_or_else(spent)?;
        Ok(())
    }

    /// Pays for the value itself: a text's bytes, a list's places, but not what is in them.
    pub(super) fn flat(&mut self, value: &Value) -> Result<u64, Error> {
        let size = match value.as_str() {
            Some(text) => text.len() as u64,
            None => NODE * value.len().unwrap_or(0) as u64,
        };
        self.pay(NODE + size)?;
        Ok(size)
    }

    /// Pays for a value that is taken apart: each character of a text becomes a value. Gives the
    /// number of parts.
    pub(super) fn each(&mut self, value: &Value) -> Result<u64, Error> {
        let parts = match value.as_str() {
            Some(text) => text.len(),
            None => value.len().unwrap_or(0),
        };
        let parts = parts as u64;
        self.pay(parts.saturating_add(1).saturating_mul(NODE))?;
        Ok(parts)
    }

    /// Pays for the value with all that is in it, as it would be written. Gives the number of
    /// bytes. What is in it many times is counted as often, up to the budget.
    pub(super) fn whole(&mut self, value: &Value) -> Result<u64, Error> {
        self.pay(NODE)?;
        self.bytes = 0;
        let written = match value.as_str() {
            Some(text) => self.write_str(text),
            None => write!(self, "{value}"),
        };
        written.map_err(|_| spent())?;
        Ok(self.bytes)
    }

    /// Pays for a value that is written into the text.
    pub(super) fn emitted(&mut self, value: &Value) -> Result<(), Error> {
        let bytes = self.whole(value)?;
        self.room = self.room.checked_sub(bytes).ok_or_else(|| {
            let what = format!("the text becomes longer than {RENDERED_BYTES_MAX} bytes");
            Error::new(ErrorKind::InvalidOperation, what)
        })?;
        Ok(())
    }
}

impl Write for Meter {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let bytes = piece.len() as u64;
        self.bytes = self.bytes.saturating_add(bytes);
        self.pay(PIECE + bytes).map_err(|_| fmt::Error)
    }
}

fn spent() -> Error {
    let what = format!("the text is too much work: it handles more than {WORK_MAX} bytes");
    Error::new(ErrorKind::InvalidOperation, what)
}
