//! The runs of direct calls, for the clients that made them: while one waits it is there for the
//! call, and may give it what it wants; and it learns what the other side itself said.

use crate::command::{Command, Replier};
use crate::handles::{Asks, Runs};
use crate::refusal::Result;
use crate::request::RunReport;
use crate::waiting::attendants::{Attendance, Attendant};
use kernel::contracts::SessionAsk;
use kernel::event::{Event, Fact};
use kernel::session::{CallState, PendingInput, RunStatus};
use kernel::tool::call::{Caller, InputRequired, InputResponses, RawFailure};
use kernel::values::datum::DatumValue;
use kernel::values::ids::{AskId, RunId};
use serde_json::{Map, Value};

/// More events than this has no run of one call.
const EVENTS_MAX: usize = 1_000;

impl Runs<'_> {
    /// A client waits for the run of its direct call, until the attendance is dropped: what is sent
    /// for the run meanwhile may ask for what that client can, and tells it how far it is.
    pub fn attend(self, run: RunId, attendant: Attendant) -> Attendance {
        self.shared.attending.attend(run, attendant)
    }

    /// What the other side itself said when the direct call of this run failed, if that is why the
    /// run failed and something was said.
    pub async fn own_words(self, report: &RunReport) -> Result<Option<RawFailure>> {
        let key = &report.session.key;
        if !key.space.is_call() || report.run.status != RunStatus::Failed {
            return Ok(None);
        }
        let rows = self.shared.store.events(key, 0, EVENTS_MAX).await?;
        let failed = rows.iter().rev().find_map(|(_, text)| {
            match serde_json::from_str::<Event>(text).ok()?.fact {
                Fact::CallFailed { fault, said, .. } => Some((fault, said)),
                _ => None,
            }
        });
        let said = failed
            .filter(|(fault, _)| report.run.last_error.as_ref() == Some(fault))
            .and_then(|(_, said)| said);
        let said = match said.as_deref().map(|said| &said.held) {
            Some(DatumValue::Value(value)) => Value::clone(value),
            Some(DatumValue::Blob(blob)) => {
                self.shared.blob_value(&key.realm, &blob.hash).await?.unwrap_or_default()
            }
            Some(DatumValue::Object(_) | DatumValue::Array(_)) | None => return Ok(None),
        };
        Ok(serde_json::from_value(said).ok())
    }
}

impl Asks<'_> {
    /// All that a direct call of this caller still wants for which this ask is open; none where the
    /// ask is about something else, the call is somebody else's, or it has what it wanted.
    pub async fn wanted(
        self,
        caller: &Caller,
        asked: &SessionAsk,
    ) -> Result<Option<InputRequired>> {
        let ask = &asked.row.ask;
        let wanted = ask.wanted.as_ref().filter(|_| asked.key.space.is_call());
        let Some(wanted) = wanted else { return Ok(None) };
        let Some(read) = self.shared.read_session(&asked.key).await? else { return Ok(None) };
        let run = read.session.runs.get(&ask.run);
        let is_own = run.is_some_and(|run| *run.subject() == caller.subject);
        let open = read.session.calls.get(&wanted.call.call_id).filter(|_| is_own);
        Ok(match open.map(|open| &open.state) {
            Some(CallState::Wanting(wanting)) => {
                let mut wants = wanting.wants.clone();
                // What was answered in the inbox need not be asked again.
                wants.inputs.retain(|key, _| !wanting.given.contains_key(key));
                Some(wants)
            }
            _ => None,
        })
    }

    /// Whether the direct call of this run may take one of these answers, by its tool's keys: it
    /// waits for it, or is under way with other answers and may want this one next.
    pub async fn may_want(self, report: &RunReport, answers: &Map<String, Value>) -> Result<bool> {
        let key = &report.session.key;
        let Some(read) = self.shared.read_session(key).await? else { return Ok(false) };
        let mut calls = read.session.calls.values().filter(|open| open.run == report.run.id);
        Ok(calls.any(|open| match &open.state {
            CallState::Wanting(wanting) => {
                let PendingInput { wants, given } = &**wanting;
                let waits = |key: &String| wants.inputs.contains_key(key);
                answers.keys().any(|key| waits(key) && !given.contains_key(key))
            }
            CallState::Started => {
                let InputResponses { inputs, refused, .. } = &*open.given;
                let has = |key: &String| inputs.contains_key(key) || refused.contains_key(key);
                let has_some = !inputs.is_empty() || !refused.is_empty();
                has_some && !answers.keys().all(has)
            }
            CallState::Requested | CallState::Judged(_) | CallState::Failed(..) => false,
        }))
    }

    /// Gives a direct call what it wants, by its tool's keys, as its caller answered or refused it,
    /// and waits until its run ends or pauses again, at most so long. Whether it fits is for the
    /// tool to say; what is left out the tool may want again. The ask that is open for it is closed
    /// with it. The state in what was said does not count: the call has its own.
    pub async fn give(
        self,
        caller: &Caller,
        ask: AskId,
        said: InputResponses,
        wait_ms: u64,
    ) -> Result<RunReport> {
        let found = self.get(caller, ask).await?;
        let by = Replier::new(caller, None);
        let said = Box::new(said);
        let command = |answer| Command::Give { ask, said, by, answer };
        self.shared.runs().wait_for(&found.key, found.row.ask.run, wait_ms, command).await
    }
}
