//! A small MCP server that does what it should not, on request: the upstream that no one wishes
//! for. It speaks both eras, over HTTP and over standard input and output, with threads and
//! blocking sockets, and shares no code with the product.
//!
//! What goes wrong in a call is a tool's name (`tools.rs`), what goes wrong with lists and lines is
//! a flag (`options.rs`).

mod options;
mod words;
mod state;
mod talk;
mod tools;
mod serving;
mod web;
mod pipe;
mod process;

use crate::http::{Connection, Message};
use options::Way;
use state::State;
use std::sync::Arc;

pub use options::{Bad, Options};
pub use process::Upstream;

/// What the program says before its address.
pub const BANNER: &str = "upstream listening on ";

/// Serves until the process has to end.
pub fn run(options: Options) -> Result<(), String> {
    let state = Arc::new(State::new(options));
    match state.options.way {
        Way::Http { port } => web::serve(&state, port),
        Way::Stdio => pipe::serve(&state),
    }
}

/// One that behaves well, without a socket of its own: for a server that has more than this.
pub(crate) struct Endpoint {
    state: State,
}

impl Endpoint {
    /// It was asked nothing yet.
    pub(crate) fn new() -> Self {
        let options = Options::read(std::iter::empty());
        let options = options.unwrap_or_else(|error| panic!("no flags are wrong flags: {error}"));
        Self { state: State::new(options) }
    }

    /// Answers one request; whether its connection can be used for another.
    pub(crate) fn take(&self, connection: &mut Connection, message: &Message) -> bool {
        // What cannot be written is not an error: the client went away.
        web::take(&self.state, connection, message).unwrap_or(false)
    }
}
