//! A client's socket, as its connection sees it: when something is heard, and when the client does
//! not read.

use edge::connections::ConnectionGuard;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A socket, plain or encrypted, that tells its connection what happens on it.
pub(crate) struct Socket<S> {
    stream: S,
    line: Arc<ConnectionGuard>,
    /// It takes no more.
    is_full: bool,
    /// It has taken what it could not send yet; only one that encrypts does so.
    is_unsent: bool,
}

impl<S> Socket<S> {
    /// The socket of this connection.
    pub(crate) fn new(stream: S, line: Arc<ConnectionGuard>) -> Self {
        Self { stream, line, is_full: false, is_unsent: false }
    }

    fn wrote(&mut self, written: &Poll<io::Result<usize>>) {
        self.now(written.is_pending(), self.is_unsent);
    }

    fn flushed(&mut self, flushed: &Poll<io::Result<()>>) {
        self.now(self.is_full, flushed.is_pending());
    }

    fn now(&mut self, is_full: bool, is_unsent: bool) {
        let was_stalled = self.is_full || self.is_unsent;
        let is_stalled = is_full || is_unsent;
        self.is_full = is_full;
        self.is_unsent = is_unsent;
        if was_stalled != is_stalled {
            self.line.stalled(is_stalled);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.line.heard();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.flushed(&flushed);
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
