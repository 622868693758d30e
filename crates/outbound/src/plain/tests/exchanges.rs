//! Requests and answers over one connection: whole, cut, early, unasked for and broken.

use super::super::exchange::{ExchangeOutcome, HEAD_BYTES_MAX};
use super::bytewise::{asked, connected, exchanged, heard, is_kept_after, posted, posted_bytes};
use bytes::Bytes;
use std::future::poll_fn;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A body that no small connection holds.
const LARGE_BYTES: usize = 100_000;
/// What a small connection holds.
const SMALL_ROOM_BYTES: usize = 1_000;
/// How many headers hyper takes.
const HEADERS_MAX: usize = 100;

/// What can follow an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// Another request.
    Kept,
    /// Nothing: the connection is not used again.
    Closed,
    /// Nothing: the answer ends with the connection.
    Ended,
}
use After::{Closed, Ended, Kept};

/// Answers that are whole.
const WHOLE: &[(&str, u16, &str, After)] = &[
    ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, "hello", Kept),
    ("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", 202, "", Kept),
    ("HTTP/1.1 204 No Content\r\n\r\n", 204, "", Kept),
    ("HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n", 204, "", Kept),
    ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", 200, "x", Kept),
    (
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
         HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n\
         2;a=b\r\nhe\r\n03\r\nllo\r\n0\r\nx-sum: 1\r\n\r\n",
        200,
        "hello",
        Kept,
    ),
    // One that says its length in two ways may be meant to be read in two ways.
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n\
         1\r\nx\r\n0\r\n\r\n",
        200,
        "x",
        Closed,
    ),
    // So may one that announces a body where none can be.
    ("HTTP/1.1 204 No Content\r\ncontent-length: 4\r\n\r\n", 204, "", Closed),
    ("HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n", 304, "", Closed),
    ("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx", 200, "x", Closed),
    ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx", 200, "x", Closed),
    ("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx", 200, "x", Closed),
    ("HTTP/1.1 500 Oh\r\n\r\nuntil the end", 500, "until the end", Ended),
    // A second answer that nobody asked for is not for the next request.
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx\
         HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
        200,
        "x",
        Closed,
    ),
];

