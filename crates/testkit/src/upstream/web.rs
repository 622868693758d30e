//! Serves MCP over HTTP: one thread for each connection. A request whose call tells something
//! before its answer is answered by a stream, any other by JSON.

use super::BANNER;
use super::options::{Bad, Eras};
use super::serving;
use super::state::State;
use super::talk::Talk;
use super::tools::changed;
use super::words::{Era, Request};
use crate::harness::wait_for;
use crate::http::{Connection, Message, NoAnswer};
use serde_json::Value;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A client may keep a connection idle; no test takes as long as this.
const IDLE_LIMIT: Duration = Duration::from_secs(3_600);
/// How long the port may take to be free.
const BIND_LIMIT: Duration = Duration::from_secs(60);
const SESSION: &str = "the-only-session";
const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                      cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

/// Serves `/mcp` on this port of this machine until the process ends.
pub(super) fn serve(state: &Arc<State>, port: u16) -> Result<(), String> {
    if state.options.is(Bad::DiesAtStart) {
        return Err("it dies at its start, as it was told".to_owned());
    }
    // Who had the port before may not have let go of it yet, and somebody may have it meanwhile.
    let listener = match port {
        0 => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(in_words)?,
        _ => wait_for(&format!("port {port} to be free"), BIND_LIMIT, || {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()
        }),
    };
    let address = listener.local_addr().map_err(in_words)?;
    if state.options.with_parent {
        thread::spawn(end_with_parent);
    }
    writeln!(io::stdout(), "{BANNER}http://{address}/mcp").map_err(in_words)?;
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            continue;
        };
        let state = Arc::clone(state);
        thread::spawn(move || converse(&state, stream));
    }
    Ok(())
}

fn end_with_parent() {
    // An error says the same as the end of the input: no one is there any more.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    std::process::exit(0);
}

fn converse(state: &State, stream: TcpStream) {
    let Ok(mut connection) = Connection::new(stream) else {
        return;
    };
    while let Ok(Some(message)) = connection.read(IDLE_LIMIT) {
        let closes = message.closes;
        // What cannot be written is not an error: the client went away.
        let usable = take(state, &mut connection, &message).unwrap_or(false);
        if closes || !usable {
            return;
        }
    }
}

/// Answers one HTTP request; whether the connection can be used again.
pub(super) fn take(
    state: &State,
    connection: &mut Connection,
    message: &Message,
) -> io::Result<bool> {
    let method = message.first_line.split(' ').next().unwrap_or_default();
    match method {
        "POST" => post(state, connection, message),
        "GET" if state.options.eras != Eras::Modern => {
            let mut talk = Web { connection, stream: false, session: false, usable: true };
            talk.begin()?;
            serving::follow(state, &mut talk, &changed())?;
            Ok(false)
        }
        "DELETE" => plain(connection, 204, "").map(|()| true),
        _ => plain(connection, 405, "").map(|()| true),
    }
}

fn post(state: &State, connection: &mut Connection, message: &Message) -> io::Result<bool> {
    let Ok(body) = serde_json::from_str::<Value>(&message.body) else {
        plain(connection, 400, "that is no JSON")?;
        return Ok(true);
    };
    let Some(mut request) = Request::read(&body) else {
        serving::note(state, body);
        plain(connection, 202, "")?;
        return Ok(true);
    };
    request.traceparent = message.header("traceparent").map(str::to_owned);
    let session = request.era == Era::Legacy && request.method == "initialize";
    let mut talk = Web { connection, stream: false, session, usable: true };
    serving::request(state, &request, &mut talk);
    Ok(talk.usable)
}

/// The way back over one connection.
struct Web<'a> {
    connection: &'a mut Connection,
    /// The answer has become a stream.
    stream: bool,
    /// The answer begins a session.
    session: bool,
    /// The next request may come over the same connection.
    usable: bool,
}

impl Web<'_> {
    /// Makes the answer a stream.
    fn begin(&mut self) -> io::Result<()> {
        self.stream = true;
        // Who leaves a stream before its end leaves the connection.
        self.usable = false;
        self.write(EVENTS.as_bytes())
    }

    fn event(&mut self, message: &Value) -> io::Result<()> {
        if !self.stream {
            self.begin()?;
        }
        let event = format!("event: message\ndata: {message}\n\n");
        self.write(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.connection.write(bytes).map_err(broken)
    }
}

impl Talk for Web<'_> {
    fn tell(&mut self, message: &Value) -> io::Result<()> {
        self.event(message)
    }

    fn answer(&mut self, status: u16, message: &Value) -> io::Result<()> {
        if self.stream {
            self.event(message)?;
            self.write(b"0\r\n\r\n")?;
            self.usable = true;
            return Ok(());
        }
        let body = message.to_string();
        let session =
            if self.session { format!("mcp-session-id: {SESSION}\r\n") } else { String::new() };
        let head = format!(
            "HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\n{session}\
             content-length: {}\r\n\r\n",
            body.len()
        );
        // One write: two would wait for each other's acknowledgement.
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body.as_bytes());
        self.write(&bytes)
    }

    fn garble(&mut self, text: &str) -> io::Result<()> {
        let length = text.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{text}"
        );
        self.write(head.as_bytes())
    }

    fn break_off(&mut self) -> io::Result<()> {
        self.usable = false;
        self.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n\
              {\"jsonrpc\": \"2.0\", ",
        )
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.usable = false;
        self.write(bytes)
    }

    fn is_gone(&mut self) -> bool {
        !self.connection.is_open()
    }
}

fn plain(connection: &mut Connection, status: u16, body: &str) -> io::Result<()> {
    let length = body.len();
    let answer = format!("HTTP/1.1 {status} Said\r\ncontent-length: {length}\r\n\r\n{body}");
    connection.write(answer.as_bytes()).map_err(broken)
}

fn broken(error: NoAnswer) -> io::Error {
    io::Error::other(error.to_string())
}

fn in_words(error: io::Error) -> String {
    error.to_string()
}
