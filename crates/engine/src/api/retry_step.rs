//! Retries a failed step without looking its ask up first.

use crate::handles::Runs;
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::request::RunReport;
use kernel::ask::{Ask, AskBody, FixAction, Reply};
use kernel::tool::call::Caller;
use kernel::values::ids::RunId;

impl Runs<'_> {
    /// Answers the one open `Fix` of a run with `retry`, and waits like `Asks::reply`.
    pub async fn retry(self, caller: &Caller, run: RunId, wait_ms: u64) -> Result<RunReport> {
        let report = self.report(caller, run).await?;
        let asks = report.asks.iter().map(|open| &open.row.ask);
        let fixes: Vec<&Ask> = asks.filter(|ask| matches!(ask.body, AskBody::Fix { .. })).collect();
        match fixes.as_slice() {
            [one] => {
                let reply = Reply::fix(FixAction::Retry);
                Ok(self.shared.asks().reply(caller, one.id, reply, None, wait_ms).await?.run)
            }
            [] => {
                let status = report.run.status;
                let message =
                    format!("run `{run}` has nothing to try again: it is {}", status.name());
                Err(Refusal::new(RefusalCode::NothingToRetry(run, status), message)
                    .hint("only a failed step can be tried again"))
            }
            several => {
                let asks: Vec<Ask> = several.iter().map(|ask| (*ask).clone()).collect();
                let message = format!("run `{run}` has {} failed steps", asks.len());
                Err(Refusal::new(RefusalCode::RetryAmbiguous(asks), message)
                    .hint("answer each of them"))
            }
        }
    }
}
