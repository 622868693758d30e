//! The receiver of the server's requests: a process that reads each request to its end and answers
//! 200. It parses nothing, because its share of the machine is not the server's.

use std::net::Ipv4Addr;

use tokio::net::{TcpListener, TcpStream};

use crate::Result;
use crate::child;
use crate::http::Connection;

/// What writing runs are answered.
pub const DONE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
    content-length: 11\r\n\r\n{\"ok\":true}";

/// What an exporter of spans is answered: all of them were taken.
pub const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\n\
    content-length: 0\r\n\r\n";

/// The child's side: answers everything with this until the parent is gone.
pub fn serve(answer: &'static [u8]) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(accept(answer))
}

async fn accept(answer: &'static [u8]) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    child::announce(listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        // A broken connection is the server's to report: its run fails, or its spans are lost.
        tokio::spawn(answer_all(stream, answer));
    }
}

async fn answer_all(stream: TcpStream, answer: &[u8]) -> Result<()> {
    let mut connection = Connection::new(stream)?;
    while connection.read_message().await?.is_some() {
        connection.write(answer).await?;
    }
    Ok(())
}
