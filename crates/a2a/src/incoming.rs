//! Messages of clients: what they must have, which media types are taken, files that become blobs,
//! and the input of the run that a message starts. Addresses in a message are never fetched.

use super::error::{Result, invalid, refused, unsupported};
use super::skills::{JSON, Kind, REQUEST, Skill, TextInput, host_choice};
use crate::state::A2a;
use engine::Message as Recorded;
use kernel::definition::pipeline::Tally;
use kernel::tool::call::Caller;
use kernel::values::datum::BlobRef;
use project::a2a_serving::ANY_MODE;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use wire::a2a::HOPS;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::message::{Content, Message, Part, Role};

const TEXT: &str = "text/plain";
/// The media types of answers.
pub(super) const OUTPUT_MODES: [&str; 2] = [TEXT, JSON];

/// A message that can be taken, and the same as JSON.
pub(super) struct CheckedMessage {
    pub(super) message: Message,
    pub(super) body: Value,
}

/// Refuses a message that is invalid or too large.
pub(super) fn checked(a2a: &A2a, message: Option<Message>) -> Result<CheckedMessage> {
    let missing = |member: &str| {
        let field = format!("message.{member}");
        invalid(&field, format!("`{field}` is required"))
    };
    let message = message.ok_or_else(|| invalid("message", "`message` is required"))?;
    if let Some(member) = message.missing() {
        return Err(missing(member));
    }
    if message.role != Role::User {
        return Err(invalid("message.role", "a client's message has the role `ROLE_USER`"));
    }
    let limits = &a2a.serving.limits;
    if message.parts.len() > limits.a2a_parts_max {
        let why = format!("a message has at most {} parts", limits.a2a_parts_max);
        return Err(invalid("message.parts", format!("{why}; `a2a_parts_max` in [limits]")));
    }
    let id_max = a2a.server.limits().client_id_chars_max;
    if message.message_id.chars().count() > id_max {
        let why = format!("`messageId` has at most {id_max} characters");
        return Err(invalid("message.messageId", why));
    }
    if written_bytes(&message) > limits.a2a_message_bytes_max {
        let why = format!("a message has at most {} bytes", limits.a2a_message_bytes_max);
        let told = format!("{why}; `a2a_message_bytes_max` in [limits]");
        return Err(invalid("message", told));
    }
    if a2a.choose_skill.is_none() {
        let modes = &a2a.serving.input_modes;
        message.parts.iter().try_for_each(|part| taken(part, modes))?;
    }
    // Plain data: writing it as JSON cannot fail.
    let body = serde_json::to_value(&message).unwrap_or_default();
    Ok(CheckedMessage { message, body })
}

/// How many bytes a message has as JSON.
fn written_bytes(message: &Message) -> usize {
    let mut counted = ByteCounter(0);
    match serde_json::to_writer(&mut counted, message) {
        Ok(()) => counted.0,
        Err(_) => usize::MAX,
    }
}

/// Counts what is written, and keeps nothing of it.
struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The media types that messages may have: any where the host program says what they are for.
pub(super) fn input_modes(a2a: &A2a) -> Vec<String> {
    match a2a.choose_skill {
        Some(_) => vec![ANY_MODE.to_owned()],
        None => a2a.serving.input_modes.clone(),
    }
}

/// Through how many agents a message came, if it says so; more than the limit are refused.
pub(super) fn hops(a2a: &A2a, message: &Message) -> Result<Option<u32>> {
    let Some(said) = message.metadata.get(HOPS) else { return Ok(None) };
    let most = a2a.serving.limits.a2a_hops_max;
    match said.as_u64().and_then(|said| u32::try_from(said).ok()) {
        Some(hops) if hops <= most => Ok(Some(hops)),
        Some(hops) => Err(unsupported(format!(
            "the message came through {hops} agents, and at most {most} are allowed: do they call \
             each other in a circle? `a2a_hops_max` in [limits]"
        ))),
        None => Err(invalid("message.metadata", format!("`{HOPS}` is a number of agents"))),
    }
}

/// Refuses a part whose media type is not one of these, or not one of its kind. A file that names
/// none is taken.
fn taken(part: &Part, modes: &[String]) -> Result<()> {
    let named = part.media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let full = match (&part.content, named.as_str()) {
        (Content::Raw(_) | Content::Url(_), "") => return Ok(()),
        (Content::Text(_), "") => TEXT,
        (Content::Data(_), "") => JSON,
        (_, named) => named,
    };
    let is_of_kind = match &part.content {
        Content::Raw(_) | Content::Url(_) => true,
        Content::Text(_) => full.starts_with("text/") || is_json(full),
        Content::Data(_) => is_json(full),
    };
    if is_of_kind && modes.iter().any(|mode| mode == full || mode == ANY_MODE) {
        return Ok(());
    }
    let shown: String = full.chars().take(100).collect();
    let why = format!("a part of this kind with the media type `{shown}` is not taken");
    let told = format!("{why}; the types are {}", modes.join(", "));
    Err(A2aError::new(ErrorKind::ContentTypeNotSupported, told))
}

fn is_json(media_type: &str) -> bool {
    media_type == JSON || media_type.ends_with("+json")
}

