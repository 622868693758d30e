//! An answer whose parts lie in different places, sent without being put together first.

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body whose parts lie in different places; its length is known.
pub(crate) struct Pieces(pub(crate) VecDeque<Bytes>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            match self.0.pop_front() {
                Some(piece) if piece.is_empty() => {}
                piece => return Poll::Ready(piece.map(|piece| Ok(Frame::data(piece)))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}
