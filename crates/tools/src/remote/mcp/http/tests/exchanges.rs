//! Requests and answers over one connection: whole, cut, early, unasked for and broken.

use super::super::exchange::{Exchanged, Wire};
use super::bytewise::{Posted, asked, exchanged, heard};
use std::future::poll_fn;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

/// A body that no small connection holds.
const LARGE_BYTES: usize = 100_000;
/// What a small connection holds.
const SMALL_ROOM_BYTES: usize = 1_000;

/// Answers that are whole, and whether another request may follow.
const WHOLE: &[(&str, u16, &str, bool)] = &[
    ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, "hello", true),
    ("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", 202, "", true),
    ("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true),
    ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", 200, "x", true),
    (
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
         HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
         2;a=b\r\nhe\r\n03\r\nllo\r\n0\r\nx-sum: 1\r\n\r\n",
        200,
        "hello",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n\
         1\r\nx\r\n0\r\n\r\n",
        200,
        "x",
        false,
    ),
    ("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx", 200, "x", false),
    ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx", 200, "x", false),
    ("HTTP/1.1 500 Oh\r\n\r\nuntil the end", 500, "until the end", false),
    // A second answer that nobody asked for is not for whoever asks next.
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx\
         HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
        200,
        "x",
        false,
    ),
];

#[tokio::test]
async fn answers_are_the_same_however_they_are_cut() {
    for (text, status, data, reusable) in WHOLE {
        let bytes = text.as_bytes();
        let (whole, is_reusable) = exchanged(&[bytes]).await;
        let whole = whole.unwrap();
        assert_eq!((whole.status, &whole.data[..]), (*status, data.as_bytes()), "{text}");
        assert_eq!(is_reusable, *reusable, "{text}");
        for cut in 1..bytes.len() {
            let (one, other) = bytes.split_at(cut);
            let (cut_read, _) = exchanged(&[one, other]).await;
            assert_eq!(cut_read.as_ref(), Ok(&whole), "{text} cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(exchanged(&single).await.0, Ok(whole), "{text} byte for byte");
    }
}

#[tokio::test]
async fn what_is_no_answer_is_refused_however_it_is_cut() {
    let again = "HTTP/1.1 100 Continue\r\n\r\n".repeat(17);
    for (text, why) in [
        ("", "it ended without an answer"),
        ("HTTP/1.1 200 OK\r\ncontent-le", "it ended in the middle of a head"),
        ("HTTP/1.1 100 Continue\r\n\r\n", "it ended without an answer"),
        ("hello there", "its head is not HTTP"),
        ("SSH-2.0-OpenSSH_9.6\r\n", "its head is not HTTP"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "another protocol"),
        (again.as_str(), "more than 16 times"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nxyz", "two lengths"),
        ("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.0"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nzzz", "other than `chunked`"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", "5 bytes before the end"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n", "last chunk"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", "not framed"),
    ] {
        let bytes = text.as_bytes();
        for cut in 0..=bytes.len() {
            let (one, other) = bytes.split_at(cut);
            let told = exchanged(&[one, other]).await.0.unwrap_err();
            assert!(told.contains(why), "{text} cut at {cut}: {told}");
        }
    }
}

#[tokio::test]
async fn one_connection_takes_request_after_request() {
    let (near, mut far) = duplex(SMALL_ROOM_BYTES);
    let mut wire = Wire::new(near, None);
    // The last is larger than what the connection holds.
    for bytes in [0, 10, LARGE_BYTES] {
        let posted = Posted::new(bytes);
        let (read, ()) = tokio::join!(asked(&mut wire, &posted), async {
            let head = format!("POST /mcp HTTP/1.1\r\ncontent-length: {bytes}\r\n\r\n");
            let mut request = vec![0; head.len() + bytes];
            far.read_exact(&mut request).await.unwrap();
            assert!(request.starts_with(head.as_bytes()));
            assert!(request[head.len()..].iter().all(|byte| *byte == b'x'));
            far.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        });
        assert_eq!(read.unwrap().data, b"ok");
        assert!(wire.is_reusable(), "{bytes}");
        wire.shrink();
    }
}

#[tokio::test]
async fn who_answers_before_all_was_said_is_heard() {
    let (near, mut far) = duplex(SMALL_ROOM_BYTES);
    let mut wire = Wire::new(near, None);
    let posted = Posted::new(LARGE_BYTES);
    let (read, ()) = tokio::join!(asked(&mut wire, &posted), async {
        heard(&mut far).await;
        far.write_all(b"HTTP/1.1 413 Large\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
    });
    let read = read.unwrap();
    assert_eq!((read.status, &read.data[..]), (413, &b"no"[..]));
    assert!(!wire.is_reusable());
}

#[tokio::test]
async fn who_answers_early_can_still_hear_the_rest() {
    let (near, mut far) = duplex(SMALL_ROOM_BYTES);
    let mut wire = Wire::new(near, None);
    let posted = Posted::new(LARGE_BYTES);
    let (read, ()) = tokio::join!(asked(&mut wire, &posted), async {
        let head = format!("POST /mcp HTTP/1.1\r\ncontent-length: {LARGE_BYTES}\r\n\r\n");
        let mut request = vec![0; head.len()];
        far.read_exact(&mut request).await.unwrap();
        far.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n").await.unwrap();
        let mut body = vec![0; LARGE_BYTES];
        far.read_exact(&mut body).await.unwrap();
        far.write_all(b"ok").await.unwrap();
    });
    assert_eq!(read.unwrap().data, b"ok");
    assert!(!wire.is_reusable());
}

#[tokio::test]
async fn who_answers_and_hangs_up_before_all_was_said_is_heard() {
    let (near, mut far) = duplex(SMALL_ROOM_BYTES);
    let mut wire = Wire::new(near, None);
    let posted = Posted::new(LARGE_BYTES);
    let (read, ()) = tokio::join!(asked(&mut wire, &posted), async move {
        heard(&mut far).await;
        far.write_all(b"HTTP/1.1 413 Large\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
    });
    assert_eq!(read.unwrap().status, 413);
    assert!(!wire.is_reusable());
}

#[tokio::test]
async fn what_was_not_written_is_told_from_what_was_lost() {
    let (near, far) = duplex(SMALL_ROOM_BYTES);
    drop(far);
    let mut wire = Wire::new(near, None);
    let posted = Posted::new(LARGE_BYTES);
    let unsent = wire.exchange(&posted.request()).await;
    assert!(matches!(unsent, Exchanged::Unsent(_)));

    let (near, mut far) = duplex(SMALL_ROOM_BYTES);
    let mut wire = Wire::new(near, None);
    let request = posted.request();
    let (lost, ()) = tokio::join!(wire.exchange(&request), async move {
        let mut some = [0; 10];
        far.read_exact(&mut some).await.unwrap();
    });
    assert!(matches!(lost, Exchanged::Lost(_)));
}

#[tokio::test]
async fn pieces_are_given_out_as_they_come() {
    let (near, mut far) = duplex(SMALL_ROOM_BYTES);
    let mut wire = Wire::new(near, None);
    let posted = Posted::new(0);
    let request = posted.request();
    let (answered, ()) = tokio::join!(wire.exchange(&request), async {
        heard(&mut far).await;
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        far.write_all(head.as_bytes()).await.unwrap();
    });
    assert!(matches!(answered, Exchanged::Answered(_)));
    assert_eq!(wire.left(), None);
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        // Not even the chunk's end is there yet.
        let chunk = format!("{:x}\r\n{event}", event.len());
        far.write_all(chunk.as_bytes()).await.unwrap();
        let piece = poll_fn(|context| wire.poll_piece(context)).await.unwrap().unwrap();
        assert_eq!(piece, event.as_bytes());
        far.write_all(b"\r\n").await.unwrap();
    }
    far.write_all(b"0\r\n\r\n").await.unwrap();
    assert_eq!(poll_fn(|context| wire.poll_piece(context)).await, Ok(None));
    assert!(wire.is_reusable());
}

#[tokio::test]
async fn dropping_it_closes_it() {
    let (near, mut far) = duplex(SMALL_ROOM_BYTES);
    let mut wire = Wire::new(near, None);
    let posted = Posted::new(0);
    let request = posted.request();
    let (answered, ()) = tokio::join!(wire.exchange(&request), async {
        heard(&mut far).await;
        far.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await.unwrap();
    });
    assert!(matches!(answered, Exchanged::Answered(_)));
    assert_eq!(wire.left(), Some(9));
    drop(wire);
    assert_eq!(far.read(&mut [0; 10]).await.unwrap(), 0);
}
