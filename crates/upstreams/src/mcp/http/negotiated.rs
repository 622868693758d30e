//! What a line knows of the server's era: nothing at first, then the result of the handshake.

use super::super::line::Outgoing;
use super::headers::{self, SessionHeaders};
use reqwest::header::HeaderMap;
use wire::mcp::MODERN;

/// The request that begins a session.
pub(super) const INITIALIZE: &str = "initialize";

#[derive(Default)]
pub(super) enum AgreedEra {
    /// Not negotiated yet.
    #[default]
    Nothing,
    /// Every request speaks for itself, in this version.
    Stateless(String),
    /// A session, which a server may leave without an id.
    Session(Session),
}

/// A session as it is known.
#[derive(Default)]
pub(super) struct Session {
    headers: SessionHeaders,
    /// The other side was notified that it can begin.
    initialized: bool,
    /// Its news are listened for.
    listening: bool,
}

/// How one message is sent.
#[derive(Clone)]
pub(super) struct MessageHeaders {
    /// Headers that its era adds.
    pub(super) headers: HeaderMap,
    /// It is not stateless: it is cancelled by a message, and its stream can be taken up again.
    pub(super) legacy: bool,
    /// It names a session.
    pub(super) in_session: bool,
}

impl MessageHeaders {
    /// How a request is sent that names its version in `_meta`, if this one does: it is stateless,
    /// whatever was agreed, so that the era can be probed.
    pub(super) fn named(request: &Outgoing) -> Option<Self> {
        let version = request.params.version().filter(|_| request.method != INITIALIZE)?;
        Some(Self::stateless(version, request))
    }

    fn stateless(version: &str, request: &Outgoing) -> Self {
        let Outgoing { method, name, param_headers, .. } = request;
        let headers = headers::stateless_request(version, method, name.as_deref(), param_headers);
        Self { headers, legacy: false, in_session: false }
    }
}

impl AgreedEra {
    /// How a request is sent that does not name its version.
    pub(super) fn manner(&self, request: &Outgoing) -> MessageHeaders {
        if request.method == INITIALIZE {
            return MessageHeaders { headers: HeaderMap::new(), legacy: true, in_session: false };
        }
        match self {
            AgreedEra::Stateless(version) => MessageHeaders::stateless(version, request),
            AgreedEra::Nothing => MessageHeaders::stateless(MODERN, request),
            AgreedEra::Session(session) => session.manner(),
        }
    }

    /// How a notification or a response is sent.
    pub(super) fn manner_of_message(&self, method: Option<&str>) -> MessageHeaders {
        let headers = match self {
            AgreedEra::Session(session) => return session.manner(),
            AgreedEra::Stateless(version) => headers::stateless(version, method),
            AgreedEra::Nothing => HeaderMap::new(),
        };
        MessageHeaders { headers, legacy: false, in_session: false }
    }

    /// `initialize` was answered: a session has begun, whose messages say this.
    pub(super) fn began(&mut self, headers: SessionHeaders) {
        *self = AgreedEra::Session(Session { headers, ..Session::default() });
    }

    /// The handshake said that this version is spoken.
    pub(super) fn agree(&mut self, version: &str) {
        // Versions are dates.
        if version >= MODERN {
            *self = AgreedEra::Stateless(version.to_owned());
            return;
        }
        let mut session = match std::mem::take(self) {
            AgreedEra::Session(session) => session,
            AgreedEra::Nothing | AgreedEra::Stateless(_) => Session::default(),
        };
        session.headers = session.headers.agreed(version);
        *self = AgreedEra::Session(session);
    }

    /// The other side was notified that the session can begin.
    pub(super) fn initialized(&mut self) {
        if let AgreedEra::Session(session) = self {
            session.initialized = true;
        }
    }

    /// How to listen for news, once, when the version is known and both sides have begun.
    pub(super) fn begin_listening(&mut self) -> Option<MessageHeaders> {
        match self {
            AgreedEra::Session(session)
                if session.initialized && session.headers.has_version() && !session.listening =>
            {
                session.listening = true;
                Some(session.manner())
            }
            AgreedEra::Session(_) | AgreedEra::Nothing | AgreedEra::Stateless(_) => None,
        }
    }

    /// The session that the other side keeps until it is notified that it is over.
    pub(super) fn kept_session(&self) -> Option<MessageHeaders> {
        match self {
            AgreedEra::Session(session) if session.headers.is_named() => Some(session.manner()),
            AgreedEra::Session(_) | AgreedEra::Nothing | AgreedEra::Stateless(_) => None,
        }
    }
}

impl Session {
    fn manner(&self) -> MessageHeaders {
        let headers = self.headers.to_map();
        MessageHeaders { headers, legacy: true, in_session: self.headers.is_named() }
    }
}
