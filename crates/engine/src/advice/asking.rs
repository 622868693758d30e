//! A conversation with a model that must answer with one JSON object, and is asked again while the
//! answer cannot be used.

use crate::observe::counts::{add, count};
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::shared::Shared;
use crate::system::zones::local_time;
use kernel::conversation::llm::{
    LlmError, Message, NullDeltaSink, Prompt, Stop, ToolChoice, Turn, Usage,
};
use kernel::values::caller::Caller;
use std::sync::Arc;

/// How much of an answer a model is shown again.
const SHOWN_CHARS_MAX: usize = 60_000;

/// A model, and what was said.
pub(crate) struct ModelConversation<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    /// Whose turns they are.
    caller: &'a Caller,
    pub(crate) model: String,
    messages: Vec<Message>,
    pub(crate) took: TurnsUsage,
}

/// What turns took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TurnsUsage {
    pub(crate) turns: u32,
    pub(crate) usage: Usage,
    /// What they cost, as far as prices are known.
    pub(crate) cost_micros: Option<u64>,
    /// What they would have cost without a cache, where one was used.
    pub(crate) uncached_micros: Option<u64>,
}

impl TurnsUsage {
    /// Takes one more turn in, which was counted when it began.
    fn add(&mut self, usage: Usage, cost_micros: Option<u64>, uncached_micros: Option<u64>) {
        self.usage.input += usage.input;
        self.usage.cached += usage.cached;
        self.usage.cache_written += usage.cache_written;
        self.usage.output += usage.output;
        let Some(cost) = cost_micros else { return };
        let before = self.cost_micros.unwrap_or(0);
        self.cost_micros = Some(before + cost);
        // A turn without a cache costs the same without one.
        if uncached_micros.is_some() || self.uncached_micros.is_some() {
            let before = self.uncached_micros.unwrap_or(before);
            self.uncached_micros = Some(before + uncached_micros.unwrap_or(cost));
        }
    }
}

impl<'a> ModelConversation<'a> {
    pub(crate) fn new(
        shared: &'a Arc<Shared>,
        caller: &'a Caller,
        model: String,
        messages: Vec<Message>,
    ) -> Self {
        Self { shared, caller, model, messages, took: TurnsUsage::default() }
    }

    /// One turn. A model that cannot answer, or refuses, is not asked again.
    pub(crate) async fn turn(&mut self) -> Result<Turn> {
        let now = self.shared.clock.now();
        let (zone, _) = local_time(self.shared.zones.as_ref(), now, None);
        let prompt = Prompt {
            messages: self.messages.clone(),
            tools: Vec::new(),
            choice: ToolChoice::None,
            answer: None,
            latest: None,
            now,
            zone,
            trace: None,
        };
        let counters = &self.shared.counters;
        count(&counters.turns_started);
        self.took.turns += 1;
        let asked = self.shared.one_turn(self.caller, &self.model, &prompt, &NullDeltaSink).await;
        let turn = asked.result.map_err(|error| {
            count(&counters.turns_failed);
            model_failed(&self.model, &error)
        })?;
        count(&counters.turns_finished);
        add(&counters.tokens_read, turn.usage.input);
        add(&counters.tokens_written, turn.usage.output);
        add(&counters.cost_micros, asked.cost_micros.unwrap_or(0));
        self.took.add(turn.usage, asked.cost_micros, asked.uncached_micros);
        if turn.stop == Stop::Refused {
            let message = format!("model `{}` refuses to answer", self.model);
            return Err(Refusal::new(RefusalCode::ModelFailed, message)
                .hint("say otherwise what is wanted, or ask another model"));
        }
        Ok(turn)
    }

    /// Rejects an answer: the model gets the reason with the next turn.
    pub(crate) fn object(&mut self, turn: &Turn, why: Message) {
        let text = match turn.text.trim() {
            "" => "(no answer)".to_owned(),
            text => text.chars().take(SHOWN_CHARS_MAX).collect(),
        };
        self.messages.push(Message::Assistant { text, calls: Vec::new(), native: None });
        self.messages.push(why);
    }
}

fn model_failed(model: &str, error: &LlmError) -> Refusal {
    let message = format!("model `{model}` did not answer: {error}");
    let refusal = Refusal::new(RefusalCode::ModelFailed, message);
    Refusal { hint: error.hint.clone(), ..refusal }
}
