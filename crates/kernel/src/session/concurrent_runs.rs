//! Several active runs of one session: which of them a fact belongs to, the conversation of each
//! agent, and runs that queue for an agent. Each run is decided by itself: none sees what another
//! one writes before that one has ended.

use super::Session;
use crate::conversation::talk::Talk;
use crate::event::{Fact, QueuedRun, Topic};
use crate::values::ids::{AgentName, RunId};

impl Session {
    /// The run that a fact belongs to, before it is applied; `None` if it is about the session or
    /// about something that has ended.
    pub fn run_of(&self, fact: &Fact) -> Option<RunId> {
        match fact.topic() {
            Topic::Run(run) => Some(run),
            Topic::Frame(frame) => self.frames.get(&frame).map(|frame| frame.run),
            Topic::Call(call) => self.calls.get(&call).map(|call| call.run),
            Topic::Ask(ask) => self.asks.get(&ask).map(|open| open.ask.run),
            Topic::Session => None,
        }
    }

    /// The conversation with an agent that ended runs left.
    pub fn talk_with(&self, agent: &AgentName) -> Option<&Talk> {
        match self.key.space.has_many_runs() {
            true => self.talks.get(agent),
            false => Some(&self.talk),
        }
    }

    /// Keeps a conversation for the runs that follow.
    pub(super) fn keep_talk(&mut self, agent: &AgentName, talk: Talk) {
        match self.key.space.has_many_runs() {
            true => drop(self.talks.insert(agent.clone(), talk)),
            false => self.talk = talk,
        }
    }

    /// The run waits before its turn with an agent until the run ahead of it has ended.
    pub(super) fn queue_run(&mut self, queued: QueuedRun) {
        let QueuedRun { run, behind } = queued;
        let Some(root) = self.runs.get(&run).map(|run| run.root) else { return };
        self.clear_ready(root);
        self.with_run(run, |run| run.behind = Some(behind));
    }

    /// Wakes the runs that queued behind this one.
    pub(super) fn wake_queued_runs(&mut self, ended: RunId) {
        let mut roots = Vec::new();
        for run in self.runs.values_mut().filter(|run| run.behind == Some(ended)) {
            run.behind = None;
            roots.push(run.root);
        }
        roots.into_iter().for_each(|root| self.set_ready(root));
    }
}
