//! A scene whose lines are made up while it is played, by someone who sees how far it is.

use super::Scene;
use super::stage::Stage;
use kernel::ask::Ask;
use kernel::conversation::llm::{Message, Prompt};
use kernel::event::{Closing, Fact, TurnKind};
use kernel::session::{AgentPhase, Frame};

/// A scene that is being played.
pub struct Improvised {
    stage: Stage,
}

/// What a scene cannot go on without.
pub enum Waits<'a> {
    /// A model's answer.
    Turn(TurnKind),
    /// A person's reply.
    Reply(&'a Ask),
}

impl Improvised {
    /// Plays the scene as far as its own lines lead.
    pub fn begin(scene: &Scene) -> Self {
        let mut stage = Stage::new(scene);
        stage.begin();
        stage.run();
        Self { stage }
    }

    /// What it waits for; nothing once all its runs are over.
    pub fn waits_for(&self) -> Option<Waits<'_>> {
        let session = &self.stage.session;
        let turn = |frame: &Frame| match frame.agent.as_ref()?.phase {
            AgentPhase::Turn { kind, .. } => Some(kind),
            _ => None,
        };
        if let Some(kind) = session.frames.values().find_map(turn) {
            return Some(Waits::Turn(kind));
        }
        let open = session.asks.values().filter(|open| open.is_open()).map(|open| &open.ask);
        open.min_by_key(|ask| ask.created_at).map(Waits::Reply)
    }

    /// The model answers so.
    pub fn answer(&mut self, line: String) {
        // A turn that was given up has used no line.
        let before = self.stage.turns_over();
        self.stage.scene.model.resize(before, String::new());
        self.stage.scene.model.push(line);
        self.stage.run();
    }

    /// A person replies so.
    pub fn reply(&mut self, line: String) {
        let before = self.stage.asks_over();
        self.stage.scene.replies.resize(before, String::new());
        self.stage.scene.replies.push(line);
        self.stage.run();
    }

    /// Someone cancels the run; the next one begins, if there is one.
    pub fn cancel(&mut self) {
        let mut runs = self.stage.session.runs.values();
        let Some(run) = runs.find(|run| run.closing.is_none()).map(|run| run.id) else { return };
        self.stage.record(Fact::RunClosing { run, why: Closing::Cancelled("bob".into()) });
        self.stage.run();
    }

    /// Another process takes over: it knows the journal and nothing else.
    pub fn restart(&mut self) {
        let mut stage = Stage::new(&self.stage.scene);
        stage.replay(&self.stage.events);
        stage.prompts = std::mem::take(&mut self.stage.prompts);
        self.stage = stage;
        self.stage.run();
    }

    /// All that models were asked so far.
    pub fn prompts(&self) -> &[Prompt] {
        &self.stage.prompts
    }

    /// The session's conversation, as a model would read it now.
    pub fn said(&self) -> Vec<Message> {
        self.stage.said(&self.stage.session.talk)
    }

    /// What happened, a line for each event.
    pub fn journal(&self) -> String {
        self.stage.journal()
    }
}
