//! A small MCP server that does what it should not, on request: the upstream that nobody wishes
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

use options::Way;
use state::State;
use std::sync::Arc;

pub use options::{Bad, Options};
pub use process::{Upstream, program};

/// What the program says before its address.
pub const BANNER: &str = "upstream listening on ";

/// Serves until the process is told to end.
pub fn run(options: Options) -> Result<(), String> {
    let state = Arc::new(State::new(options));
    match state.options.way {
        Way::Http { port } => web::serve(&state, port),
        Way::Stdio => pipe::serve(&state),
    }
}
