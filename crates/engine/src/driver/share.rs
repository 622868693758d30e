//! The share of a driver: what a session that moves takes of what its caller and its realm may have
//! at the same time. It is free again as soon as the session does not move, before anyone can learn
//! of that: who is answered may send its next request at once.

use super::state::Driver;
use crate::command::Command;
use crate::refusal::{Quota, Refusal, RefusalCode, Result};
use crate::shared::Shared;
use crate::shares::{Share, ShareExhausted};
use kernel::identity::shares::SharedLimit;
use kernel::session::Phase;
use kernel::tool::call::Caller;
use kernel::values::ids::SessionKey;

impl Driver {
    /// Takes the share of who gives this command, unless one is held already.
    pub(super) fn take_share(&mut self, command: &Command) -> Result<()> {
        if !self.share.is_held() {
            self.share = self.shared.run_share(&self.key, command)?;
        }
        Ok(())
    }

    /// Gives the share back, unless the session moves.
    pub(super) fn free_share(&mut self) {
        let session = self.session.as_ref();
        if session.is_none_or(|session| session.phase() != Phase::Moving) {
            self.share = Share::default();
        }
    }
}

impl Shared {
    /// Takes the share of a command's caller. Only new runs are refused: replies, cancellations and
    /// running work always continue.
    pub(crate) fn run_share(&self, key: &SessionKey, command: &Command) -> Result<Share> {
        if let Some(caller) = command.caller().filter(|_| command.begins()) {
            self.storage.check(caller)?;
            if let Some(processor) = &self.processor {
                processor.check(caller)?;
            }
        }
        let take = |caller: &Caller| self.run_shares.try_take(caller);
        let of_owner = || Some(Caller::new(key.realm.clone(), key.owner.clone()?));
        let taken = match command {
            Command::Wake => of_owner().as_ref().map(take),
            _ => command.caller().map(take),
        };
        match taken {
            Some(Ok(share)) => Ok(share),
            Some(Err(full)) if command.begins() => Err(too_many(&full)),
            Some(Err(_)) | None => Ok(Share::default()),
        }
    }

    /// Why no driver can be started for this command: so many sessions are driven already.
    pub(crate) fn too_many_driven(&self, command: &Command) -> Refusal {
        let crowded = command.caller().and_then(|caller| self.run_shares.crowded(caller));
        let Some(full) = crowded else {
            let max = self.limits.runs_active_max;
            let message = format!("{max} sessions move already");
            let whole = u64::try_from(max).unwrap_or(u64::MAX);
            let quota = Quota { of: SharedLimit::Runs.name(), max: whole, window_s: None };
            return Refusal::new(RefusalCode::RunsActiveMax(Box::new(quota)), message)
                .hint("send it again in a moment, or raise `runs_active_max` in [limits]");
        };
        too_many(&full)
    }
}

fn too_many(full: &ShareExhausted) -> Refusal {
    let code = RefusalCode::RunsActiveMax(Box::new(full.quota()));
    Refusal::new(code, full.message()).hint(full.hint())
}
