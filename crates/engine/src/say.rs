//! Talking to an agent: what a person says in a thread is a run of the agent's own plan, in the
//! session that keeps the thread's conversation.

use crate::agents::no_agent;
use crate::refusal::{Refusal, RefusalKind};
use crate::request::{Once, RunReport, RunRequest, RunSession, RunTarget};
use crate::roster::talk_id;
use crate::shared::Engine;
use kernel::ask::AskBody;
use kernel::call::Caller;
use kernel::contracts::{SessionAsk, SessionRef};
use kernel::ids::{AgentName, SessionKey, Space};
use kernel::session::RunStatus;
use serde_json::json;

impl Engine {
    /// Says something to an agent in a thread and waits until its run ends or pauses, at most so
    /// long. A thread has one run at a time: while another one is open this is a conflict that
    /// names its asks, unless it only waits for a login, which it then gives up. Without a name the
    /// only agent of the realm is meant.
    pub async fn say(
        &self,
        caller: &Caller,
        agent: Option<&AgentName>,
        thread: &str,
        text: &str,
        wait_ms: u64,
        once: Option<Once>,
    ) -> Result<RunReport, Refusal> {
        let agent = self.spoken_to(caller, agent)?;
        let request = RunRequest {
            target: RunTarget::Plan(talk_id(&agent)),
            input: json!({"user_request": text}),
            session: RunSession::Thread(thread.to_owned()),
            once,
        };
        self.run(caller, request, wait_ms).await
    }

    /// The session that keeps a thread's conversation.
    pub fn thread_key(caller: &Caller, thread: &str) -> SessionKey {
        SessionKey { realm: caller.realm.clone(), space: Space::thread(), id: thread.into() }
    }

    fn spoken_to(&self, caller: &Caller, agent: Option<&AgentName>) -> Result<AgentName, Refusal> {
        if let Some(name) = agent {
            let known = self.agent(caller, name).ok_or_else(|| no_agent(name))?;
            return Ok(known.agent.name.clone());
        }
        let all = self.agents(caller);
        match all.as_slice() {
            [one] => Ok(one.agent.name.clone()),
            [] => {
                let message = "there is no agent to talk to";
                Err(Refusal::new(RefusalKind::NotFound, "no_agent", message)
                    .hint("put one into `agents/`, or `waypost agent apply`"))
            }
            several => {
                let names: Vec<&str> = several.iter().map(|one| one.agent.name.as_str()).collect();
                let message = format!("there are {} agents, and none is named", several.len());
                Err(Refusal::new(RefusalKind::BadRequest, "agent_needed", message)
                    .hint(format!("say which, or set `default_agent`: {}", names.join(", ")))
                    .detail(json!({"agents": names})))
            }
        }
    }

    /// A run of this thread that only waits for a login gives way to what is said now: it ends,
    /// durably, before the next one begins.
    pub(crate) async fn give_up_login(&self, caller: &Caller, thread: &str) -> Result<(), Refusal> {
        let thread = SessionRef::Key { key: thread.into(), space: Some(Space::thread()) };
        let row = self.shared.store.session(&caller.realm, &thread).await?;
        let waiting = row.filter(|row| row.status == RunStatus::Waiting);
        let Some(run) = waiting.and_then(|row| row.run) else { return Ok(()) };
        let report = self.run_report(caller, run).await?;
        let login = |ask: &SessionAsk| matches!(ask.row.ask.body, AskBody::Authorize { .. });
        if report.asks.is_empty() || !report.asks.iter().all(login) {
            return Ok(());
        }
        match self.cancel(caller, run).await {
            Ok(_) => Ok(()),
            // It ended meanwhile, which is as good.
            Err(refusal) if refusal.code == "run_over" => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }
}
