//! Refusals of the engine: a code with its data, who failed, why, and what to do. Endpoints
//! translate them into their own error shape.

mod code;

pub use code::{ActiveRun, ClosedAsk, Quota, RefusalCode, RefusalKind, TryLater};
use kernel::contracts::{SessionRef, StoreError};
use kernel::definition::plan::mistake::Mistake;
use kernel::tool::schema::Misfit;
use kernel::values::fault::Fault;
use kernel::values::ids::RunId;

/// The engine's answer to a request, or why there is none.
pub(crate) type Result<T, E = Refusal> = std::result::Result<T, E>;

/// A refused request.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Why, for programs, with the values that belong to it.
    pub code: RefusalCode,
    /// Names who failed and why.
    pub message: String,
    pub hint: Option<String>,
    /// The faulty values, if it is about values.
    pub errors: Vec<Misfit>,
    /// What went wrong with the call of a tool, if it is about one: endpoints can answer by its
    /// name.
    pub fault: Option<Box<Fault>>,
}

impl Refusal {
    /// A refusal without a hint.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, errors: Vec::new(), fault: None }
    }

    pub fn kind(&self) -> RefusalKind {
        self.code.kind()
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

    /// The same about this fault of a call, with its hint.
    #[must_use]
    pub(crate) fn fault(mut self, fault: Fault) -> Self {
        self.hint.clone_from(&fault.hint);
        self.fault = Some(Box::new(fault));
        self
    }

    /// There is no such thing, or it is another realm's.
    pub fn not_found(noun: &'static str, name: impl std::fmt::Display) -> Self {
        Self::new(RefusalCode::NotFound, format!("there is no {noun} `{name}`"))
    }

    /// There is no such run, or it is another realm's.
    pub fn no_run(run: RunId) -> Self {
        Self { code: RefusalCode::NoRun(run), ..Self::not_found("run", run) }
    }

    /// The realm was removed while something was done in it.
    pub(crate) fn realm_removed() -> Self {
        Self::new(RefusalCode::RealmRemoved, "the realm was removed")
            .hint("`waypost whoami` lists the realms that the credential may enter")
    }

    /// Stored data is unreadable.
    pub(crate) fn unreadable(why: impl Into<String>) -> Self {
        Self::new(RefusalCode::Unreadable, why)
            .hint("a newer release wrote this session: run that release")
    }

    /// Mistakes of a plan or an agent as a refusal that names each faulty value.
    pub(crate) fn of_mistakes(code: RefusalCode, noun: &str, mistakes: &[Mistake]) -> Self {
        let misfit = |mistake: &Mistake| Misfit {
            pointer: mistake.pointer.clone(),
            message: match &mistake.hint {
                Some(hint) => format!("{} ({hint})", mistake.message),
                None => mistake.message.clone(),
            },
        };
        let errors: Vec<Misfit> =
            mistakes.iter().filter(|mistake| mistake.is_error()).map(misfit).collect();
        let first = errors.first().map_or("", |error| error.message.as_str());
        let more = match errors.len() {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        Self::new(code, format!("the {noun} is invalid: {first}{more}")).errors(errors)
    }

    /// Why the store does not take a definition.
    pub(crate) fn not_stored(noun: &str, name: impl std::fmt::Display, error: StoreError) -> Self {
        match error {
            StoreError::Conflict(_) => {
                let message = format!("{noun} `{name}` was stored in another version meanwhile");
                Self::new(RefusalCode::VersionConflict, message)
                    .hint("read it again and send its `ETag`")
            }
            other => other.into(),
        }
    }
}

/// There is no such session, or it is another realm's.
pub(crate) fn no_session(session: &SessionRef) -> Refusal {
    match session {
        SessionRef::Id(id) => Refusal::not_found("session", id),
        SessionRef::Key { key, .. } | SessionRef::Owned { key, .. } => {
            Refusal::not_found("session", key)
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Exists(key) => Self::new(RefusalCode::SessionExists, message)
                .hint(format!("choose another id, or use session `{key}` as it is")),
            StoreError::Full => Self::new(RefusalCode::DiskFull, message)
                .hint("free some space; the server then continues by itself"),
            StoreError::Busy => {
                Self::new(RefusalCode::StoreBusy, message).hint("send it again in a moment")
            }
            StoreError::Starved => Self::new(RefusalCode::NoDescriptors, message)
                .hint("send it again in a moment; a higher `ulimit -n` helps for good"),
            StoreError::Conflict(_) | StoreError::Poisoned(_) => {
                Self::new(RefusalCode::SessionReloading, message).hint("send it again")
            }
            StoreError::Unreadable(_) => Self::unreadable(message),
            StoreError::Gone(oldest) => Self::new(RefusalCode::CursorGone, message)
                .hint(format!("read the session, then follow it from event {oldest} on")),
            StoreError::BadCursor(_) => Self::new(RefusalCode::BadCursor, message)
                .hint("use `nextCursor` of the page before, as it is"),
            StoreError::Closed => Self::new(RefusalCode::Closing, message)
                .hint("the server is stopping; send it again when it is back"),
            StoreError::RealmRemoved(_) => Self::realm_removed(),
            StoreError::AuditBroken(_) => Self::new(RefusalCode::AuditBroken, message)
                .hint("`waypost audit verify` says which rows were added; restore a backup"),
            StoreError::TooLarge(_) => Self::new(RefusalCode::BlobTooLarge, message)
                .hint("read it piece by piece: `GET /api/v1/blobs/{hash}`"),
            StoreError::BrokenOff | StoreError::Failed(_) => {
                Self::new(RefusalCode::StoreFailed, message).hint("look at the server's log")
            }
        }
    }
}
