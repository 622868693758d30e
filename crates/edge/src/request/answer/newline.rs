//! JSON answers end with a newline: a shell's prompt begins on a line of its own, and tools that
//! read line by line see the last one.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The same answer with a newline at its end, if it is JSON that is there as a whole.
pub fn ended(response: Response) -> Response {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    let is_whole = response.body().size_hint().exact().is_some_and(|bytes| bytes > 0);
    let is_sized = response.headers().contains_key(CONTENT_LENGTH);
    if !kind.trim_end().ends_with("json") || !is_whole || is_sized {
        return response;
    }
    response.map(|inner| Body::new(NewlineBody { inner, is_over: false }))
}

/// A body with a newline behind it.
struct NewlineBody {
    inner: Body,
    is_over: bool,
}

impl HttpBody for NewlineBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(None) => {
                self.is_over = true;
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"\n")))))
            }
            polled => polled,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        let left = u64::from(!self.is_over);
        // It was known when this began, and stays so.
        self.inner.size_hint().exact().map_or_else(SizeHint::default, |bytes| {
            SizeHint::with_exact(bytes.saturating_add(left))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Json;
    use axum::http::StatusCode;
    use axum::response::IntoResponse;
    use futures::stream;
    use serde_json::json;

    async fn text(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), 1024).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_whole_json_answer_ends_with_a_newline() {
        let answer = ended(Json(json!({"a": 1})).into_response());
        assert_eq!(answer.body().size_hint().exact(), Some(8));
        assert_eq!(text(answer).await, "{\"a\":1}\n");
        let problem = [(CONTENT_TYPE, "application/problem+json; charset=utf-8")];
        assert_eq!(text(ended((problem, "{}").into_response())).await, "{}\n");
    }

    #[tokio::test]
    async fn other_answers_get_no_newline() {
        let json = [(CONTENT_TYPE, "application/json")];
        assert_eq!(text(ended("plain".into_response())).await, "plain");
        assert_eq!(text(ended((StatusCode::NO_CONTENT, json.clone()).into_response())).await, "");
        let pieces = stream::iter([Ok::<_, axum::Error>(Bytes::from_static(b"{}"))]);
        let streamed = (json, Body::from_stream(pieces)).into_response();
        assert_eq!(text(ended(streamed)).await, "{}");
        let sized = [(CONTENT_TYPE, "application/json"), (CONTENT_LENGTH, "2")];
        assert_eq!(text(ended((sized, "{}").into_response())).await, "{}");
    }
}
