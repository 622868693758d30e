//! `ListTasks`: the caller's own tasks, the one that changed last first. Places in the list are
//! sealed for the caller, the realm and the filter.

use super::error::{Result, invalid, refused};
use super::operations::{Client, history};
use super::task;
use super::task_stream::TaskReport;
use edge::request::cursors::Purpose;
use engine::ContextRuns;
use kernel::contracts::{PageRequest, RunPage, SessionRun};
use kernel::session::RunStatus;
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use wire::a2a::request::ListTasksRequest;
use wire::a2a::task::TaskState;

const PAGE_DEFAULT: i32 = 50;
const PAGE_MAX: i32 = 100;
/// How many runs are read in one step where a state is counted.
const COUNT_STEP: usize = 200;

/// What is asked for, once it is checked.
struct TaskQuery {
    runs: ContextRuns,
    state: Option<TaskState>,
    size: usize,
    history: Option<usize>,
    artifacts: bool,
}

impl TaskQuery {
    /// Whether the store's own count is the count of what is asked for.
    fn is_exact(&self) -> bool {
        match self.state {
            None | Some(TaskState::Completed | TaskState::Canceled) => true,
            Some(_) => false,
        }
    }
}

/// The statuses of runs among which tasks of a state are.
fn statuses(state: TaskState) -> Vec<RunStatus> {
    match state {
        TaskState::Unspecified => Vec::new(),
        TaskState::Completed => vec![RunStatus::Completed],
        TaskState::Canceled => vec![RunStatus::Cancelled],
        TaskState::Failed | TaskState::Rejected => vec![RunStatus::Failed],
        TaskState::Submitted
        | TaskState::Working
        | TaskState::InputRequired
        | TaskState::AuthRequired => {
            vec![RunStatus::Running, RunStatus::Waiting, RunStatus::Stuck, RunStatus::Paused]
        }
    }
}

fn wanted(request: &ListTasksRequest) -> Result<TaskQuery> {
    let size = request.page_size.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&size) {
        return Err(invalid("pageSize", format!("`pageSize` is 1 to {PAGE_MAX}, not {size}")));
    }
    let context = Some(request.context_id.clone()).filter(|context| !context.is_empty());
    let state = Some(request.status).filter(|state| *state != TaskState::Unspecified);
    let since = request.status_timestamp_after.map(|at| Millis(at.0));
    Ok(TaskQuery {
        runs: ContextRuns { context, statuses: statuses(request.status), since },
        state,
        size: size.unsigned_abs() as usize,
        // A list has no history unless it is asked for.
        history: history(request.history_length)?.or(Some(0)),
        artifacts: request.include_artifacts.unwrap_or_default(),
    })
}

impl Client {
    /// `ListTasks`.
    pub(super) async fn list(&self, request: &ListTasksRequest) -> Result<Value> {
        let wanted = wanted(request)?;
        let of = Purpose::of(&self.caller, "a2a ListTasks")
            .filtered(&(&self.caller.subject, &self.caller.actor, &wanted.runs, &wanted.state));
        let mut cursor = match request.page_token.is_empty() {
            true => None,
            false => {
                let opened = self.a2a.server.cursors.open(&of, &request.page_token);
                let wrong = |_| invalid("pageToken", "`pageToken` is not one of this list");
                Some(opened.map_err(wrong)?)
            }
        };
        let mut tasks = Vec::new();
        let mut total = 0;
        loop {
            let page = PageRequest { cursor, limit: wanted.size - tasks.len() };
            let RunPage { page, total: all } = self.page(&wanted, &page).await?;
            total = total.max(all);
            for run in page.items {
                tasks.extend(self.listed(&wanted, run).await?);
            }
            cursor = page.next_cursor;
            if cursor.is_none() || tasks.len() >= wanted.size {
                break;
            }
        }
        let total = if wanted.is_exact() { total } else { self.count(&wanted).await? };
        let next = self.a2a.server.cursors.next(&of, cursor).unwrap_or_default();
        Ok(json!({"tasks": tasks, "nextPageToken": next, "pageSize": wanted.size,
            "totalSize": total}))
    }

    async fn page(&self, wanted: &TaskQuery, page: &PageRequest) -> Result<RunPage> {
        let found =
            self.a2a.server.engine.runs().in_contexts(&self.caller, &wanted.runs, page).await;
        found.map_err(|refusal| refused(refusal, "pageToken"))
    }

    /// One task of a page; none where it is in another state than the one that is asked for.
    async fn listed(&self, wanted: &TaskQuery, run: SessionRun) -> Result<Option<Value>> {
        let needs_events = wanted.history != Some(0) || wanted.artifacts;
        let shown = match task::TaskState::of_row(&run.row).filter(|_| !needs_events) {
            Some(state) => self.viewer(&run, &[]).bare(&state, run.row.changed_at),
            None => {
                let engine = &self.a2a.server.engine;
                let found = TaskReport::read(engine, &self.caller, run.row.id).await;
                let found = found.map_err(|refusal| refused(refusal, "pageToken"))?;
                let mut shown =
                    self.viewer(&found.run, &[]).task(&found.task, wanted.history).await;
                if !wanted.artifacts {
                    shown.artifacts.clear();
                }
                shown
            }
        };
        if wanted.state.is_some_and(|state| state != shown.status.state) {
            return Ok(None);
        }
        let has_artifacts = !shown.artifacts.is_empty();
        let mut value = json!(shown);
        if wanted.artifacts && !has_artifacts {
            value["artifacts"] = json!([]);
        }
        Ok(Some(value))
    }

    /// How many tasks are in the state that is asked for: the store knows only about which they
    /// are.
    async fn count(&self, wanted: &TaskQuery) -> Result<u64> {
        let mut count = 0;
        let mut cursor = None;
        loop {
            let found = self.page(wanted, &PageRequest { cursor, limit: COUNT_STEP }).await?.page;
            for run in found.items {
                count += u64::from(self.listed(wanted, run).await?.is_some());
            }
            cursor = found.next_cursor;
            if cursor.is_none() {
                return Ok(count);
            }
        }
    }
}
