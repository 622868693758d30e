//! A failed step of a thread with a proposal: it is shown, and one key accepts it. Other actions on
//! failed steps are in `waypost inbox`.

use super::thread_state::standing;
use super::{ASKS_MAX, Chat};
use crate::asking;
use crate::asking::prompts::{Answer, Prompts, Unanswered};
use crate::exit::Result;
use crate::proposals;
use crate::remote::client::Request;
use serde_json::json;
use wire::conversations::{ThreadAnswer, ThreadStatus};
use wire::rest::{Ask, Proposal};

const CHOICE: &str = "take the proposal? [t]ake [l]ater> ";
/// How many seconds the run may take after that before we look for its outcome ourselves.
const WAIT_SECONDS: u64 = 30;

/// Whether the thread waits for what someone does about a failed step.
pub(super) fn is_stuck(outcome: &Result<ThreadAnswer>) -> bool {
    match outcome {
        Ok(answer) => answer.status == ThreadStatus::Error,
        Err(failure) => failure.code == "run_stuck",
    }
}

impl Chat {
    /// The failed step of this thread about which something is proposed to a person.
    pub(super) async fn proposed(&self) -> Result<Option<(Ask, Proposal)>> {
        if !self.lines.is_person {
            return Ok(None);
        }
        let session = self.session().await?.id;
        let open = Request::to(&["asks"]).with("status", Some("open"));
        let asks: Vec<Ask> =
            self.client.items(open.with("session", Some(session)), ASKS_MAX).await?;
        let proposing = |ask: Ask| ask.proposal.clone().map(|proposal| (ask, proposal));
        Ok(asks.into_iter().find_map(proposing))
    }

    /// Shows what is proposed. Where the person takes it, the state of the thread after that.
    pub(super) async fn take(&mut self, ask: &Ask, proposal: &Proposal) -> Answer<ThreadAnswer> {
        self.show_anew(&asking::card(ask, None)).await?;
        let read = |word: &str| match word {
            "t" | "take" => Ok(Ok(())),
            "l" | "later" => Ok(Err(Unanswered::Later)),
            _ => Err("t or l; `waypost inbox` offers what else can be done".to_owned()),
        };
        self.choice(CHOICE, "t or l", read).await?;
        let request = Request::to(&["asks", &ask.id]).waiting(WAIT_SECONDS);
        match self.client.post(request, &json!(proposals::accepting_reply(proposal))).await {
            // Someone else did something about it: it says who, and the outcome is shown.
            Err(failure) if failure.code == "ask_decided" => self.output.failure(&failure),
            sent => drop(sent?),
        }
        Ok(self.outcome(standing).await?)
    }
}
