//! Cases of pipelines: requests for one case are answered in turn. A run that takes longer than its
//! request continues and keeps its turn; one that waits for a person gives it back.

use crate::command::Command;
use crate::handles::Cases;
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::request::{
    CaseReport, RunMetadata, RunReport, RunRequest, RunSession, RunTarget, SubmitOptions,
};
use crate::shared::Shared;
use crate::system::clock::timeout;
use crate::waiting::case_queue::QueueTicket;
use crate::waiting::idempotency::ClaimOutcome;
use kernel::contracts::policy::Resource;
use kernel::definition::pipeline::{Case, Pipeline, Tally, TallyRow};
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::ids::{Millis, PipelineName, RunId, SessionKey, Space};
use std::sync::Arc;

impl Cases<'_> {
    /// How often cases of a pipeline took which path, the most frequent first.
    pub async fn tallies(self, caller: &Caller, pipeline: &PipelineName) -> Result<Vec<TallyRow>> {
        if !self.shared.gate.reads(caller, Resource::Pipeline(pipeline.as_str())) {
            return Ok(Vec::new());
        }
        Ok(self.shared.store.tallies(&caller.realm, pipeline).await?)
    }

    /// The session that keeps a case.
    fn key(caller: &Caller, pipeline: &PipelineName, case: &str) -> SessionKey {
        caller.key(Space::case(pipeline), case)
    }

    /// Takes a case and waits until its run ends or pauses, at most so long. Requests for one case
    /// wait for each other, and are taken in the order in which they came. A case that waits for a
    /// person answers at once with the run that does. A caller that does not wait any more gives up
    /// its place; a run that began continues. A pipeline that changes meanwhile is for those who
    /// come later.
    pub async fn submit(
        self,
        caller: &Caller,
        pipeline: &Arc<Pipeline>,
        case: Case,
        options: SubmitOptions,
    ) -> Result<CaseReport> {
        let SubmitOptions { wait_ms, once, trace, mut occasion } = options;
        let resource = Resource::Pipeline(pipeline.name.as_str());
        self.shared.gate.permit(caller, Act::Submit, resource)?;
        // Pinned before it stands in line: the path that is counted is the one that is taken.
        let closure = self.shared.catalog.closure(&caller.realm, &pipeline.plan);
        // A repeat need not wait for its own first request.
        if let ClaimOutcome::Repeat(row) = self.shared.turn(caller, once.as_ref()).await? {
            return self.shared.runs().repeated(caller, &row, wait_ms).await.map(came_of);
        }
        let closure = closure?;
        let key = Self::key(caller, &pipeline.name, &case.id);
        let deadline = self.shared.clock.now().plus_ms(wait_ms);
        let Some(ticket) = self.wait_turn(&key, wait_ms).await? else {
            return Ok(CaseReport::Late(None));
        };
        let reason_chars_max = self.shared.limits.tally_reason_chars_max;
        let tally = Tally::of(pipeline, &case, reason_chars_max);
        occasion.kind = Some(tally.reason.to_string().into());
        let request = RunRequest {
            target: RunTarget::Pinned(closure),
            input: case.input,
            session: RunSession::Case(pipeline.name.clone(), case.id),
            once,
            about: RunMetadata { trace, tally: Some(tally), occasion, message: None },
        };
        let held = CaseTurn { shared: self.shared.clone(), key, run: None, ticket: Some(ticket) };
        self.take_turn(caller, pipeline, request, held, deadline).await
    }

    /// Waits in the queue of a case until it is its turn; nothing where that takes too long.
    async fn wait_turn(self, key: &SessionKey, wait_ms: u64) -> Result<Option<QueueTicket>> {
        let most = self.shared.limits.case_queue_max;
        let turn = self.shared.case_queues.clone().wait_turn(key.clone(), most);
        match timeout(self.shared.clock.as_ref(), wait_ms, turn).await {
            Some(Some(ticket)) => Ok(Some(ticket)),
            Some(None) => {
                let message = format!("{most} requests wait for case `{}` already", key.id);
                Err(Refusal::new(RefusalCode::CaseBusy, message)
                    .hint("send it again in a moment, or raise `case_queue_max` in [limits]"))
            }
            None => Ok(None),
        }
    }

    /// Starts a case's run, once the run before it is over.
    async fn take_turn(
        self,
        caller: &Caller,
        pipeline: &Pipeline,
        request: RunRequest,
        mut held: CaseTurn,
        deadline: Millis,
    ) -> Result<CaseReport> {
        let resource = Resource::Pipeline(pipeline.name.as_str());
        loop {
            // The caller may have lost the right to submit while it stood in line.
            self.shared.gate.permit(caller, Act::Submit, resource)?;
            let run = self.shared.runs().new_id();
            held.run = Some(run);
            let left = self.left_ms(deadline);
            match self.shared.runs().start_as(caller, run, request.clone(), left).await {
                Ok(report) => {
                    held.run = report.is_moving().then_some(report.run.id);
                    return Ok(came_of(report));
                }
                Err(refusal) => {
                    held.run = None;
                    // It was removed, or its session was, before it could be reported.
                    if refusal.code == RefusalCode::NoRun(run) {
                        let ended = self.shared.runs().report(caller, run).await;
                        return Ok(ended.map_or(CaseReport::Late(None), came_of));
                    }
                    // It was not started by us, or a reply moved it: no one keeps its turn.
                    let before = active_run(&refusal).ok_or(refusal)?;
                    let left = self.left_ms(deadline);
                    let report = match self.shared.runs().settled(caller, before, left).await {
                        // Whose run it is, is not for this caller to know.
                        Err(Refusal { code: RefusalCode::NoRun(_), .. })
                            if !self.shared.gate.is_free(caller, Act::Read) =>
                        {
                            return Ok(CaseReport::Late(None));
                        }
                        report => report?,
                    };
                    if report.run.status.is_over() && self.left_ms(deadline) > 0 {
                        continue;
                    }
                    if report.is_moving() || report.run.status.is_over() {
                        return Ok(CaseReport::Late(None));
                    }
                    let is_agents = self.shared.took_agents_road(&held.key, before).await?;
                    return Ok(CaseReport::Waits { report, deterministic: !is_agents });
                }
            }
        }
    }

    fn left_ms(self, deadline: Millis) -> u64 {
        deadline.0.saturating_sub(self.shared.clock.now().0).max(0).unsigned_abs()
    }
}

/// A case's turn, with the run that has it. If that still moves when this is dropped, the turn
/// stays with it until it is over or waits.
struct CaseTurn {
    shared: Arc<Shared>,
    key: SessionKey,
    run: Option<RunId>,
    ticket: Option<QueueTicket>,
}

impl Drop for CaseTurn {
    fn drop(&mut self) {
        let (Some(run), Some(ticket)) = (self.run, self.ticket.take()) else { return };
        let shared = self.shared.clone();
        let key = self.key.clone();
        let kept = async move {
            // A failure gives the turn back too: the next one looks for itself.
            let over = shared.ask(&key, |answer| Command::Await { run, answer }).await;
            drop((over, ticket));
        };
        self.shared.spawn.task("case", Box::pin(kept));
    }
}

/// The outcome of a case's own run.
fn came_of(report: RunReport) -> CaseReport {
    match report.is_moving() {
        true => CaseReport::Late(Some(report)),
        false => CaseReport::Ran(report),
    }
}

/// The run that is in the way, where that is why a run was refused.
fn active_run(refusal: &Refusal) -> Option<RunId> {
    match &refusal.code {
        RefusalCode::RunActive(active) => Some(active.run),
        _ => None,
    }
}
