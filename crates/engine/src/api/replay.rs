//! Repeated requests: one with a key that was used before gets the outcome of the first, and does
//! nothing.

use crate::command::Command;
use crate::handles::{Asks, Runs};
use crate::refusal::{Refusal, RefusalCode, RefusalKind, Result};
use crate::request::{IdempotencyKey, ReplyReport, RunReport};
use crate::shared::Shared;
use crate::waiting::idempotency::{ClaimOutcome, RepeatCheck, mismatch, removed};
use kernel::journal::projection::OnceRow;
use kernel::tool::call::Caller;
use kernel::values::ids::{AskId, RunId, SessionKey};

impl Shared {
    /// Takes the request's key, if it has one, or finds the outcome.
    pub(crate) async fn turn(
        &self,
        caller: &Caller,
        once: Option<&IdempotencyKey>,
    ) -> Result<ClaimOutcome> {
        self.turn_by(caller, once, RepeatCheck::First).await
    }

    /// The same; where it is left to the commit, the outcome may be found by `winner`.
    pub(crate) async fn turn_by(
        &self,
        caller: &Caller,
        once: Option<&IdempotencyKey>,
        look: RepeatCheck,
    ) -> Result<ClaimOutcome> {
        let Some(once) = once else { return Ok(ClaimOutcome::First(None)) };
        let length = once.key.chars().count();
        let max = self.limits.client_id_chars_max;
        if length == 0 || length > max {
            let message = format!("an Idempotency-Key has 1 to {max} characters, not {length}");
            return Err(
                Refusal::new(RefusalCode::BadIdempotencyKey, message).hint("a UUID is a good key")
            );
        }
        self.keys.turn(self.store.as_ref(), caller, once, look).await
    }

    /// Another request may have taken the key first, in another process or before it was looked
    /// for: then the outcome of that one counts, else the refusal.
    pub(crate) async fn winner(
        &self,
        caller: &Caller,
        once: Option<&IdempotencyKey>,
        looked: RepeatCheck,
        refusal: Refusal,
    ) -> Result<OnceRow> {
        // The code of a conflict in the store, no matter who met it first. A request that was not
        // looked for may be a repeat, whatever it was refused for.
        if looked == RepeatCheck::First && refusal.code != RefusalCode::SessionReloading {
            return Err(refusal);
        }
        match self.turn(caller, once).await? {
            ClaimOutcome::Repeat(row) => Ok(row),
            ClaimOutcome::First(_) => Err(refusal),
        }
    }
}

impl Runs<'_> {
    /// The run that an earlier request with this key started, or whose ask it answered.
    pub(crate) async fn repeated(
        self,
        caller: &Caller,
        row: &OnceRow,
        wait_ms: u64,
    ) -> Result<RunReport> {
        let run = row.run.ok_or_else(|| removed(row))?;
        let report = self.settled(caller, run, wait_ms).await.map_err(|r| or_gone(r, row))?;
        Ok(RunReport { replayed: true, ..report })
    }

    /// A run once it ended or paused; one that still moves after so long as it is then.
    pub async fn settled(self, caller: &Caller, run: RunId, wait_ms: u64) -> Result<RunReport> {
        let report = self.report(caller, run).await?;
        if !report.is_moving() || wait_ms == 0 {
            return Ok(report);
        }
        let key = report.session.key.clone();
        let waited = self.wait_for(&key, run, wait_ms, |answer| Command::Await { run, answer });
        match waited.await {
            Ok(report) => Ok(report),
            // It ended, and another run after it, while we asked.
            Err(_) => self.report(caller, run).await,
        }
    }
}

impl Asks<'_> {
    /// The run whose asks an earlier request with this key answered, if it is of this session.
    pub(crate) async fn repeated_resume(
        self,
        caller: &Caller,
        session: &SessionKey,
        row: &OnceRow,
        wait_ms: u64,
    ) -> Result<RunReport> {
        let report = self.shared.runs().repeated(caller, row, wait_ms).await?;
        if report.session.key == *session { Ok(report) } else { Err(mismatch(row)) }
    }

    /// The reply that an earlier request with this key gave.
    pub(crate) async fn repeated_reply(
        self,
        caller: &Caller,
        ask: AskId,
        row: &OnceRow,
        wait_ms: u64,
    ) -> Result<ReplyReport> {
        if row.ask != Some(ask) {
            return Err(mismatch(row));
        }
        let run = self.shared.runs().repeated(caller, row, wait_ms).await?;
        let ask = self.get(caller, ask).await.map_err(|refusal| or_gone(refusal, row))?;
        Ok(ReplyReport { ask, run, replayed: true })
    }
}

fn or_gone(refusal: Refusal, row: &OnceRow) -> Refusal {
    if refusal.kind() == RefusalKind::NotFound { removed(row) } else { refusal }
}
