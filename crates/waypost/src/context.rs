//! What every command is given: how to print and where the server is.

use crate::client::Client;
use crate::exit::Failure;
use crate::output::Output;

/// The global options of one call of `waypost`.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// How to print.
    pub(crate) output: Output,
    /// Where the server is.
    pub(crate) server: String,
}

impl Context {
    /// A client of that server; nothing is sent yet.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Client::new(&self.server)
    }
}
