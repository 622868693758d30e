//! Answers of gRPC in any pieces, and hostile ones out of a seed. How to hunt for longer is in
//! `docs/reference/fuzzing.md`.

use super::*;
use futures::executor::block_on;
use futures::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use std::collections::BTreeSet;
use std::io;
use testkit::fuzz::hunt::Hunt;
use testkit::sim::rng::Rng;

/// How many inputs the test command looks at.
const STREAMS: u64 = 4_000;
const ANSWERS: u64 = 8_000;
/// A limit that every stream keeps, though not every length that one claims.
const ROOMY_BYTES: usize = 1 << 20;
/// Lengths that are claimed: at the edges of what fits, and beyond.
const CLAIMED: &[u32] = &[1, 255, 256, 70_000, 1 << 20, 1 << 24, i32::MAX as u32, u32::MAX];

/// The form of an answer, in the first byte of an input: what has a status, and how it ends. The
/// upper half is the size of its pieces.
const STATUS_IN_HEAD: u8 = 1;
const HAS_TRAILERS: u8 = 2;
const STATUS_IN_TRAILERS: u8 = 4;
const BREAKS: u8 = 8;

fn messages(bytes_max: usize) -> Messages {
    Messages { held: BytesMut::new(), bytes_left: bytes_max }
}

#[test]
fn messages_decode_the_same_at_any_chunking() {
    let sent = [&b""[..], b"a", &[7; 3_000]];
    let bytes: Vec<u8> = sent.iter().flat_map(|message| framed(message)).collect();
    for size in [1, 2, 5, 6, 1_000, bytes.len()] {
        let mut read = messages(bytes.len());
        let mut came = Vec::new();
        for piece in bytes.chunks(size) {
            read.add(piece).unwrap();
            while let Some(message) = read.first().unwrap() {
                came.push(message);
            }
        }
        assert_eq!(came, sent, "in pieces of {size}");
        assert!(read.held.is_empty());
    }
}

#[test]
fn oversized_or_invalid_messages_are_refused_at_once() {
    for (bytes, is_too_large) in [
        // The length alone says it.
        (&b"\x00\x00\x00\x01\x00"[..], true),
        (b"\x00\xff\xff\xff\xff", true),
        (b"\x01\x00\x00\x00\x01a", false),
        (b"\x07\x00\x00\x00\x01a", false),
    ] {
        let mut read = messages(100);
        read.add(bytes).unwrap();
        match read.first().unwrap_err() {
            StreamError::TooLarge => assert!(is_too_large, "{bytes:?}"),
            StreamError::Malformed(_) => assert!(!is_too_large, "{bytes:?}"),
            other => panic!("{other:?}"),
        }
    }
    let mut read = messages(3);
    assert!(matches!(read.add(b"four"), Err(StreamError::TooLarge)));
}

#[test]
fn a_timeout_has_at_most_eight_digits() {
    assert_eq!(timeout(8_000), "8000m");
    assert_eq!(timeout(100_000_000), "100000S");
    assert_eq!(timeout(u64::MAX), "99999999S");
}

/// How reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// Behind a message, or before the first one.
    Whole,
    /// Inside of a message.
    Cut,
    TooLarge,
    Malformed,
    Lost,
}

impl End {
    fn of(broken: &StreamError) -> Self {
        match broken {
            StreamError::TooLarge => End::TooLarge,
            StreamError::Lost(_) => End::Lost,
            StreamError::CutOff => End::Cut,
            StreamError::Malformed(_) => End::Malformed,
        }
    }
}

/// What came of a stream.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    messages: Vec<Bytes>,
    end: End,
}

