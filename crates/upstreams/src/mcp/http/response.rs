//! A response body over either HTTP client.

use bytes::Bytes;
use outbound::plain::PlainAnswer;
use outbound::words::reasons;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use std::net::IpAddr;

/// An answer: its head, and a body that comes in pieces.
pub(crate) enum Response {
    /// Over a plain connection of ours.
    Plain(PlainAnswer),
    /// By the client for all else.
    Other(reqwest::Response),
}

impl Response {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Response::Plain(response) => response.status,
            Response::Other(response) => response.status(),
        }
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        match self {
            Response::Plain(response) => &response.headers,
            Response::Other(response) => response.headers(),
        }
    }

    /// From which address it came, if that is known.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self {
            Response::Plain(response) => response.body.address(),
            Response::Other(response) => response.remote_addr().map(|address| address.ip()),
        }
    }

    /// How long its body is, if that is known.
    pub(crate) fn content_length(&self) -> Option<u64> {
        match self {
            Response::Plain(response) => response.body.length(),
            Response::Other(response) => response.content_length(),
        }
    }

    /// Whether its body turned out not to be HTTP, as far as that is known.
    pub(crate) fn is_garbled(&self) -> bool {
        match self {
            Response::Plain(response) => response.body.is_garbled(),
            Response::Other(_) => false,
        }
    }

    /// The next piece of its body; none at its end, else why there is no more.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        match self {
            Response::Plain(response) => response.body.chunk().await,
            Response::Other(response) => {
                response.chunk().await.map_err(|error| reasons(&error.without_url()))
            }
        }
    }
}
