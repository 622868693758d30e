//! Why a query cannot be used, and where in its text.

/// Where something stands in a text. It is no part of what a tree means: two places are always
/// equal, so that trees are compared without regard to layout.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// In characters, from 0.
    pub position: usize,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Place {
    pub const START: Self = Self { position: 0, line: 1, column: 1 };

    /// The place so many characters further, in the same line.
    #[must_use]
    pub fn further(self, chars: usize) -> Self {
        Self { position: self.position + chars, column: self.column + chars, ..self }
    }
}

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Place {}

/// Which kind of mistake it is, as a stable word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    InvalidQuery,
    /// It names a variable that the caller has no value for.
    UnresolvedVariable,
    /// It expands a reference to a type that is not declared.
    UnresolvedCollection,
}

impl FaultKind {
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::InvalidQuery => "InvalidQuery",
            FaultKind::UnresolvedVariable => "UnresolvedVariable",
            FaultKind::UnresolvedCollection => "UnresolvedCollection",
        }
    }
}

/// A query that cannot be used: it matches nothing and is never run in part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}, in line {line}, column {column}")]
pub struct QueryFault {
    pub kind: FaultKind,
    pub message: String,
    /// In characters, from 0.
    pub position: usize,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What could stand there instead.
    pub expected: Vec<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl QueryFault {
    /// An invalid query, without a hint.
    pub fn at(place: Place, message: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::InvalidQuery,
            message: message.into(),
            position: place.position,
            line: place.line,
            column: place.column,
            expected: Vec::new(),
            hint: None,
        }
    }

    #[must_use]
    pub fn kind(mut self, kind: FaultKind) -> Self {
        self.kind = kind;
        self
    }

    #[must_use]
    pub fn expected(mut self, expected: &[&str]) -> Self {
        self.expected = expected.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
