//! What writing runs write to: a process that reads each request to its end and answers that all is
//! well. It parses nothing, for its share of the machine is not the server's.

use std::net::Ipv4Addr;

use tokio::net::{TcpListener, TcpStream};

use crate::Result;
use crate::child;
use crate::http::Connection;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
    content-length: 11\r\n\r\n{\"ok\":true}";

/// The child's side: serves until the parent is gone.
pub fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(accept())
}

async fn accept() -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    child::announce(listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        // A broken connection is the server's to report: its run fails.
        tokio::spawn(answer_all(stream));
    }
}

async fn answer_all(stream: TcpStream) -> Result<()> {
    let mut connection = Connection::new(stream)?;
    while connection.read_message().await?.is_some() {
        connection.write(ANSWER).await?;
    }
    Ok(())
}
