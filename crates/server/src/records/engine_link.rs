//! The engine, for the tools of records. They are a part of it, so they are made before it and must
//! not keep it alive.

use engine::{Engine, WeakEngine};
use std::sync::OnceLock;

#[derive(Default)]
pub(crate) struct EngineLink(OnceLock<WeakEngine>);

impl EngineLink {
    /// A server has one engine.
    pub(crate) fn set(&self, engine: &Engine) {
        let _ = self.0.set(engine.downgrade());
    }

    /// None before it is started and after it is gone.
    pub(super) fn get(&self) -> Option<Engine> {
        self.0.get()?.upgrade()
    }
}
