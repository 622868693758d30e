//! How a request's outcome is returned to the client, over any transport.

use serde_json::Value;
use std::io;

/// The way back for one request.
pub(super) trait Talk {
    /// Something before the answer.
    fn tell(&mut self, message: &Value) -> io::Result<()>;
    /// The answer. Over HTTP it has a status.
    fn answer(&mut self, status: u16, message: &Value) -> io::Result<()>;
    /// Something that is no message, in the place of an answer.
    fn garble(&mut self, text: &str) -> io::Result<()>;
    /// The beginning of an answer and nothing more.
    fn break_off(&mut self) -> io::Result<()>;
    /// These bytes in the place of an answer, whatever they are.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Whether the client has gone away.
    fn is_gone(&mut self) -> bool;
}
