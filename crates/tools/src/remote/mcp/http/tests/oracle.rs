//! Ours against another that is well tried: the same bytes, the same answer. What ours takes, the
//! other takes too. Of transfer codings ours takes `chunked` alone. Ours has three limits that are
//! wider (128 headers instead of 100, and 64 KiB instead of 16 for extensions and for trailers); no
//! answer here comes near them.

use super::bytewise::{Whole, answered, exchanged};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::duplex;

/// How many answers are tried.
const ANSWERS: u64 = 600;

/// Numbers that are the same every time.
struct Dice(u64);

impl Dice {
    /// A number below this one.
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % below as u64) as usize
    }

    /// One of these.
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())]
    }

    /// Some bytes of these.
    fn bytes(&mut self, from: &[u8], below: usize) -> Vec<u8> {
        (0..self.roll(below)).map(|_| self.pick(from)).collect()
    }
}

/// What hyper makes of an answer. It comes in one piece: cut, it does not see the end of a head
/// whose lines end in different ways.
async fn theirs(answer: &[u8]) -> Result<Whole, String> {
    let (near, far) = duplex(64 * 1024);
    let (mut sender, connection) = http1::handshake(TokioIo::new(near)).await.unwrap();
    let asking = async move {
        let request = Request::post("/mcp").body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?;
        Ok::<_, String>(Whole::new(head.status, &head.headers, &body.to_bytes()))
    };
    // How the connection ends is of no interest: the answer tells.
    let pieces = [answer];
    let (read, _, ()) = tokio::join!(asking, connection, answered(far, &pieces));
    read
}

/// An answer as it should be.
fn well_formed(dice: &mut Dice) -> Vec<u8> {
    let interim = ["", "", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 X\r\nlink: </a>\r\n\r\n"];
    let mut answer = dice.pick(&interim).as_bytes().to_vec();
    let is_old = dice.roll(8) == 0;
    let status = dice.pick(&[200, 200, 200, 202, 204, 304, 400, 404, 500]);
    let version = if is_old { "1.0" } else { "1.1" };
    let reason = dice.pick(&["", " ", " OK", " Not so good"]);
    answer.extend(format!("HTTP/{version} {status}{reason}\r\n").into_bytes());
    for _ in 0..dice.roll(6) {
        let names = ["x-a", "X-B", "content-type", "connection", "Mcp-Session-Id"];
        answer.extend(dice.pick(&names).as_bytes());
        answer.extend(dice.pick(&[":", ": ", ":\t "]).as_bytes());
        answer.extend(dice.bytes(b"abc,; =\"keep-alive\tclose\xfc", 20));
        answer.extend(b"\r\n");
    }
    let kinds = if is_old { 2 } else { 5 };
    let data = dice.bytes(b"abc\r\n\0\xff0123;{}", 60);
    let has_no_body = matches!(status, 204 | 304);
    match dice.roll(kinds) {
        _ if has_no_body => answer.extend(b"\r\n"),
        0 => {
            let length = data.len();
            let again = dice.pick(&["", ", {}", "\r\nContent-Length: {}"]);
            let again = again.replace("{}", &length.to_string());
            answer.extend(format!("content-length: {length}{again}\r\n\r\n").into_bytes());
            answer.extend(data);
        }
        1 => {
            answer.extend(b"\r\n");
            answer.extend(data);
        }
        _ => {
            let heads: [&[u8]; 3] = [
                b"transfer-encoding: chunked\r\n\r\n",
                b"Transfer-Encoding: Chunked\r\n\r\n",
                b"content-length: 7\r\ntransfer-encoding: chunked\r\n\r\n",
            ];
            answer.extend(dice.pick(&heads));
            answer.extend(chunked(dice, &data));
        }
    }
    answer
}

/// A body in chunks.
fn chunked(dice: &mut Dice, mut data: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while !data.is_empty() {
        let (chunk, rest) = data.split_at(1 + dice.roll(data.len()));
        data = rest;
        let zeros = dice.pick(&["", "", "00"]);
        let more = dice.pick(&["", "", " ", ";a", ";a=\"b;c\"", "\t; a"]);
        body.extend(format!("{zeros}{:x}{more}\r\n", chunk.len()).into_bytes());
        body.extend(chunk);
        body.extend(b"\r\n");
    }
    body.extend(b"0\r\n");
    body.extend(dice.pick(&["", "", "x-sum: 1\r\n", "a:\r\nB_c: \tdef\r\n"]).as_bytes());
    body.extend(b"\r\n");
    body
}

/// The same answer with something wrong in it, most likely.
fn mutated(dice: &mut Dice, mut answer: Vec<u8>) -> Vec<u8> {
    const ODD: &[u8] = b"\r\n\r\n :;,0123456789afAFx\t\0\x7f\xff-+";
    for _ in 0..1 + dice.roll(3) {
        let at = dice.roll(answer.len() + 1);
        let byte = dice.pick(ODD);
        match dice.roll(5) {
            0 => answer.insert(at, byte),
            1 if at < answer.len() => answer[at] = byte,
            2 if at < answer.len() => drop(answer.remove(at)),
            3 => {
                let end = answer.len().min(at + dice.roll(30));
                let again = answer[at..end].to_vec();
                drop(answer.splice(at..at, again));
            }
            _ if dice.roll(4) == 0 => answer.truncate(at),
            _ => answer.push(byte),
        }
    }
    answer
}

/// The answer in pieces.
fn cut<'a>(dice: &mut Dice, mut answer: &'a [u8]) -> Vec<&'a [u8]> {
    let most = dice.pick(&[1, 10, 100, 10_000]);
    let mut pieces = Vec::new();
    while !answer.is_empty() {
        let (piece, rest) = answer.split_at((1 + dice.roll(most)).min(answer.len()));
        pieces.push(piece);
        answer = rest;
    }
    pieces
}

#[tokio::test]
async fn well_formed_answers_are_read_as_another_reads_them() {
    for seed in 0..ANSWERS {
        let mut dice = Dice(seed);
        let answer = well_formed(&mut dice);
        let pieces = cut(&mut dice, &answer);
        let (ours, theirs) = (exchanged(&pieces).await.0, theirs(&answer).await);
        assert!(ours.is_ok(), "{seed}: {ours:?} of {}", answer.escape_ascii());
        assert_eq!(ours, theirs, "{seed}: {}", answer.escape_ascii());
    }
}

#[tokio::test]
async fn what_is_taken_of_broken_answers_another_takes_too() {
    let mut taken = 0;
    for seed in 0..ANSWERS {
        let mut dice = Dice(seed);
        let answer = well_formed(&mut dice);
        let answer = mutated(&mut dice, answer);
        let pieces = cut(&mut dice, &answer);
        let ours = exchanged(&pieces).await.0;
        if ours.is_ok() {
            taken += 1;
            assert_eq!(ours, theirs(&answer).await, "{seed}: {}", answer.escape_ascii());
        }
    }
    // Some mistakes are none, and some are.
    assert!((1..ANSWERS).contains(&taken), "{taken}");
}
