//! The URIs of our own resources, and the families that they belong to.

use kernel::contracts::shelf::TemplateSpec;
use kernel::values::ids::{ContentHash, PlanId, RunId, SessionId};
use outbound::percent::{decoded, encoded};
use std::fmt;

/// One resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResourceUri {
    /// A plan's source.
    Plan(PlanId),
    /// A session with its context and its latest run.
    Session(SessionId),
    /// The newest calls of a session.
    History(SessionId),
    /// A run with its session.
    Run(RunId),
    /// A large value.
    Blob(ContentHash),
}

impl ResourceUri {
    /// The resource of this URI, whether there is one or not.
    pub(super) fn read(uri: &str) -> Option<Self> {
        let parts: Vec<&str> = uri.strip_prefix("waypost://")?.split('/').collect();
        match parts.as_slice() {
            ["plans", id] => Some(ResourceUri::Plan(PlanId::from(decoded(id)))),
            ["sessions", id] => id.parse().ok().map(ResourceUri::Session),
            ["sessions", id, "history"] => id.parse().ok().map(ResourceUri::History),
            ["runs", id] => id.parse().ok().map(ResourceUri::Run),
            ["blobs", hash] => is_hash(hash).then(|| ResourceUri::Blob(ContentHash::from(*hash))),
            _ => None,
        }
    }
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResourceUri::Plan(id) => write!(f, "waypost://plans/{}", encoded(id.as_str())),
            ResourceUri::Session(id) => write!(f, "waypost://sessions/{id}"),
            ResourceUri::History(id) => write!(f, "waypost://sessions/{id}/history"),
            ResourceUri::Run(id) => write!(f, "waypost://runs/{id}"),
            ResourceUri::Blob(hash) => write!(f, "waypost://blobs/{hash}"),
        }
    }
}

/// Resources of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Plans,
    Sessions,
    Histories,
    Runs,
    Blobs,
}

impl Family {
    pub(super) const ALL: [Family; 5] =
        [Family::Plans, Family::Sessions, Family::Histories, Family::Runs, Family::Blobs];

    pub(super) fn of(template: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.template() == template)
    }

    fn template(self) -> &'static str {
        match self {
            Family::Plans => "waypost://plans/{id}",
            Family::Sessions => "waypost://sessions/{id}",
            Family::Histories => "waypost://sessions/{id}/history",
            Family::Runs => "waypost://runs/{id}",
            Family::Blobs => "waypost://blobs/{hash}",
        }
    }

    /// The one variable of its template.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Family::Plans | Family::Sessions | Family::Histories | Family::Runs => "id",
            Family::Blobs => "hash",
        }
    }

    /// The family as it is listed.
    pub(super) fn spec(self) -> TemplateSpec {
        let (name, title, about) = match self {
            Family::Plans => ("plan", "Plan", "The source of a plan."),
            Family::Sessions => (
                "session",
                "Session",
                "A session with its context, its latest run and the questions that are open.",
            ),
            Family::Histories => {
                ("history", "History", "The newest finished calls of a session, newest first.")
            }
            Family::Runs => {
                ("run", "Run", "A run with its answer and the questions that are open.")
            }
            Family::Blobs => ("blob", "Blob", "A large value, by the hash after `blob://`."),
        };
        TemplateSpec {
            uri_template: self.template().to_owned(),
            name: name.to_owned(),
            title: Some(title.to_owned()),
            description: Some(about.to_owned()),
            // Only a blob may be anything.
            mime_type: (self != Family::Blobs).then(|| "application/json".to_owned()),
            listed: None,
        }
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_uri_is_read_as_it_is_written() {
        let plan = ResourceUri::Plan("trade/settle: ä".into());
        assert_eq!(plan.to_string(), "waypost://plans/trade%2Fsettle%3A%20%C3%A4");
        let hash = ContentHash::of(b"x");
        for resource in [
            plan,
            ResourceUri::Session(SessionId(7)),
            ResourceUri::History(SessionId(7)),
            ResourceUri::Run(RunId(8)),
            ResourceUri::Blob(hash),
        ] {
            assert_eq!(ResourceUri::read(&resource.to_string()), Some(resource));
        }
        let colons = ResourceUri::read("waypost://plans/math::add");
        assert_eq!(
            colons,
            Some(ResourceUri::Plan("math::add".into())),
            "few clients encode a colon"
        );
        let percent = ResourceUri::read("waypost://plans/%zz");
        assert_eq!(percent, Some(ResourceUri::Plan("%zz".into())), "what is no escape is a name");
    }

    #[test]
    fn foreign_and_malformed_uris_are_not_ours() {
        for uri in [
            "test://static-text",
            "waypost:plans/a",
            "waypost://plans/a/b",
            "waypost://sessions/a",
            "waypost://runs/ses_00000000000000000000000000000007",
            "waypost://blobs/..",
            "waypost://",
        ] {
            assert_eq!(ResourceUri::read(uri), None, "{uri}");
        }
    }

    #[test]
    fn each_family_has_its_template() {
        for family in Family::ALL {
            let template = family.spec().uri_template;
            assert_eq!(Family::of(&template), Some(family));
            assert!(template.contains(&format!("{{{}}}", family.variable())), "{template}");
        }
        assert_eq!(Family::of("waypost://plans"), None);
    }
}
