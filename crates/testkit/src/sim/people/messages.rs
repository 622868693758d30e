//! Clients that answer by messages of A2A: in the context of a task, beside those who answer
//! otherwise, and again where they got no answer, also from a process that is gone.

use crate::sim::judge::messages::{Fate, Sent};
use crate::sim::people::clients::{Clients, locked};
use engine::{Refusal, RefusalCode};
use kernel::ask::Reply;
use kernel::contracts::SessionAsk;
use kernel::values::ids::RunId;

/// How long a client waits at most before it sends a message again.
const AGAIN_MS: u64 = 3_000;

impl Clients {
    /// Whether an ask is answered by a message: every other one in a context is.
    pub(in crate::sim) fn answers_by_message(&self, ask: &SessionAsk) -> bool {
        self.contexts && ask.key.space.has_many_runs() && self.below(2) == 0
    }

    /// Sends a message once, twice at the same time, or again after a while; and then one of
    /// before.
    pub(in crate::sim) async fn send_message(&self, ask: &SessionAsk, reply: Reply) {
        let sent = locked(&self.oracle).messages().write(&ask.row.ask, reply);
        match self.below(3) {
            0 => self.post(&sent).await,
            1 => {
                futures::future::join(self.post(&sent), self.post(&sent)).await;
            }
            _ => {
                self.post(&sent).await;
                let pause = self.below(AGAIN_MS);
                self.sleep(pause).await;
                self.post(&sent).await;
            }
        }
        let number = self.below(u64::MAX);
        let earlier = locked(&self.oracle).messages().again(number);
        if let Some(earlier) = earlier {
            self.post(&earlier).await;
        }
    }

    async fn post(&self, sent: &Sent) {
        let fate = match self.moved_by(sent).await {
            Ok(run) => Fate::Taken(run),
            Err(refusal) => {
                self.refused(&refusal);
                let closed = match &refusal.code {
                    RefusalCode::AskDecided(closed)
                    | RefusalCode::AskExpired(closed)
                    | RefusalCode::AskWithdrawn(closed) => closed,
                    // It does not fit, or what it is about was removed.
                    _ => return,
                };
                if let Some(decision) = &closed.decision {
                    locked(&self.oracle).shown_winner(closed.ask, decision);
                }
                Fate::Beaten
            }
        };
        let mut oracle = locked(&self.oracle);
        let noted = oracle.messages().note(sent, fate);
        match noted {
            Ok(seen) => oracle.count(seen, 1),
            Err(wrong) => oracle.accuse(wrong),
        }
    }

    /// The run that a message moves, or moved before, as a server finds it.
    async fn moved_by(&self, sent: &Sent) -> Result<RunId, Refusal> {
        let by = self.caller();
        let once = (!self.forgets).then(|| sent.once());
        if let Some(once) = &once {
            let row = self.engine.runs().done_before(&by, once).await?;
            if let Some(run) = row.and_then(|row| row.run) {
                return Ok(run);
            }
        }
        let reply = sent.reply.clone();
        let message = sent.message();
        let report = self.engine.asks().reply_by(&by, sent.ask, reply, once, message).await?;
        locked(&self.oracle).shown_report(&report);
        Ok(report.run.id)
    }
}