/// A message as it is recorded: its files are blobs.
pub(super) async fn recorded(
    a2a: &A2a,
    caller: &Caller,
    message: &Message,
    mut body: Value,
) -> Result<Recorded> {
    let mut files: Vec<BlobRef> = Vec::new();
    for (index, part) in message.parts.iter().enumerate() {
        let Content::Raw(bytes) = &part.content else { continue };
        let kept = a2a.server.engine.sessions().keep_file(caller, bytes.clone()).await;
        let file = kept.map_err(|refusal| refused(refusal, "message.parts"))?;
        let named = Part {
            content: Content::Url(file.uri()),
            metadata: part.metadata.clone(),
            filename: part.filename.clone(),
            media_type: part.media_type.clone(),
        };
        if let Some(written) = body.get_mut("parts").and_then(|parts| parts.get_mut(index)) {
            *written = json!(named);
        }
        files.push(file);
    }
    let id = Arc::from(message.message_id.as_str());
    Ok(Recorded { id, body, files, misfit: None })
}

/// What a run gets from the message that starts it.
pub(super) struct Input {
    pub(super) value: Value,
    /// The path of a pipeline that it takes.
    pub(super) tally: Option<Tally>,
}

/// The input of a skill. `parts` are those of the recorded message: files are named there.
pub(super) fn input(a2a: &A2a, skill: &Skill, message: &Message) -> Result<Input> {
    let data: Vec<&Value> = message.parts.iter().filter_map(Part::as_data).collect();
    let text = message.words();
    let plain = |value: Value| Ok(Input { value, tally: None });
    if let Some(choice) = host_choice(a2a, message) {
        return plain(choice.input);
    }
    match (&skill.kind, data.as_slice()) {
        (Kind::Agent, [only]) if text.trim().is_empty() && has_only_data(message) => {
            plain((*only).clone())
        }
        (Kind::Agent, _) => plain(json!({REQUEST: spoken(message)})),
        (Kind::Plan, [only]) => plain((*only).clone()),
        (Kind::Pipeline(pipeline), [only]) => {
            let case =
                pipeline.admit(only).map_err(|bad| invalid("message.parts", bad.to_string()))?;
            let tally = Tally::of(pipeline, &case, a2a.server.limits().tally_reason_chars_max);
            Ok(Input { value: case.input, tally: Some(tally) })
        }
        (Kind::Plan, []) if !text.trim().is_empty() => match skill.takes_text() {
            TextInput::As(name) => plain(json!({name: text})),
            TextInput::Alone => plain(json!({})),
            TextInput::No => Err(wants_data(skill)),
        },
        (Kind::Plan | Kind::Pipeline(_) | Kind::Proxy, _) => Err(wants_data(skill)),
    }
}

fn has_only_data(message: &Message) -> bool {
    message.parts.iter().all(|part| part.as_data().is_some())
}

fn wants_data(skill: &Skill) -> A2aError {
    let told = format!("skill `{}` takes one `data` part that fits its input schema", skill.id());
    invalid("message.parts", told)
}

/// What an agent reads of a message: its texts, its values as JSON, and where its files are.
fn spoken(message: &Message) -> String {
    let lines: Vec<String> = message.parts.iter().map(line).collect();
    lines.join("\n")
}

fn line(part: &Part) -> String {
    let named = |what: &str| match part.filename.is_empty() {
        true => format!("[file: {what}]"),
        false => format!("[file {}: {what}]", part.filename),
    };
    match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(data) => data.to_string(),
        Content::Url(url) => named(url),
        Content::Raw(bytes) => named(&format!("{} bytes", bytes.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_reads_all_parts_and_fetches_none() {
        let file = Part {
            filename: "a.txt".to_owned(),
            ..Part::new(Content::Url("https://a.test/a.txt".to_owned()))
        };
        let parts = vec![Part::text("look"), Part::data(json!({"n": 1})), file];
        let message = Message { parts, ..Message::default() };
        let told = "look\n{\"n\":1}\n[file a.txt: https://a.test/a.txt]";
        assert_eq!(spoken(&message), told);
    }

    fn of(part: Part, media_type: &str) -> Part {
        Part { media_type: media_type.to_owned(), ..part }
    }

    fn judged(part: &Part, modes: &[&str]) -> Option<ErrorKind> {
        let modes: Vec<String> = modes.iter().map(|mode| (*mode).to_owned()).collect();
        taken(part, &modes).err().map(|error| error.kind)
    }

    #[test]
    fn a_part_has_a_media_type_that_is_declared() {
        let file = || Part::new(Content::Raw(Vec::new()));
        let link = || Part::new(Content::Url("https://a.test/a".to_owned()));
        let declared = ["text/plain", "application/json", "image/png"];
        for good in [
            Part::text("a"),
            of(Part::text("a"), "Text/Plain; charset=utf-8"),
            of(Part::text("{}"), "application/json"),
            Part::data(json!(1)),
            file(),
            of(file(), "image/png"),
            link(),
        ] {
            assert_eq!(judged(&good, &declared), None, "{good:?}");
        }
        for bad in [
            of(Part::text("a"), "text/markdown"),
            of(Part::data(json!(1)), "application/vnd.a+json"),
            of(file(), "image/gif"),
            of(link(), "text/html"),
        ] {
            let kind = judged(&bad, &declared);
            assert_eq!(kind, Some(ErrorKind::ContentTypeNotSupported), "{bad:?}");
            assert_eq!(judged(&bad, &["*/*"]), None, "{bad:?}");
        }
        assert!(judged(&Part::text("a"), &["application/json"]).is_some(), "no text is declared");
    }

    #[test]
    fn a_text_is_no_picture_and_a_value_no_text() {
        for bad in [of(Part::text("a"), "image/png"), of(Part::data(json!(1)), "text/plain")] {
            for modes in [&["image/png", "text/plain"][..], &["*/*"]] {
                let kind = judged(&bad, modes);
                assert_eq!(kind, Some(ErrorKind::ContentTypeNotSupported), "{bad:?}");
            }
        }
    }
}
