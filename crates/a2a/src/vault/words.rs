//! Messages, artifacts and tasks between the profile's words and those of A2A 1.0. The profile has
//! roles that 1.0 lacks: they are kept in the metadata of what is recorded, and come back from
//! there.

use super::super::error::{Result, invalid};
use super::super::task::{self, Chunk};
use super::super::view::Viewer;
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wire::a2a::message::{self, Role};
use wire::a2a::value::{Struct, Timestamp};
use wire::a2a::vault::{self, Message, Part, role_word, state_word};

/// Who may have written a message of a client.
const ROLES: [&str; 4] = ["user", "assistant", "system", "tool"];
/// Where the role of a message is kept that 1.0 has no word for.
const KEPT_ROLE: &str = "https://waypost.dev/a2a/vault/v1";

/// A message of a client as one of 1.0 under this id, or what is wrong with it.
pub(super) fn received(sent: Option<Message>, id: String) -> Result<message::Message> {
    let sent = sent.ok_or_else(|| invalid("message", "`message` is required"))?;
    if !ROLES.contains(&sent.role.as_str()) {
        let why = format!("`message.role` is one of {}", ROLES.join(", "));
        return Err(invalid("message.role", why));
    }
    if sent.parts.is_empty() {
        return Err(invalid("message.parts", "`message.parts` has at least one part"));
    }
    let is_wrong = |part: &Part| matches!(part, Part::Data { content, .. } if !content.is_object());
    if sent.parts.iter().any(is_wrong) {
        let why = "the `content` of a part of the type `data` is an object";
        return Err(invalid("message.parts", why));
    }
    let role = sent.role.clone();
    let mut received = message::Message::from(sent);
    if role != "user" {
        received.metadata.insert(KEPT_ROLE.to_owned(), json!({"role": role}));
    }
    Ok(message::Message { message_id: id, role: Role::User, ..received })
}

/// A message of 1.0 as the profile writes it.
pub(super) fn said(mut message: message::Message) -> Value {
    let kept = message.metadata.remove(KEPT_ROLE);
    let kept = kept.as_ref().and_then(|kept| kept["role"].as_str());
    let role = kept.filter(|role| ROLES.contains(role)).unwrap_or(role_word(message.role));
    vault::message(role, message.parts, &message.metadata)
}

/// The message that is the answer of a task: one part for each part of it.
pub(super) fn answer(parts: Vec<message::Part>) -> Value {
    vault::message(role_word(Role::Agent), parts, &Struct::new())
}

/// The artifacts of a piece that a task made: one for each part, since the profile's have no parts.
/// Pieces of the same artifact are counted on.
#[derive(Debug, Default)]
pub(super) struct Numbers(BTreeMap<String, usize>);

impl Numbers {
    pub(super) fn artifacts(&mut self, made: message::Artifact, append: bool) -> Vec<Value> {
        let count = self.0.entry(made.artifact_id.clone()).or_default();
        if !append {
            *count = 0;
        }
        let mut artifacts = Vec::new();
        for part in made.parts {
            *count += 1;
            let id = match *count {
                1 => made.artifact_id.clone(),
                number => format!("{}.{number}", made.artifact_id),
            };
            artifacts.push(vault::artifact(&id, part, &made.metadata));
        }
        artifacts
    }
}

/// A task with all its messages and all that it made.
pub(super) async fn whole(viewer: &Viewer, task: &task::Task, started_at: Millis) -> Value {
    let shown = viewer.task(task, None).await;
    let mut messages: Vec<Value> = shown.history.into_iter().map(said).collect();
    if let task::TaskState::Asking(_) = task.state {
        messages.extend(shown.status.message.map(said));
    }
    let mut artifacts: Vec<Value> = Vec::new();
    let mut numbers = Numbers::default();
    for chunk in &task.chunks {
        let Some(event) = viewer.chunk(chunk).await else { continue };
        match chunk {
            Chunk::Answer(_) => messages.push(answer(event.artifact.parts)),
            Chunk::Published(_) => {
                let id = event.artifact.artifact_id.clone();
                let made = numbers.artifacts(event.artifact, event.append);
                if !event.append {
                    artifacts.retain(|known| !is_of(known, &id));
                }
                artifacts.extend(made);
            }
        }
    }
    json!({
        "id": viewer.id(),
        "state": state_word(shown.status.state),
        "createdAt": Timestamp(started_at.0),
        "updatedAt": Timestamp(task.changed_at.0),
        "messages": messages,
        "artifacts": artifacts,
    })
}

/// Whether an artifact of the profile is a part of the artifact of this id.
fn is_of(artifact: &Value, id: &str) -> bool {
    let rest = artifact["id"].as_str().and_then(|own| own.strip_prefix(id));
    rest.is_some_and(|rest| {
        let number = rest.strip_prefix('.');
        rest.is_empty() || number.is_some_and(|number| number.parse::<usize>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::a2a::message::Content;

    fn sent(message: Value) -> Option<Message> {
        Some(serde_json::from_value(message).unwrap())
    }

    #[test]
    fn a_role_that_1_0_lacks_comes_back() {
        for role in ROLES {
            let written = json!({"role": role, "parts": [{"type": "text", "content": "go"}]});
            let received = received(sent(written.clone()), "m".to_owned()).unwrap();
            assert_eq!((received.role, received.message_id.as_str()), (Role::User, "m"));
            assert_eq!(said(received), written);
        }
    }

    #[test]
    fn what_is_no_message_of_the_profile_is_refused() {
        let text = json!({"type": "text", "content": "go"});
        for wrong in [
            json!({"role": "agent", "parts": [text]}),
            json!({"role": "user", "parts": []}),
            json!({"role": "user", "parts": [{"type": "data", "content": [1]}]}),
        ] {
            assert!(received(sent(wrong.clone()), "m".to_owned()).is_err(), "{wrong}");
        }
        assert!(received(None, "m".to_owned()).is_err());
    }

    #[test]
    fn an_artifact_of_several_parts_is_several() {
        let made = |parts: Vec<message::Part>| message::Artifact {
            artifact_id: "a".to_owned(),
            parts,
            ..message::Artifact::default()
        };
        let mut numbers = Numbers::default();
        let file = message::Part::new(Content::Url("https://a.test/x".to_owned()));
        let first = made(vec![message::Part::text("x"), message::Part::data(json!({"n": 1}))]);
        let shown = |artifacts: Vec<Value>| -> Vec<(Value, Value)> {
            artifacts.iter().map(|made| (made["id"].clone(), made["type"].clone())).collect()
        };
        let named = |id: &str, kind: &str| (json!(id), json!(kind));
        let told = shown(numbers.artifacts(first.clone(), false));
        assert_eq!(told, [named("a", "text"), named("a.2", "data")]);
        let told = shown(numbers.artifacts(made(vec![file]), true));
        assert_eq!(told, [named("a.3", "file")]);
        assert_eq!(shown(numbers.artifacts(first, false))[0].0, "a", "it begins anew");
        let known = json!({"id": "a.2"});
        assert!(is_of(&known, "a") && !is_of(&known, "a.2.b") && !is_of(&known, ""));
    }
}
