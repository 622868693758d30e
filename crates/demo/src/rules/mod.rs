//! A rule-based model: it answers the same prompt in the same way always, needs no key and no
//! network. A YAML file says what it knows; `docs/reference/rules-model.md` explains every key.

mod dates;
mod conversation;
mod patterns;
mod scope;
mod functions;
mod definition;
mod reading;
mod file;
mod tasks;
mod turn;

#[cfg(test)]
mod tests;

use definition::Definition;
use futures::future::BoxFuture;
use kernel::conversation::llm::{Delta, DeltaSink, Llm, LlmError, Prompt, Turn};
use kernel::definition::plan::mistake::Mistake;
use std::path::Path;

/// The rules of a model that pipelines have where they name no other: the text of a rules file.
pub fn stub_rules() -> &'static str {
    include_str!("stub.yaml")
}

/// The rules of one file, ready to answer.
pub struct Rules {
    definition: Definition,
}

impl Rules {
    /// Reads the text of a rules file; `file` is for messages. All mistakes are reported at once,
    /// in the order of the text.
    pub fn read(text: &str, file: &Path) -> Result<Self, Vec<Mistake>> {
        let definition = file::read(text, &file.display().to_string())?;
        Ok(Self { definition })
    }

    pub fn answer(&self, prompt: &Prompt) -> Result<Turn, LlmError> {
        turn::answer(&self.definition, prompt)
    }
}

impl Llm for Rules {
    fn turn<'a>(
        &'a self,
        prompt: &'a Prompt,
        sink: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<Turn, LlmError>> {
        Box::pin(async move {
            let turn = self.answer(prompt)?;
            if !turn.text.is_empty() {
                sink.delta(Delta::Text(turn.text.clone()));
            }
            for call in &turn.calls {
                sink.delta(Delta::Call(call.tool.clone()));
            }
            Ok(turn)
        })
    }
}
