//! Abilities of a caller that a running call may use.

use super::InputRequest;
use serde::{Deserialize, Serialize};

/// What the caller can do for a call. What it cannot do it is never asked for, so a tool that
/// asks others in its name promises them no more than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Abilities {
    /// Have a person fill in a form.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub form: bool,
    /// Have a person open a page.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub page: bool,
    /// Ask its model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sample: bool,
    /// List the folders that it works in.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub roots: bool,
    /// Come back for what continues without it: see `InputRequired`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub later: bool,
    /// Be asked in the middle of a call, as MCP has it with a handshake: a server of both eras is
    /// spoken to in that one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub handshake: bool,
    /// Be answered with a task by another server, which is followed for it. Only an MCP client that
    /// could have declared tasks, and did not, lacks this: the other server says what that means.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tasks: bool,
}

impl Abilities {
    /// What a person can be asked for, for any caller.
    pub const PERSON: Abilities = Abilities {
        form: true,
        page: true,
        sample: false,
        roots: false,
        later: false,
        handshake: false,
        tasks: true,
    };
    /// What a run can do: ask a person, and wait as long as it takes.
    pub const RUN: Abilities = Abilities { later: true, ..Abilities::PERSON };

    /// Whether it can do nothing of all that.
    pub fn is_none(self) -> bool {
        self == Abilities::default()
    }

    /// Whether it can give this.
    pub fn can(self, want: &InputRequest) -> bool {
        match want {
            InputRequest::Form { .. } => self.form,
            InputRequest::Url { .. } => self.page,
            InputRequest::Sample { .. } => self.sample,
            InputRequest::Roots => self.roots,
        }
    }

    /// The same, and what it takes to give this.
    #[must_use]
    pub fn and(self, want: &InputRequest) -> Self {
        match want {
            InputRequest::Form { .. } => Self { form: true, ..self },
            InputRequest::Url { .. } => Self { page: true, ..self },
            InputRequest::Sample { .. } => Self { sample: true, ..self },
            InputRequest::Roots => Self { roots: true, ..self },
        }
    }
}
