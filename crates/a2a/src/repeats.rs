//! Repeated messages: the same message under the same id, sent again within `[a2a] repeat_window`,
//! gets the task of the first. Another message under a used id is a new one. Keys are kept by
//! window, so that an old one is in nobody's way: the present window and the one before are asked.

use super::error::{Result, refused};
use super::incoming::CheckedMessage;
use crate::state::A2a;
use engine::IdempotencyKey;
use kernel::journal::projection::FormerRoute;
use kernel::tool::call::Caller;
use kernel::values::canonical;
use kernel::values::ids::{Millis, RunId};
use wire::a2a::message::Message;

/// The key under which a message is remembered; none where repeats are not recognised.
pub(super) fn key_of(a2a: &A2a, checked: &CheckedMessage) -> Option<IdempotencyKey> {
    let window_ms = i64::try_from(a2a.serving.repeat_window.saturating_mul(1_000));
    let window_ms = window_ms.unwrap_or(i64::MAX);
    if window_ms == 0 {
        return None;
    }
    let now = a2a.server.engine.clock().now();
    let window = now.0.div_euclid(window_ms);
    let since = Millis(now.0.saturating_sub(window_ms));
    Some(key(checked, window, since))
}

/// The run that an earlier message under this key made or moved.
pub(super) async fn find(
    a2a: &A2a,
    caller: &Caller,
    once: Option<&IdempotencyKey>,
) -> Result<Option<RunId>> {
    let Some(once) = once else { return Ok(None) };
    let found = a2a.server.engine.runs().done_before(caller, once).await;
    let found = found.map_err(|refusal| refused(refusal, "message.messageId"))?;
    Ok(found.and_then(|row| row.run))
}

/// The message itself is part of the place: another one under the same id has another place.
fn key(checked: &CheckedMessage, window: i64, since: Millis) -> IdempotencyKey {
    let digest = canonical::digest(&checked.body);
    let Message { task_id, message_id, .. } = &checked.message;
    // The digest last: messages that are numbered are stored beside each other.
    let route = |window| format!("a2a {task_id} {window} {message_id} {}", digest.as_str());
    let present = route(window);
    let earlier = FormerRoute { route: route(window - 1), since };
    let once = IdempotencyKey::new(present, message_id.clone(), digest);
    IdempotencyKey { earlier: Some(earlier), ..once }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wire::a2a::message::Part;

    #[test]
    fn another_message_under_the_same_id_is_another_one() {
        let said = |text: &str, task: &str| {
            let message = Message {
                message_id: "m".to_owned(),
                task_id: task.to_owned(),
                parts: vec![Part::text(text)],
                ..Message::default()
            };
            CheckedMessage { body: json!(message), message }
        };
        let at = |text: &str, task: &str, window| key(&said(text, task), window, Millis(0));
        assert_eq!(at("a", "", 1), at("a", "", 1));
        for other in [at("b", "", 1), at("a", "t", 1), at("a", "", 2)] {
            assert_ne!(at("a", "", 1), other);
        }
        let before = at("a", "", 2).earlier.map(|earlier| earlier.route);
        assert_eq!(before, Some(at("a", "", 1).route), "the window before is asked, too");
    }
}