#[tokio::test]
async fn responses_parse_the_same_at_any_chunking() {
    for (text, status, data, after) in WHOLE {
        let bytes = text.as_bytes();
        let whole = exchanged(&[bytes]).await.unwrap();
        assert_eq!((whole.status, &whole.data[..]), (*status, data.as_bytes()), "{text}");
        if *after != Ended {
            assert_eq!(is_kept_after(bytes).await, *after == Kept, "{text}");
        }
        for cut in 1..bytes.len() {
            let (one, other) = bytes.split_at(cut);
            assert_eq!(exchanged(&[one, other]).await.as_ref(), Ok(&whole), "{text} cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(exchanged(&single).await, Ok(whole), "{text} byte for byte");
    }
}

#[tokio::test]
async fn invalid_responses_are_refused_at_any_chunking() {
    let coded = |coding: &str| format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {coding}\r\n\r\n");
    let chunked = coded("chunked");
    for (text, how) in [
        (String::new(), "lost"),
        ("HTTP/1.1 200 OK\r\ncontent-le".to_owned(), "lost"),
        ("HTTP/1.1 100 Continue\r\n\r\n".to_owned(), "lost"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_owned(), "lost"),
        (format!("{chunked}1\r\nx\r\n"), "lost"),
        (format!("{chunked}x\r\n"), "garbled"),
        (format!("{chunked}1\r\nxy\r\n"), "garbled"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(), "garbled"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nxyz".to_owned(),
            "garbled",
        ),
        ("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), "garbled"),
        (coded("gzip"), "garbled"),
        (coded("identity"), "garbled"),
        (coded("gzip, chunked") + "0\r\n\r\n", "garbled"),
        (coded("chunked\r\ntransfer-encoding: chunked") + "0\r\n\r\n", "garbled"),
    ] {
        let bytes = text.as_bytes();
        for cut in 0..=bytes.len() {
            let (one, other) = bytes.split_at(cut);
            let told = exchanged(&[one, other]).await.unwrap_err();
            assert!(told.starts_with(how), "{text} cut at {cut}: {told}");
        }
    }
}

#[tokio::test]
async fn a_response_that_is_not_http_is_refused() {
    for text in ["hello there", "SSH-2.0-OpenSSH_9.6\r\n", "HTTP/2.0 200 OK\r\n\r\n"] {
        let told = exchanged(&[text.as_bytes()]).await.unwrap_err();
        assert!(told.starts_with("garbled"), "{text}: {told}");
    }
}

#[tokio::test]
async fn response_heads_are_bounded() {
    let first = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n";
    let many = |count: usize| format!("{first}{}\r\n", "a: b\r\n".repeat(count - 1));
    let empty = first.len() + "a: \r\n\r\n".len();
    let long = |bytes: usize| format!("{first}a: {}\r\n\r\n", "x".repeat(bytes - empty));
    for text in [many(HEADERS_MAX), long(HEAD_BYTES_MAX)] {
        assert_eq!(exchanged(&[text.as_bytes()]).await.unwrap().status, 200);
    }
    for text in [many(HEADERS_MAX + 1), long(HEAD_BYTES_MAX + 1)] {
        let told = exchanged(&[text.as_bytes()]).await.unwrap_err();
        assert_eq!(told, "garbled: message head is too large");
    }
}

#[tokio::test]
async fn one_connection_takes_request_after_request() {
    let (mut wire, mut far) = connected(SMALL_ROOM_BYTES).await;
    // The last is larger than what the connection holds.
    for bytes in [1, 10, LARGE_BYTES] {
        let (read, ()) = tokio::join!(asked(&mut wire, posted_bytes(bytes)), async {
            let head = format!("POST /mcp HTTP/1.1\r\ncontent-length: {bytes}\r\n\r\n");
            let mut request = vec![0; head.len() + bytes];
            far.read_exact(&mut request).await.unwrap();
            assert!(request.starts_with(head.as_bytes()));
            assert!(request[head.len()..].iter().all(|byte| *byte == b'x'));
            far.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        });
        assert_eq!(read.unwrap().data, b"ok");
        assert!(wire.is_reusable(), "{bytes}");
    }
}

#[tokio::test]
async fn a_sent_request_body_is_freed() {
    let (mut wire, mut far) = connected(2 * LARGE_BYTES).await;
    let body = Bytes::from(vec![b'x'; LARGE_BYTES]);
    let (read, ()) = tokio::join!(asked(&mut wire, posted(body.clone())), async {
        heard(&mut far).await;
        far.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    });
    assert_eq!(read.unwrap().status, 200);
    assert!(wire.is_reusable());
    assert!(body.is_unique());
}

#[tokio::test]
async fn an_early_response_is_accepted() {
    let (mut wire, mut far) = connected(SMALL_ROOM_BYTES).await;
    let (read, ()) = tokio::join!(asked(&mut wire, posted_bytes(LARGE_BYTES)), async {
        heard(&mut far).await;
        far.write_all(b"HTTP/1.1 413 Large\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
    });
    let read = read.unwrap();
    assert_eq!((read.status, &read.data[..]), (413, &b"no"[..]));
    assert!(!wire.is_reusable());
}

#[tokio::test]
async fn the_request_body_is_completed_after_an_early_response() {
    let (mut wire, mut far) = connected(SMALL_ROOM_BYTES).await;
    let (read, ()) = tokio::join!(asked(&mut wire, posted_bytes(LARGE_BYTES)), async {
        let head = format!("POST /mcp HTTP/1.1\r\ncontent-length: {LARGE_BYTES}\r\n\r\n");
        let mut request = vec![0; head.len()];
        far.read_exact(&mut request).await.unwrap();
        far.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n").await.unwrap();
        let mut body = vec![0; LARGE_BYTES];
        far.read_exact(&mut body).await.unwrap();
        far.write_all(b"ok").await.unwrap();
    });
    assert_eq!(read.unwrap().data, b"ok");
}

#[tokio::test]
async fn an_early_response_is_accepted_even_if_the_server_hangs_up() {
    let (mut wire, mut far) = connected(SMALL_ROOM_BYTES).await;
    let (read, ()) = tokio::join!(asked(&mut wire, posted_bytes(LARGE_BYTES)), async move {
        heard(&mut far).await;
        far.write_all(b"HTTP/1.1 413 Large\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
    });
    let read = read.unwrap();
    assert_eq!((read.status, &read.data[..]), (413, &b"no"[..]));
    assert!(!wire.is_reusable());
}

#[tokio::test]
async fn an_unsent_request_is_distinguished_from_a_lost_one() {
    let (mut wire, far) = connected(SMALL_ROOM_BYTES).await;
    drop(far);
    let unsent = asked(&mut wire, posted_bytes(LARGE_BYTES)).await.unwrap_err();
    assert!(unsent.starts_with("unsent"), "{unsent}");

    let (mut wire, mut far) = connected(SMALL_ROOM_BYTES).await;
    let (lost, ()) = tokio::join!(asked(&mut wire, posted_bytes(LARGE_BYTES)), async move {
        let mut some = [0; 10];
        far.read_exact(&mut some).await.unwrap();
    });
    let lost = lost.unwrap_err();
    assert!(lost.starts_with("lost"), "{lost}");
}

#[tokio::test]
async fn a_request_is_returned_unsent_by_a_dead_or_dirty_connection() {
    for unasked in ["", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"] {
        let (mut wire, mut far) = connected(SMALL_ROOM_BYTES).await;
        let (read, ()) = tokio::join!(asked(&mut wire, posted_bytes(0)), async {
            heard(&mut far).await;
            far.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        });
        assert_eq!(read.unwrap().data, b"ok");
        assert!(wire.is_reusable());
        far.write_all(unasked.as_bytes()).await.unwrap();
        far.shutdown().await.unwrap();
        let ExchangeOutcome::Unsent(unsent, _) = wire.exchange(posted_bytes(3)).await else {
            panic!("it was sent after {unasked:?}");
        };
        assert_eq!(unsent.uri(), "/mcp");
        assert_eq!(unsent.into_body().into_inner().as_deref(), Some(&b"xxx"[..]));
        drop(wire);
        assert_eq!(far.read(&mut [0; 10]).await.unwrap(), 0, "{unasked:?}");
    }
}

#[tokio::test]
async fn body_chunks_are_yielded_as_they_arrive() {
    let (mut wire, mut far) = connected(SMALL_ROOM_BYTES).await;
    let (answered, ()) = tokio::join!(wire.exchange(posted_bytes(0)), async {
        heard(&mut far).await;
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        far.write_all(head.as_bytes()).await.unwrap();
    });
    assert!(matches!(answered, ExchangeOutcome::Answered(_)));
    assert_eq!(wire.left(), None);
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        // Not even the chunk's end is there yet.
        let chunk = format!("{:x}\r\n{event}", event.len());
        far.write_all(chunk.as_bytes()).await.unwrap();
        let piece = poll_fn(|context| wire.poll_piece(context)).await.ok().flatten();
        assert_eq!(piece.as_deref(), Some(event.as_bytes()));
        far.write_all(b"\r\n").await.unwrap();
    }
    far.write_all(b"0\r\n\r\n").await.unwrap();
    assert!(matches!(poll_fn(|context| wire.poll_piece(context)).await, Ok(None)));
    assert!(wire.is_reusable());
}

#[tokio::test]
async fn dropping_an_exchange_closes_its_connection() {
    let (mut wire, mut far) = connected(SMALL_ROOM_BYTES).await;
    let (answered, ()) = tokio::join!(wire.exchange(posted_bytes(0)), async {
        heard(&mut far).await;
        far.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await.unwrap();
    });
    assert!(matches!(answered, ExchangeOutcome::Answered(_)));
    assert_eq!(wire.left(), Some(9));
    drop(wire);
    assert_eq!(far.read(&mut [0; 10]).await.unwrap(), 0);
}
