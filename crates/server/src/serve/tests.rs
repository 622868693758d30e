//! Bodies of requests over one connection of HTTP/1.1: whole, in pieces, in chunks, and after a
//! client was told to continue.

use super::*;
use axum::body::Bytes;
use engine::system::clock::TokioSpawn;
use futures::future::join;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Handle;
use tokio::task::yield_now;

const HEAD: &str = "POST / HTTP/1.1\r\nhost: a\r\n";

/// The client's end of a connection.
struct Client(DuplexStream);

impl Client {
    /// Sends a piece, which the server gets before the next one.
    async fn sends(&mut self, piece: &str) {
        self.0.write_all(piece.as_bytes()).await.unwrap();
        yield_now().await;
    }

    /// Reads until this comes.
    async fn hears(&mut self, end: &str) -> String {
        let mut heard = Vec::new();
        while !heard.ends_with(end.as_bytes()) {
            let count = self.0.read_buf(&mut heard).await.unwrap();
            assert_ne!(count, 0, "the connection ended: {:?}", String::from_utf8_lossy(&heard));
        }
        String::from_utf8(heard).unwrap()
    }

    /// Sends a request in these pieces; the answer is its body.
    async fn is_answered(&mut self, pieces: &[&str], body: &str) {
        for piece in pieces {
            self.sends(piece).await;
        }
        let answer = self.hears(&format!("\r\n\r\n{body}")).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
}

/// Lets a client speak over one connection with a server that answers with the bodies it reads.
async fn connected(speaks: impl AsyncFnOnce(&mut Client)) {
    let (client, server) = duplex(BUFFER_BYTES_MAX);
    let line = Connections::new(1).enter().await;
    let graceful = GracefulShutdown::new();
    let spawn = Arc::new(TokioSpawn::new(Handle::current()));
    let accepted = AcceptedConnection {
        peer: Peer::new(SocketAddr::from(([127, 0, 0, 1], 5_000))),
        line: Arc::new(line),
        service: ListenerService::new(
            Router::new().fallback(|body: Bytes| async move { body }),
            None,
        ),
        watcher: graceful.watcher(),
        builder: Arc::new(http2::builder(spawn)),
    };
    let speaking = async move {
        let mut client = Client(client);
        speaks(&mut client).await;
    };
    join(accepted.answer(server), speaking).await;
}

fn whole(body: &str) -> String {
    format!("{HEAD}content-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn requests_of_one_connection_are_answered_one_after_another() {
    connected(async |client| {
        for body in ["abc", "de", "f"] {
            client.is_answered(&[&whole(body)], body).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_in_pieces_is_read_to_its_end() {
    connected(async |client| {
        let head = format!("{HEAD}content-length: 6\r\n\r\n");
        client.is_answered(&[&head, "ab", "cd", "ef"], "abcdef").await;
        client.is_answered(&[&format!("{head}ab"), "cdef"], "abcdef").await;
        client.is_answered(&[&whole("g")], "g").await;
    })
    .await;
}

#[tokio::test]
async fn a_chunked_body_is_read_to_its_end() {
    connected(async |client| {
        let head = format!("{HEAD}transfer-encoding: chunked\r\n\r\n");
        let head = head.as_str();
        let [first, second, end] = ["2\r\nab\r\n", "2\r\ncd\r\n", "0\r\n\r\n"];
        client.is_answered(&[head, first, second, end], "abcd").await;
        client.is_answered(&[head, first, &[second, end].concat()], "abcd").await;
        client.is_answered(&[head, &[first, second].concat(), end], "abcd").await;
        client.is_answered(&[&[head, first, second, end].concat()], "abcd").await;
        client.is_answered(&[&whole("e")], "e").await;
    })
    .await;
}

#[tokio::test]
async fn expect_100_continue_is_answered() {
    connected(async |client| {
        client.sends(&format!("{HEAD}content-length: 2\r\nexpect: 100-continue\r\n\r\n")).await;
        assert_eq!(client.hears("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
        client.is_answered(&["ab"], "ab").await;
        client.is_answered(&[&whole("c")], "c").await;
    })
    .await;
}
