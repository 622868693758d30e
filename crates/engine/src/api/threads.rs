//! Talking to an agent: what a person says in a thread is a run of the agent's own plan, in the
//! session that keeps the thread's conversation.

use crate::api::agents::no_agent;
use crate::command::Command;
use crate::handles::Threads;
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::request::{RunMetadata, RunReport, RunRequest, RunSession, RunTarget, ThreadMessage};
use kernel::contracts::SessionRef;
use kernel::definition::agent::talk_id;
use kernel::session::RunStatus;
use kernel::tool::call::Caller;
use kernel::values::ids::{AgentName, SessionKey, Space};
use serde_json::json;

impl Threads<'_> {
    /// Says something to an agent in a thread and waits until its run ends or pauses, at most so
    /// long. A thread has one run at a time: while another one is open this is a conflict that
    /// names its asks, unless it only waits for a login, which it then gives up.
    pub async fn say(
        self,
        caller: &Caller,
        saying: ThreadMessage<'_>,
        wait_ms: u64,
    ) -> Result<RunReport> {
        let ThreadMessage { agent, thread, text, once, trace, occasion } = saying;
        let agent = self.spoken_to(caller, agent)?;
        let request = RunRequest {
            target: RunTarget::Plan(talk_id(&agent)),
            input: json!({"user_request": text}),
            session: RunSession::Thread(thread.to_owned()),
            once,
            about: RunMetadata { trace, occasion, ..RunMetadata::default() },
        };
        self.shared.runs().start(caller, request, wait_ms).await
    }

    /// The session that keeps a thread's conversation.
    pub fn key(caller: &Caller, thread: &str) -> SessionKey {
        caller.key(Space::thread(), thread)
    }

    fn spoken_to(self, caller: &Caller, agent: Option<&AgentName>) -> Result<AgentName> {
        if let Some(name) = agent {
            let known = self.shared.catalog().agent(caller, name).ok_or_else(|| no_agent(name))?;
            return Ok(known.agent.name.clone());
        }
        let all = self.shared.catalog().agents(caller);
        match all.as_slice() {
            [one] => Ok(one.agent.name.clone()),
            [] => {
                let message = "there is no agent to talk to";
                Err(Refusal::new(RefusalCode::NoAgent, message)
                    .hint("put one into `agents/`, or `waypost agent apply`"))
            }
            several => {
                let names: Vec<&str> = several.iter().map(|one| one.agent.name.as_str()).collect();
                let message = format!("there are {} agents, and none is named", several.len());
                let hint = format!(
                    "say which of {}, or set `default` in `[agents]` of waypost.toml",
                    names.join(", ")
                );
                let agents = several.iter().map(|one| one.agent.name.clone()).collect();
                Err(Refusal::new(RefusalCode::AgentNeeded(agents), message).hint(hint))
            }
        }
    }

    /// A run of this thread that only waits for a login gives way to what is said now: it ends,
    /// durably, before the next one begins. Its driver decides, so that a login that is done
    /// meanwhile is not given up.
    pub(crate) async fn give_up_login(self, caller: &Caller, thread: &str) -> Result<()> {
        let named = SessionRef::Key { key: thread.into(), space: Some(Space::thread()) };
        let row = self.shared.store.session(&caller.realm, &caller.meant(&named)).await?;
        let open = [RunStatus::Waiting, RunStatus::Running];
        let Some(run) = row.filter(|row| open.contains(&row.status)).and_then(|row| row.run) else {
            return Ok(());
        };
        let key = Self::key(caller, thread);
        let wait_ms = self.shared.limits.run_wait_ms;
        loop {
            let by = caller.subject.clone();
            let command = |answer| Command::GiveUpLogin { run, by, answer };
            match self.shared.runs().wait_for(&key, run, wait_ms, command).await {
                // It was being looked at, and is still not done.
                Ok(report) if report.run.status == RunStatus::Waiting => {}
                Ok(_) => return Ok(()),
                // What it is then, the start of the next one tells.
                Err(Refusal { code: RefusalCode::NoLogin, .. }) => return Ok(()),
                Err(refusal) => return Err(refusal),
            }
        }
    }
}