/// The same by the rules of the format, all at once.
fn expected(bytes: &[u8], bytes_max: usize) -> Came {
    let mut messages = Vec::new();
    let mut at = 0;
    let end = loop {
        let rest = &bytes[at..];
        if rest.is_empty() {
            break End::Whole;
        }
        let Some(([flag, length @ ..], rest)) = rest.split_first_chunk::<PREFIX_BYTES>() else {
            break End::Cut;
        };
        if *flag != 0 {
            break End::Malformed;
        }
        let length = u32::from_be_bytes(*length) as usize;
        at += PREFIX_BYTES + length;
        if at > bytes_max {
            break End::TooLarge;
        }
        let Some(message) = rest.get(..length) else { break End::Cut };
        messages.push(Bytes::copy_from_slice(message));
    };
    Came { messages, end }
}

/// What is read of these pieces. However long a message is said to be, no more is held than came.
fn read<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, bytes_max: usize) -> Result<Came, String> {
    let mut reader = messages(bytes_max);
    let mut came = Vec::new();
    let mut came_bytes = 0;
    let ended =
        |messages: Vec<Bytes>, broken: &StreamError| Came { messages, end: End::of(broken) };
    for piece in pieces {
        if let Err(broken) = reader.add(piece) {
            return Ok(ended(came, &broken));
        }
        came_bytes += piece.len();
        // A buffer that is too small is made twice as large.
        let held = reader.held.capacity();
        let held_max = 2 * came_bytes + 64;
        if held > held_max || came_bytes > bytes_max {
            return Err(format!("{held} bytes are held of {came_bytes}, {bytes_max} may come"));
        }
        loop {
            match reader.first() {
                Ok(Some(message)) => came.push(message),
                Ok(None) => break,
                Err(broken) => return Ok(ended(came, &broken)),
            }
        }
    }
    let end = if reader.held.is_empty() { End::Whole } else { End::Cut };
    Ok(Came { messages: came, end })
}

fn arbitrary(rng: &mut Rng, count: u64) -> Vec<u8> {
    (0..count).map(|_| rng.draw() as u8).collect()
}

/// Some messages in their frames; most such streams are damaged.
fn made(rng: &mut Rng) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for _ in 0..rng.below(4) {
        let length_max = if rng.chance(5) { 120 } else { 12 };
        let length = rng.below(length_max);
        bytes.extend(framed(&arbitrary(rng, length)));
    }
    match rng.below(6) {
        0 => {
            let kept = rng.below(bytes.len() as u64 + 1) as usize;
            bytes.truncate(kept);
        }
        1 => {
            let count = rng.below(20);
            bytes.extend(arbitrary(rng, count));
        }
        2 => {
            let claimed = rng.pick(CLAIMED).copied().unwrap_or_default();
            bytes.push(0);
            bytes.extend(claimed.to_be_bytes());
            bytes.push(7);
        }
        3 => bytes.extend(b"\x01\x00\x00\x00\x01a"),
        4 => {
            let at = rng.below(bytes.len() as u64) as usize;
            let byte = rng.draw() as u8;
            if let Some(changed) = bytes.get_mut(at) {
                *changed = byte;
            }
        }
        _ => {}
    }
    bytes
}

/// Reads a stream in two pieces cut at every byte, and byte by byte.
fn in_all_pieces(bytes: &[u8], bytes_max: usize) -> Result<End, String> {
    let expected = expected(bytes, bytes_max);
    let wrong = |came: &Came, how: &str| {
        Err(format!("{how}, of at most {bytes_max} bytes: {came:?} and not {expected:?}"))
    };
    for at in 0..=bytes.len() {
        let (first, second) = bytes.split_at(at);
        let came = read([first, second], bytes_max)?;
        if came != expected {
            return wrong(&came, &format!("cut at {at}"));
        }
    }
    let came = read(bytes.chunks(1), bytes_max)?;
    if came != expected {
        return wrong(&came, "byte by byte");
    }
    Ok(expected.end)
}

/// A stream that has more than it may is never taken for one that ended.
fn beyond(bytes: &[u8], bytes_max: usize) -> Result<(), String> {
    let came = read(bytes.chunks(3), bytes_max)?;
    let is_refused = matches!(came.end, End::TooLarge | End::Malformed);
    let all = expected(bytes, usize::MAX).messages;
    match is_refused && all.starts_with(&came.messages) {
        true => Ok(()),
        false => Err(format!("of at most {bytes_max} bytes: {came:?}")),
    }
}

