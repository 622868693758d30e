//! Conversations as endpoints show them: what was said in a session, as its agent's model reads
//! it.

use crate::driver::talk_content::TalkContent;
use crate::handles::Sessions;
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::sessions::cache::CachedSession;
use kernel::contracts::{SessionRef, StoreError};
use kernel::conversation::llm::Message;
use kernel::conversation::talk::{Line, Talk};
use kernel::event::{self, Fact, Route};
use kernel::prompt::transcript::{RESULT_BYTES_MAX, render};
use kernel::session::Session;
use kernel::tool::call::Caller;
use kernel::values::ids::SessionKey;

/// How many events after a person's words the router's answer stands at the latest.
const ROUTE_WITHIN: usize = 64;

/// What was said in a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    /// The messages, in order; each call has one result.
    pub messages: Vec<Message>,
    /// The types of tools that the router allowed last.
    pub allowed: Vec<String>,
}

impl Sessions<'_> {
    /// What was said in a session so far: committed state.
    pub async fn transcript(self, caller: &Caller, session: &SessionRef) -> Result<Transcript> {
        let row = self.get(caller, session).await?;
        let read = self.shared.read_session(&row.key).await?;
        let Some(CachedSession { session: state, .. }) = read else {
            return Err(Refusal::not_found("session", &row.key.id));
        };
        let (talk, route) = newest(&state);
        let missing = TalkContent::default().missing(talk);
        let said = self.shared.gather(&row.key, missing).await?;
        let messages = render(talk, &said, RESULT_BYTES_MAX);
        let route = match route {
            Some(route) => Some(route.clone()),
            None => self.last_route(&row.key, talk).await?,
        };
        Ok(Transcript { messages, allowed: route.map(|route| route.types).unwrap_or_default() })
    }

    /// Where the router led after the last words of a person, if there was one.
    async fn last_route(self, key: &SessionKey, talk: &Talk) -> Result<Option<Route>> {
        let said = talk.lines.iter().rev().find_map(|line| match line {
            Line::User(seq) => Some(*seq),
            Line::Base(_) | Line::BaseOf(..) | Line::Summary(_) | Line::Turn { .. } => None,
        });
        let Some(said) = said else { return Ok(None) };
        let events = match self.shared.store.events(key, said, ROUTE_WITHIN).await {
            Ok(events) => events,
            Err(StoreError::Gone(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        for (_, text) in events {
            let events = event::read(&format!("[{text}]"))
                .map_err(|error| Refusal::new(RefusalCode::Unreadable, error.to_string()))?;
            for event in events {
                if let Fact::TurnFinished(end) = event.fact
                    && end.route.is_some()
                {
                    return Ok(end.route);
                }
            }
        }
        Ok(None)
    }
}

/// The conversation that continues, with its route; else the one that ended runs left.
fn newest(session: &Session) -> (&Talk, Option<&Route>) {
    let mut agents = session.frames.values().filter_map(|frame| frame.agent.as_deref());
    match agents.find(|agent| agent.continues) {
        Some(agent) => (&agent.talk, agent.route.as_ref()),
        None => (&session.talk, None),
    }
}
