//! Why the engine refuses a request: a stable code, who failed, why, and what to do. Doors turn it
//! into their own error shape.

use kernel::contracts::StoreError;
use kernel::schema::Misfit;
use serde_json::Value;

/// The code of a refusal whose caller lacks what a tool needs; the detail says what, as
/// `kernel::call::Abilities`.
pub const CALLER_LACKS: &str = "caller_lacks";

/// What kind of refusal it is; doors map it to a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// It cannot be parsed or contradicts itself (400).
    BadRequest,
    /// It parses but has the wrong shape (422).
    WrongShape,
    /// There is none, or it is another realm's (404).
    NotFound,
    /// It contradicts the present state (409).
    Conflict,
    /// It is gone for good (410).
    Gone,
    /// Not with these credentials (401).
    Unauthorized,
    /// Policy says no (403).
    Forbidden,
    /// Too large (413).
    TooLarge,
    /// Too many at once (429).
    TooMany,
    /// No room on the disk (507).
    NoRoom,
    /// Not now (503).
    Unavailable,
    /// Our fault (500).
    Failed,
    /// A tool or upstream failed (502).
    Upstream,
}

/// A refused request.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// What kind.
    pub kind: RefusalKind,
    /// A stable word for programs, `ask_decided`.
    pub code: &'static str,
    /// Who failed and why.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// The faulty values, if it is about values.
    pub errors: Vec<Misfit>,
    /// More for programs: the winning decision, the open asks.
    pub detail: Option<Box<Value>>,
}

impl Refusal {
    /// A refusal without hint or detail.
    pub fn new(kind: RefusalKind, code: &'static str, message: impl Into<String>) -> Self {
        Self { kind, code, message: message.into(), hint: None, errors: Vec::new(), detail: None }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with the faulty values.
    #[must_use]
    pub fn errors(mut self, errors: Vec<Misfit>) -> Self {
        self.errors = errors;
        self
    }

    /// The same with more for programs.
    #[must_use]
    pub fn detail(mut self, detail: Value) -> Self {
        self.detail = Some(Box::new(detail));
        self
    }

    /// There is no such thing, or it is another realm's.
    pub fn not_found(noun: &'static str, name: impl std::fmt::Display) -> Self {
        Self::new(RefusalKind::NotFound, "not_found", format!("there is no {noun} `{name}`"))
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Exists(key) => Self::new(RefusalKind::Conflict, "session_exists", message)
                .hint(format!("choose another id, or use session `{key}` as it is")),
            StoreError::Full => Self::new(RefusalKind::NoRoom, "disk_full", message)
                .hint("free some space; the server goes on by itself"),
            StoreError::Busy => Self::new(RefusalKind::TooMany, "store_busy", message)
                .hint("send it again in a moment"),
            StoreError::Starved => Self::new(RefusalKind::Unavailable, "no_descriptors", message)
                .hint("send it again in a moment; a higher `ulimit -n` helps for good"),
            StoreError::Conflict(_) | StoreError::Poisoned(_) => {
                Self::new(RefusalKind::Unavailable, "session_reloading", message)
                    .hint("send it again")
            }
            StoreError::Unreadable(_) => Self::new(RefusalKind::Failed, "unreadable", message)
                .hint("a newer release wrote this session: run that release"),
            StoreError::Gone(oldest) => Self::new(RefusalKind::Gone, "cursor_gone", message)
                .hint(format!("read the session, then follow it from event {oldest} on")),
            StoreError::BadCursor(_) => Self::new(RefusalKind::BadRequest, "bad_cursor", message)
                .hint("use `nextCursor` of the page before, as it is"),
            StoreError::Closed => Self::new(RefusalKind::Unavailable, "closing", message)
                .hint("the server is stopping; send it again when it is back"),
            StoreError::Failed(_) => Self::new(RefusalKind::Failed, "store_failed", message)
                .hint("look at the server's log"),
        }
    }
}
