//! Answers of other people while a card is shown: they are printed at once, unless the user has
//! begun to type.

use super::{ASKS_MAX, Chat};
use crate::asking::prompts::{Answer, Unanswered};
use crate::remote::client::{Client, Request, read};
use crate::terminal::paste::TerminalInput;
use kernel::values::visible::exposed;
use std::time::Duration;
use wire::rest::{Ask, AskStatus};

/// How often we look whether the ask is still open.
const LOOK: Duration = Duration::from_millis(500);
/// The same of a server that does not tell: each time twice as long as before, up to this.
const LOOK_MAX: Duration = Duration::from_secs(8);

impl Chat {
    /// What a person types at this prompt, or that someone else answered what is asked. Who did is
    /// told; the outcome is still to be shown.
    pub(super) async fn hear_unless_answered(&mut self, prompt: &str) -> Answer<TerminalInput> {
        let Some(ask) = self.watched().await else { return Ok(self.lines.hear(prompt, "").await?) };
        let heard = self.lines.hear_or(prompt, closed(&self.client, &ask)).await?;
        heard.map_err(|ask| {
            self.output.talk(&closed_by(&ask));
            Unanswered::AlreadyDecided
        })
    }

    /// The id of the ask that the thread waits for, where waiting for a line can be ended. Where it
    /// cannot be found, the server says it in answer to the line.
    async fn watched(&self) -> Option<String> {
        if !self.lines.can_be_ended() {
            return None;
        }
        self.open_asks().await.into_iter().next().map(|ask| ask.id)
    }

    /// The open asks of the thread, oldest first; none where they cannot be read.
    pub(super) async fn open_asks(&self) -> Vec<Ask> {
        let open = Request::to(&["asks"]).with("status", Some("open"));
        let open = open.with("session", Some(&self.thread)).with("space", Some("thread"));
        self.client.items(open, ASKS_MAX).await.unwrap_or_default()
    }
}

/// Waits until this ask is not open any more. A server that does not answer is asked again.
async fn closed(client: &Client, id: &str) -> Ask {
    let mut wait = LOOK;
    loop {
        tokio::time::sleep(wait).await;
        let found = client.get(Request::to(&["asks", id])).await;
        wait = match found.and_then(|body| read::<Ask>(&body)) {
            Ok(ask) if ask.status != AskStatus::Open => return ask,
            Ok(_) => LOOK,
            Err(_) => LOOK_MAX.min(wait * 2),
        };
    }
}

/// Who closed an ask.
fn closed_by(ask: &Ask) -> String {
    match (&ask.decision, ask.status) {
        (Some(decision), _) => {
            format!("(ask `{}` was decided by `{}`)", ask.id, exposed(&decision.by))
        }
        (None, AskStatus::Expired) => "(no one answered this in time)".to_owned(),
        (None, _) => "(this is not asked any more)".to_owned(),
    }
}
