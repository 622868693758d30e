//! The state of a thread on the server: its last messages, what it waits for, and the outcome of a
//! run whose stream broke off or that someone else decided about.

use super::Chat;
use crate::asking::prompts::Answer;
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Request, read};
use crate::terminal::output::{one_line, printable};
use crate::threads;
use serde_json::{Value, json};
use std::time::Duration;
use wire::conversations::{PendingAction, ThreadAnswer, ThreadStatus};
use wire::rest::{Session, Status};

/// How often we look whether a login is done, a run has ended or a server is back.
const LOOK: Duration = Duration::from_secs(1);
/// So much of a conversation is shown when it is opened again.
const PAST_MESSAGES: usize = 6;

impl Chat {
    /// Shows a person where the thread stands: the last lines, and what it waits for.
    pub(super) async fn reopen(&mut self) -> Answer<()> {
        let session = match self.session().await {
            Err(failure) if failure.code == "not_found" => return Ok(()),
            session => session?,
        };
        if let Some(state) = &session.request_state {
            for line in past(&state.messages) {
                self.output.talk(&line);
            }
        }
        match session.status {
            Status::Waiting | Status::Stuck | Status::Running => {
                let answer = self.outcome(standing).await;
                self.finish(answer).await
            }
            Status::Completed | Status::Failed | Status::Cancelled | Status::Paused => Ok(()),
        }
    }

    /// Shows the page, and waits until the run continues by itself.
    pub(super) async fn await_login(&mut self, message: &str, url: &str) -> Result<ThreadAnswer> {
        self.show(&format!("[login] {}\n  {}", printable(message), printable(url)))?;
        self.output.talk("waiting for the login; Ctrl-C gives it up");
        self.outcome(after_login).await
    }

    /// Waits until the server is back, then for the outcome of this run, which resumes there.
    pub(super) async fn after_cut(
        &mut self,
        run: Option<&str>,
        why: Failure,
    ) -> Result<ThreadAnswer> {
        self.await_server(why).await?;
        let session = self.session().await?;
        if run.is_some() && session.run.as_deref() != run {
            let what = "the server stopped before it recorded what you said";
            return Err(Failure::new(Exit::Failed, "unrecorded", what).hint("say it again"));
        }
        self.outcome(standing).await
    }

    /// Waits until a server that went away like this is back.
    pub(super) async fn await_server(&self, why: Failure) -> Result<()> {
        self.output.talk(&format!("({}; waiting for the server, Ctrl-C stops)", why.message));
        while self.client.ready().await.is_err() {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                Ok(()) = tokio::signal::ctrl_c() => return Err(why),
            }
        }
        self.output.talk("(the server is back)");
        Ok(())
    }

    /// Waits until the thread stands somewhere, and prints its answer if it is done.
    pub(super) async fn outcome(
        &mut self,
        standing: fn(Session) -> Option<ThreadAnswer>,
    ) -> Result<ThreadAnswer> {
        loop {
            let session = self.session().await?;
            let over = session.status.is_over();
            let run = session.run.clone();
            if let Some(answer) = standing(session) {
                if over && self.output.is_json() {
                    self.output.document(&json!({"event": "result", "data": answer}))?;
                } else if over || answer.pending_action.is_none() {
                    let response = answer.response.as_deref().unwrap_or_default();
                    self.answer(response)?;
                }
                return Ok(answer);
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                Ok(()) = tokio::signal::ctrl_c(), if self.lines.is_person => {
                    self.cancel(run.as_deref()).await;
                }
            }
        }
    }

    /// The thread's session as it is now.
    pub(super) async fn session(&self) -> Result<Session> {
        let request = Request::to(&["sessions", &self.thread]).with("space", Some("thread"));
        read(&self.client.get(request).await?)
    }
}

/// The last lines of a conversation.
fn past(messages: &[Value]) -> Vec<String> {
    let said = messages.iter().filter_map(|message| {
        let who = match message["type"].as_str()? {
            "human" => ">",
            "ai" => "<",
            _ => return None,
        };
        let text = message["content"].as_str().filter(|text| !text.trim().is_empty())?;
        Some(format!("{who} {}", one_line(text.trim())))
    });
    let said: Vec<String> = said.collect();
    let first = said.len().saturating_sub(PAST_MESSAGES);
    said.into_iter().skip(first).collect()
}

/// Where a thread stands; none while it moves.
pub(super) fn standing(session: Session) -> Option<ThreadAnswer> {
    let state = session.request_state?;
    let said = |response| ThreadAnswer { response, ..ThreadAnswer::new(ThreadStatus::Success) };
    match (session.status, state.pending_action) {
        (Status::Running, _) => None,
        (Status::Completed, _) => Some(said(state.final_response)),
        (_, Some(action)) => Some(threads::waiting(action)),
        (_, None) => {
            let why = session.last_error.map(|fault| fault.message);
            let answer = said(why.or_else(|| Some(format!("it is {}", session.status.name()))));
            // Only a failed step is an error that someone can still do something about.
            let is_stuck = session.status == Status::Stuck;
            let status = if is_stuck { ThreadStatus::Error } else { answer.status };
            Some(ThreadAnswer { status, ..answer })
        }
    }
}

/// The same after a login; none while it still waits for that.
fn after_login(session: Session) -> Option<ThreadAnswer> {
    let pending = session.request_state.as_ref().and_then(|state| state.pending_action.as_ref());
    match pending {
        Some(PendingAction::OauthUrl { .. }) => None,
        _ => standing(session),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_what_people_and_agents_said() {
        let messages = [
            json!({"type": "system", "content": "be kind"}),
            json!({"type": "human", "content": "add 2 and 3\nplease"}),
            json!({"type": "ai", "content": "", "tool_calls": []}),
            json!({"type": "tool", "content": "5"}),
            json!({"type": "ai", "content": "The sum is 5."}),
        ];
        assert_eq!(past(&messages), ["> add 2 and 3 please", "< The sum is 5."]);
        let long: Vec<Value> =
            (0..9).map(|no| json!({"type": "human", "content": no.to_string()})).collect();
        assert_eq!(past(&long).first().map(String::as_str), Some("> 3"));
    }
}
