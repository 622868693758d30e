//! The HTTP server of the fakes: one thread for each connection.

use super::act::{Act, Break, Failure};
use super::anthropic::Anthropic;
use super::gemini::Gemini;
use super::names::{act_of, name_of};
use super::openai::OpenAi;
use super::wire::{End, ModelReply, ModelRequest, Piece, Wire};
use super::{KEY, SCRIPTED, Seen, State};
use crate::http::{Connection, Message, NoAnswer};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// A client may keep a connection idle; no test takes as long as this.
const IDLE_LIMIT: Duration = Duration::from_secs(3_600);
const POLL: Duration = Duration::from_millis(5);
/// More than any client should read.
const FLOOD_PARTS: usize = 4_096;
const FLOOD_PART_BYTES: usize = 64 * 1024;
/// The date of every answer, and one that is half a minute later.
const DATE: &str = "Sun, 15 Nov 2026 08:00:00 GMT";
const LATER: &str = "Sun, 15 Nov 2026 08:00:30 GMT";
const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                      cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

type Written = Result<Usable, NoAnswer>;

/// Whether a connection can be used again.
enum Usable {
    Yes,
    No,
}

/// Serves one connection to its end.
pub(super) fn converse(state: &State, stream: TcpStream) {
    let Ok(mut connection) = Connection::new(stream) else {
        return;
    };
    while let Ok(Some(message)) = connection.read(IDLE_LIMIT) {
        let closes = message.closes;
        // What cannot be written is not an error: the client went away.
        let usable = take(state, &mut connection, &message).unwrap_or(Usable::No);
        if closes || matches!(usable, Usable::No) {
            return;
        }
    }
}

fn take(state: &State, connection: &mut Connection, message: &Message) -> Written {
    let path = message.first_line.split(' ').nth(1).unwrap_or_default();
    let body: Value = serde_json::from_str(&message.body).unwrap_or_default();
    let headers = message.headers.clone();
    state.see(Seen { path: path.to_owned(), headers, body: body.clone() });
    let wire: &dyn Wire = if path.ends_with("/chat/completions") {
        &OpenAi
    } else if path.ends_with("/messages") {
        &Anthropic
    } else if path.contains("/models/") {
        &Gemini
    } else {
        return json_answer(connection, 404, &[], &json!({"detail": "Not Found"}));
    };
    match wire.key(message) {
        Some(KEY) => {}
        other => {
            let failure = Failure::WrongKey(other.unwrap_or("none").to_owned());
            return fail(connection, wire, &failure);
        }
    }
    let request = match wire.read(message, &body) {
        Ok(request) => request,
        Err(why) => return fail(connection, wire, &Failure::Bad(why)),
    };
    let act = match name_of(&request.model) {
        SCRIPTED => state.next_act().unwrap_or(Act::Fails(Failure::Overloaded)),
        _ => act_of(&request),
    };
    perform(state, connection, wire, &request, act)
}

fn perform(
    state: &State,
    connection: &mut Connection,
    wire: &dyn Wire,
    request: &ModelRequest,
    act: Act,
) -> Written {
    let plain = |text: String, end: End| ModelReply { text, calls: Vec::new(), thinks: false, end };
    let reply = match act {
        Act::Says(text) => plain(text, End::Done),
        Act::Calls { text, calls, thinks } => ModelReply { text, calls, thinks, end: End::Done },
        Act::Refuses(text) => plain(text, End::Refused),
        Act::Stops(text) => plain(text, End::Length),
        Act::Fails(failure) => return fail(connection, wire, &failure),
        Act::Breaks(how) => {
            let reply = plain("Hello there, dear friend.".to_owned(), End::Done);
            return break_down(state, connection, wire, request, &reply, how);
        }
    };
    if request.stream {
        stream(connection, &wire.pieces(request, &reply))
    } else {
        json_answer(connection, 200, &[], &wire.whole(request, &reply))
    }
}

/// Begins to say something and does not come to its end.
fn break_down(
    state: &State,
    connection: &mut Connection,
    wire: &dyn Wire,
    request: &ModelRequest,
    reply: &ModelReply,
    how: Break,
) -> Written {
    let pieces = wire.pieces(request, reply);
    let begun = &pieces[..pieces.len() / 2];
    match how {
        Break::Whole => return json_answer(connection, 200, &[], &wire.whole(request, reply)),
        Break::Page => return page(connection),
        Break::Elsewhere => {
            let place = ("location", "/stolen");
            return json_answer(connection, 302, &[place], &json!({}));
        }
        Break::Error if !request.stream => return fail(connection, wire, &Failure::Overloaded),
        _ if !request.stream => return broken_whole(state, connection, how),
        Break::Cut => return stream(connection, begun),
        Break::Dropped | Break::Nonsense | Break::Error | Break::Silence | Break::Flood => {}
    }
    connection.write(EVENTS.as_bytes())?;
    for piece in begun {
        chunk(connection, &piece.bytes())?;
    }
    match how {
        Break::Nonsense => chunk(connection, "data: {\"choi\n\n")?,
        Break::Error => chunk(connection, &wire.broken().bytes())?,
        Break::Silence => wait_until_gone(state, connection),
        Break::Flood => {
            chunk(connection, "data: ")?;
            let part = "x".repeat(FLOOD_PART_BYTES);
            for _ in 0..FLOOD_PARTS {
                chunk(connection, &part)?;
            }
        }
        Break::Cut | Break::Dropped | Break::Page | Break::Whole | Break::Elsewhere => {}
    }
    // The end of the stream is never written: the connection ends instead.
    Ok(Usable::No)
}

/// The same for an answer that is no stream.
fn broken_whole(state: &State, connection: &mut Connection, how: Break) -> Written {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n";
    connection.write(format!("{head}{{\"choi").as_bytes())?;
    match how {
        Break::Silence => wait_until_gone(state, connection),
        Break::Nonsense => connection.write(" ".repeat(994).as_bytes())?,
        _ => {}
    }
    Ok(Usable::No)
}

fn wait_until_gone(state: &State, connection: &Connection) {
    while connection.is_open() {
        thread::sleep(POLL);
    }
    state.leave();
}

fn fail(connection: &mut Connection, wire: &dyn Wire, failure: &Failure) -> Written {
    let (status, body) = wire.failure(failure);
    let headers: &[(&str, &str)] = match failure {
        Failure::RateLimited => &[("retry-after", "7")],
        Failure::RateLimitedUntil => &[("retry-after", LATER)],
        _ => &[],
    };
    json_answer(connection, status, headers, &body)
}

fn stream(connection: &mut Connection, pieces: &[Piece]) -> Written {
    connection.write(EVENTS.as_bytes())?;
    for piece in pieces {
        chunk(connection, &piece.bytes())?;
    }
    connection.write(b"0\r\n\r\n")?;
    Ok(Usable::Yes)
}

fn chunk(connection: &mut Connection, text: &str) -> Result<(), NoAnswer> {
    connection.write(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

fn page(connection: &mut Connection) -> Written {
    let page = "<html><body>It works!</body></html>";
    let length = page.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html";
    connection.write(format!("{head}\r\ncontent-length: {length}\r\n\r\n{page}").as_bytes())?;
    Ok(Usable::Yes)
}

fn json_answer(
    connection: &mut Connection,
    status: u16,
    headers: &[(&str, &str)],
    body: &Value,
) -> Written {
    let body = body.to_string();
    let lines: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let answer = format!(
        "HTTP/1.1 {status} Said\r\ndate: {DATE}\r\ncontent-type: application/json\r\n{lines}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write(answer.as_bytes())?;
    Ok(Usable::Yes)
}