#[test]
fn random_bytes_decode_the_same_at_any_chunking() {
    let mut ends = BTreeSet::new();
    let looked = Hunt::new("grpc frames", STREAMS).run(made, |bytes: &Vec<u8>| {
        for bytes_max in [bytes.len(), bytes.len() + 3, ROOMY_BYTES] {
            ends.insert(in_all_pieces(bytes, bytes_max)?);
        }
        (0..bytes.len()).try_for_each(|bytes_max| beyond(bytes, bytes_max))
    });
    for end in [End::Whole, End::Cut, End::TooLarge, End::Malformed] {
        assert!(looked < 1_000 || ends.contains(&end), "of {looked} streams none is {end:?}");
    }
}

fn with_status(has_status: bool) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-other", HeaderValue::from_static("0"));
    if has_status {
        headers.insert(STATUS, HeaderValue::from_static("0"));
    }
    headers
}

/// An answer of this form whose head is there.
fn answer(form: u8, bytes: &[u8], bytes_max: usize) -> Answer {
    let pieces = bytes.chunks(1 + usize::from(form >> 4));
    let pieces = pieces.map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece))));
    let mut frames: Vec<Result<Frame<Bytes>, io::Error>> = pieces.collect();
    if form & BREAKS != 0 {
        frames.push(Err(io::Error::other("the connection broke")));
    }
    if form & HAS_TRAILERS != 0 {
        frames.push(Ok(Frame::trailers(with_status(form & STATUS_IN_TRAILERS != 0))));
    }
    Answer {
        status: StatusCode::OK,
        headers: with_status(form & STATUS_IN_HEAD != 0),
        body: Body::wrap(StreamBody::new(stream::iter(frames))),
        trailers: HeaderMap::new(),
        messages: messages(bytes_max),
    }
}

/// How such an answer ends: a call without a status is not over, whatever came of it.
fn expected_answer(form: u8, bytes: &[u8], bytes_max: usize) -> Came {
    let Came { messages, end } = expected(bytes, bytes_max);
    let behind = HAS_TRAILERS | STATUS_IN_TRAILERS;
    let has_status = form & STATUS_IN_HEAD != 0 || form & behind == behind;
    let end = match end {
        End::Whole | End::Cut if form & BREAKS != 0 => End::Lost,
        End::Whole if !has_status => End::Cut,
        end => end,
    };
    Came { messages, end }
}

#[test]
fn a_call_ends_only_after_complete_messages_and_a_status() {
    let make = |rng: &mut Rng| {
        let form = rng.draw() as u8;
        [vec![form], made(rng)].concat()
    };
    let mut ends = BTreeSet::new();
    let looked = Hunt::new("grpc answers", ANSWERS).run(make, |input: &Vec<u8>| {
        let Some((form, bytes)) = input.split_first() else { return Ok(()) };
        let bytes_max = bytes.len() + 3;
        let mut answer = answer(*form, bytes, bytes_max);
        let mut came = Vec::new();
        let end = loop {
            match block_on(answer.message()) {
                Ok(Some(message)) => came.push(message),
                Ok(None) => break End::Whole,
                Err(broken) => break End::of(&broken),
            }
        };
        let came = Came { messages: came, end };
        let expected = expected_answer(*form, bytes, bytes_max);
        if came != expected {
            return Err(format!("{came:?} and not {expected:?}"));
        }
        if end == End::Whole && answer.ending().is_none() {
            return Err("it is over without a status".to_owned());
        }
        ends.insert(end);
        Ok(())
    });
    for end in [End::Whole, End::Cut, End::TooLarge, End::Malformed, End::Lost] {
        assert!(looked < 1_000 || ends.contains(&end), "of {looked} answers none is {end:?}");
    }
}
