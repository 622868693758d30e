//! Messages of A2A that answer asks, as their clients remember them over all lives. Each answers
//! once or is beaten, one that is sent again gets what the first one got, and a journal has it
//! together with the decision or not at all.

use super::journal::Story;
use crate::sim::coverage::Seen;
use engine::{IdempotencyKey, Message};
use kernel::ask::{Ask, Reply};
use kernel::values::ids::{AskId, ContentHash, RunId};
use serde_json::{Value, json};
use std::sync::Arc;

/// A message that answers an ask of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    pub id: Arc<str>,
    pub ask: AskId,
    /// The run that is the task.
    pub run: RunId,
    /// What it says.
    pub reply: Reply,
}

impl Sent {
    fn body(&self) -> Value {
        json!({"messageId": &*self.id, "taskId": self.run, "parts": [{"data": self.reply}]})
    }

    /// The key by which a server knows it again.
    pub fn once(&self) -> IdempotencyKey {
        let digest = ContentHash::of(self.body().to_string().as_bytes());
        IdempotencyKey::new(format!("a2a {}", self.run), self.id.to_string(), digest)
    }

    /// As it is recorded.
    pub fn message(&self) -> Message {
        Message { id: self.id.clone(), body: self.body(), files: Vec::new(), misfit: None }
    }
}

/// How a message was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It decided what this run asks.
    Taken(RunId),
    /// What it answers was over before.
    Beaten,
}

/// All that were sent, each with its first answer.
#[derive(Debug, Default)]
pub struct Messages {
    sent: Vec<(Sent, Option<Fate>)>,
}

impl Messages {
    /// A new one, which says this.
    pub fn write(&mut self, ask: &Ask, reply: Reply) -> Sent {
        let id = format!("m{}", self.sent.len()).into();
        let sent = Sent { id, ask: ask.id, run: ask.run, reply };
        self.sent.push((sent.clone(), None));
        sent
    }

    /// One that was sent before; the number chooses it.
    pub fn again(&self, number: u64) -> Option<Sent> {
        let place = number.checked_rem(self.sent.len() as u64)?;
        self.sent.get(place as usize).map(|(sent, _)| sent.clone())
    }

    /// Notes how one was answered, or says what is wrong with that.
    pub fn note(&mut self, sent: &Sent, fate: Fate) -> Result<Seen, String> {
        let Sent { id, run, .. } = sent;
        let Some((_, first)) = self.sent.iter_mut().find(|(known, _)| known.id == *id) else {
            return Err(format!("message {id} was answered and never sent"));
        };
        match (*first, fate) {
            (Some(before), _) if before != fate => {
                Err(format!("message {id} of {run} was {before:?}, and is {fate:?} when repeated"))
            }
            (Some(_), _) => Ok(Seen::MessageRepeated),
            (None, Fate::Taken(other)) if other != *run => {
                Err(format!("message {id} of {run} was taken by {other}"))
            }
            (None, Fate::Taken(_)) => {
                *first = Some(fate);
                Ok(Seen::MessageTaken)
            }
            (None, Fate::Beaten) => {
                *first = Some(fate);
                Ok(Seen::MessageBeaten)
            }
        }
    }

    /// What is wrong with what the journals tell of them.
    pub fn judge(&self, stories: &[Story]) -> Vec<String> {
        self.sent.iter().filter_map(|(sent, fate)| misplaced(stories, sent, *fate)).collect()
    }
}

/// What is wrong with the place of a message in the journals. One that no one was answered about
/// may have been taken or not.
fn misplaced(stories: &[Story], sent: &Sent, fate: Option<Fate>) -> Option<String> {
    let Sent { id, ask, reply, .. } = sent;
    let times: u32 = stories.iter().filter_map(|story| story.messages.get(id)).sum();
    let decision = stories.iter().find_map(|story| story.asks.get(ask)?.decision.as_ref());
    let has_won = decision.is_some_and(|decision| decision.reply == *reply);
    let is_right = match fate {
        Some(Fate::Taken(_)) => times == 1 && has_won,
        Some(Fate::Beaten) => times == 0,
        None => times == 0 || (times == 1 && has_won),
    };
    (!is_right).then(|| {
        format!("message {id} to {ask} was {fate:?}, is recorded {times} times: {decision:?} won")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_message_gets_the_first_answer() {
        let one = RunId(1);
        let other = RunId(2);
        let ask = |run: RunId| -> Ask {
            serde_json::from_value(json!({"id": AskId(1), "run": run, "frame": 1, "step": "s",
                "title": "?", "body": {"kind": "fill", "message": "?", "schema": {}},
                "digest": "d", "createdAt": 5}))
            .unwrap()
        };
        let mut messages = Messages::default();
        assert_eq!(messages.again(7), None);
        let first = messages.write(&ask(one), Reply::Authorize { done: true });
        let second = messages.write(&ask(one), Reply::Authorize { done: true });
        assert_ne!(first.once(), second.once());
        assert_eq!(messages.again(3), Some(second.clone()));
        assert!(messages.note(&first, Fate::Taken(other)).is_err(), "of another task");
        assert_eq!(messages.note(&first, Fate::Taken(one)), Ok(Seen::MessageTaken));
        assert_eq!(messages.note(&first, Fate::Taken(one)), Ok(Seen::MessageRepeated));
        assert!(messages.note(&first, Fate::Beaten).is_err(), "it was taken");
        assert_eq!(messages.note(&second, Fate::Beaten), Ok(Seen::MessageBeaten));
        assert!(messages.note(&second, Fate::Taken(one)).is_err(), "it was beaten");
        // What was acknowledged stands in no journal.
        assert_eq!(messages.judge(&[]).len(), 1);
    }
}
