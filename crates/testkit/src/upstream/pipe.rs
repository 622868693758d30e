//! Serves MCP over standard input and output: one message a line, each request in a thread of its
//! own.

use super::options::Bad;
use super::serving;
use super::state::State;
use super::talk::Talk;
use super::tools::changed;
use super::words::Request;
use serde_json::Value;
use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::thread;

/// Serves until the input ends, and a client that hangs then ends with it.
pub(super) fn serve(state: &Arc<State>) -> Result<(), String> {
    if state.options.is(Bad::DiesAtStart) {
        return Err("it dies at its start, as it was told".to_owned());
    }
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let state = Arc::clone(state);
        match Request::read(&message) {
            Some(request) => {
                thread::spawn(move || serving::request(&state, &request, &mut Line));
            }
            None => {
                let begins = message["method"] == "notifications/initialized";
                serving::note(&state, message);
                if begins {
                    thread::spawn(move || serving::follow(&state, &mut Line, &changed()));
                }
            }
        }
    }
    Ok(())
}

/// The way back: the one line out.
struct Line;

impl Line {
    /// One write under the lock of standard output, so that lines stay whole.
    fn write(&self, line: &str) -> io::Result<()> {
        let mut output = io::stdout().lock();
        output.write_all(format!("{line}\n").as_bytes())?;
        output.flush()
    }
}

impl Talk for Line {
    fn tell(&mut self, message: &Value) -> io::Result<()> {
        self.write(&message.to_string())
    }

    fn answer(&mut self, _status: u16, message: &Value) -> io::Result<()> {
        self.write(&message.to_string())
    }

    fn garble(&mut self, text: &str) -> io::Result<()> {
        self.write(text)
    }

    fn break_off(&mut self) -> io::Result<()> {
        self.write("{\"jsonrpc\": \"2.0\", ")
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(&String::from_utf8_lossy(bytes))
    }

    fn is_gone(&mut self) -> bool {
        // Who is gone has closed our input, and with it we end.
        false
    }
}
