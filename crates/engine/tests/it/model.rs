//! A model that answers as a test says.

use engine::{Model, Models};
use futures::future::BoxFuture;
use kernel::conversation::llm::{
    Delta, DeltaSink, Llm, LlmError, LlmErrorKind, Message, ModelCall, Prompt, Turn, Usage,
};
use kernel::values::names::for_models;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What a model does when it is asked.
pub enum Says {
    /// It answers, each word as it comes.
    Turn(Turn),
    Fails(LlmErrorKind),
    /// It says the beginning of something and never ends.
    Hangs(&'static str),
}

/// A model that goes by a list.
#[derive(Default)]
pub struct Scripted {
    says: Mutex<VecDeque<Says>>,
    prompts: Mutex<Vec<Prompt>>,
    /// How many turns were given up.
    dropped: AtomicUsize,
}

/// Counts a turn that is dropped before it ends.
struct UnderWay<'a>(&'a Scripted, bool);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Llm for Scripted {
    fn turn<'a>(
        &'a self,
        prompt: &'a Prompt,
        sink: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<Turn, LlmError>> {
        Box::pin(async move {
            self.prompts.lock().unwrap().push(prompt.clone());
            let says = self.says.lock().unwrap().pop_front();
            let mut under_way = UnderWay(self, false);
            let result = match says {
                Some(Says::Turn(turn)) => {
                    for word in turn.text.split_inclusive(' ') {
                        sink.delta(Delta::Text(word.to_owned()));
                    }
                    Ok(turn)
                }
                Some(Says::Fails(kind)) => Err(LlmError::new(kind, "as told")),
                Some(Says::Hangs(word)) => {
                    sink.delta(Delta::Text(word.to_owned()));
                    std::future::pending().await
                }
                None => Err(LlmError::new(LlmErrorKind::BadRequest, "it has nothing more to say")),
            };
            under_way.1 = true;
            result
        })
    }
}

impl Scripted {
    pub fn new(says: impl IntoIterator<Item = Says>) -> Arc<Self> {
        Arc::new(Self { says: Mutex::new(says.into_iter().collect()), ..Self::default() })
    }

    /// As the only model, called `fast`, at a millionth of a dollar for each token.
    pub fn models(self: &Arc<Self>) -> Models {
        self.models_within(None)
    }

    pub fn models_within(self: &Arc<Self>, timeout_ms: Option<u64>) -> Models {
        let price = |usage: &Usage| Some(usage.input + usage.output);
        let model = Model { timeout_ms, price: Some(Arc::new(price)), ..Model::new(self.clone()) };
        Models::default().with("fast", model)
    }

    pub fn asked(&self) -> usize {
        self.prompts.lock().unwrap().len()
    }

    pub fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }

    pub fn prompt(&self, index: usize) -> Prompt {
        self.prompts.lock().unwrap()[index].clone()
    }

    pub fn last(&self) -> Prompt {
        self.prompts.lock().unwrap().last().unwrap().clone()
    }
}

fn turn(text: &str, calls: Vec<ModelCall>) -> Says {
    let usage = Usage { input: 10, output: 2, ..Usage::default() };
    Says::Turn(Turn { text: text.to_owned(), calls, usage, ..Turn::default() })
}

/// It answers.
pub fn text(text: &str) -> Says {
    turn(text, Vec::new())
}

/// It calls these tools.
pub fn calls<const N: usize>(calls: [(&str, Value); N]) -> Says {
    let call = |(tool, arguments): (&str, Value)| ModelCall {
        id: "same".to_owned(),
        tool: if tool == "request_clarification" { tool.to_owned() } else { for_models(tool) },
        arguments: Arc::new(arguments),
    };
    turn("", calls.into_iter().map(call).collect())
}

/// A prompt's conversation, each message as one line.
pub fn told(prompt: &Prompt) -> Vec<String> {
    let line = |message: &Message| match message {
        Message::System { .. } => None,
        Message::User { text } => Some(format!("user: {text}")),
        Message::Assistant { text, calls, .. } => {
            let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
            Some(format!("assistant: {text}{}", tools.join(", ")))
        }
        Message::Result { tool, text, .. } => Some(format!("{tool}: {text}")),
    };
    prompt.messages.iter().filter_map(line).collect()
}
