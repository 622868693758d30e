//! Each provider's adapter against the fake of its wire: whole conversations, and everything that
//! can go wrong on the way.

use kernel::conversation::llm::{
    AnswerForm, Delta, DeltaSink, Llm, LlmError, LlmErrorKind, Message, NullDeltaSink, Prompt,
    Stop, ToolCard, ToolChoice, Turn, Usage,
};
use kernel::values::ids::Millis;
use kernel::values::secret::Secret;
use llms::config::{ModelConfig, ModelKind, Remote};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use testkit::harness::wait_for;
use testkit::llms::{Act, FakeModels, KEY};

const LIMIT: Duration = Duration::from_secs(60);

/// A provider and the beginning of the names of its models.
#[derive(Clone, Copy)]
struct Wire {
    name: &'static str,
    kind: fn(Remote) -> ModelKind,
    model: &'static str,
}

const OPENAI: Wire = Wire { name: "openai", kind: ModelKind::OpenAi, model: "gpt-6.1-terra" };
const ANTHROPIC: Wire =
    Wire { name: "anthropic", kind: ModelKind::Anthropic, model: "claude-sonnet-5-5" };
const GEMINI: Wire = Wire { name: "gemini", kind: ModelKind::Gemini, model: "gemini-3.8-flash" };
const WIRES: [Wire; 3] = [OPENAI, ANTHROPIC, GEMINI];

fn fake() -> &'static FakeModels {
    static FAKE: OnceLock<FakeModels> = OnceLock::new();
    FAKE.get_or_init(FakeModels::start)
}

fn config(wire: Wire, act: &str) -> ModelConfig {
    let remote = Remote {
        model: format!("{}--{act}", wire.model),
        base_url: Some(fake().url()),
        key: Some(Secret::new(KEY)),
        headers: Vec::new(),
    };
    ModelConfig {
        name: wire.name.to_owned(),
        kind: (wire.kind)(remote),
        max_tokens: None,
        temperature: None,
        timeout_ms: None,
        price: None,
        origin: String::new(),
    }
}

fn remote(config: &mut ModelConfig) -> &mut Remote {
    match &mut config.kind {
        ModelKind::OpenAi(remote) | ModelKind::Anthropic(remote) | ModelKind::Gemini(remote) => {
            remote
        }
        ModelKind::Rules { .. } => unreachable!(),
    }
}

fn opened(config: &ModelConfig) -> Arc<dyn Llm> {
    llms::open(config).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

fn model(wire: Wire, act: &str) -> Arc<dyn Llm> {
    opened(&config(wire, act))
}

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

fn prompt(messages: Vec<Message>) -> Prompt {
    Prompt {
        trace: None,
        messages,
        tools: Vec::new(),
        choice: ToolChoice::Auto,
        answer: None,
        latest: None,
        now: Millis(1_794_729_600_000),
        zone: "UTC".to_owned(),
    }
}

fn weather() -> ToolCard {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    });
    ToolCard {
        name: "get_weather".to_owned(),
        description: "The weather in a city.".to_owned(),
        input_schema: Arc::new(schema),
    }
}

fn route() -> AnswerForm {
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {"type": "string", "enum": ["allow", "refuse"]},
            "note": {"type": "string"},
            "allowed_tool_types": {
                "type": "array",
                "items": {"type": "string", "enum": ["calendar", "maps"]},
            },
        },
        "required": ["decision", "note", "allowed_tool_types"],
        "additionalProperties": false,
    });
    AnswerForm { name: "route".to_owned(), schema: Arc::new(schema) }
}

#[derive(Default)]
struct Heard(Mutex<Vec<Delta>>);

impl DeltaSink for Heard {
    fn delta(&self, delta: Delta) {
        self.0.lock().unwrap().push(delta);
    }
}

/// What a turn came to with nothing but a word of greeting.
async fn greeted(wire: Wire, act: &str) -> Result<Turn, LlmError> {
    model(wire, act).turn(&prompt(vec![user("Hi")]), &NullDeltaSink).await
}

async fn failed(wire: Wire, act: &str) -> LlmError {
    let error = match greeted(wire, act).await {
        Ok(turn) => panic!("{} {act}: {turn:?}", wire.name),
        Err(error) => error,
    };
    let shown = format!("{error:?}");
    assert!(!shown.contains(KEY), "a key is never told: {shown}");
    assert!(error.message.contains(wire.name), "{shown}");
    error
}

#[tokio::test]
async fn a_model_answers_with_text() {
    for wire in WIRES {
        let heard = Heard::default();
        let prompt = prompt(vec![Message::System { text: "Be kind.".to_owned() }, user("Hi")]);
        let turn = model(wire, "says").turn(&prompt, &heard).await.unwrap();
        let said = "Hello there, dear friend.";
        // The others do not say what they wrote to their cache.
        let cache_written = if wire.name == "anthropic" { 2 } else { 0 };
        let usage = Usage { input: 12, cached: 4, cache_written, output: 5 };
        let expected = Turn { text: said.to_owned(), usage, ..Turn::default() };
        assert_eq!(turn, expected, "{}", wire.name);
        let heard = heard.0.into_inner().unwrap();
        let texts = heard.iter().map(|delta| match delta {
            Delta::Text(text) => text.as_str(),
            Delta::Call(tool) => panic!("{tool}"),
        });
        assert_eq!(texts.clone().collect::<String>(), said);
        assert!(texts.count() > 1, "{}: it is heard while it is said", wire.name);
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    for wire in WIRES {
        let turn = greeted(wire, "whole").await.unwrap();
        assert_eq!(turn.text, "Hello there, dear friend.", "{}", wire.name);
        assert_eq!(turn.usage.output, 5, "{}", wire.name);
    }
}

/// The conversation after a turn whose calls all came to this.
fn answered(messages: &mut Vec<Message>, turn: Turn, text: &str) {
    let calls = turn.calls.clone();
    let text_said = turn.text;
    let native = turn.native;
    messages.push(Message::Assistant { text: text_said, calls: turn.calls, native });
    messages.extend(calls.into_iter().map(|call| Message::Result {
        id: call.id,
        tool: call.tool,
        text: text.to_owned(),
        failed: false,
    }));
}

#[tokio::test]
async fn a_model_calls_tools_and_gets_their_results() {
    for wire in WIRES {
        for act in ["calls", "thinks"] {
            let model = model(wire, act);
            let mut prompt = prompt(vec![user("How is the weather in Paris and Rome?")]);
            prompt.tools = vec![weather()];
            let heard = Heard::default();
            let turn = model.turn(&prompt, &heard).await.unwrap();
            let calls: Vec<(&str, &Value)> =
                turn.calls.iter().map(|call| (&*call.tool, &*call.arguments)).collect();
            let paris = json!({"city": "Paris"});
            let rome = json!({"city": "Rome"});
            assert_eq!(calls, [("get_weather", &paris), ("get_weather", &rome)], "{}", wire.name);
            let begun = Delta::Call("get_weather".to_owned());
            let heard = heard.0.into_inner().unwrap();
            assert_eq!(heard.iter().filter(|delta| **delta == begun).count(), 2);
            answered(&mut prompt.messages, turn, "mild");
            // What the model thought and signed goes back: the fake refuses a call without it.
            let turn = model.turn(&prompt, &NullDeltaSink).await;
            let turn = turn.unwrap_or_else(|error| panic!("{} {act}: {error}", wire.name));
            assert_eq!(turn.text, "It said: mild, mild.", "{} {act}", wire.name);
            // The conversation continues, with the same ids once more and another set of tools.
            prompt.messages.push(Message::Assistant {
                text: turn.text,
                calls: turn.calls,
                native: turn.native,
            });
            prompt.messages.push(user("And tomorrow?"));
            let turn = model.turn(&prompt, &NullDeltaSink).await;
            let turn = turn.unwrap_or_else(|error| panic!("{} {act}: {error}", wire.name));
            assert_eq!(turn.calls.len(), 2, "{} {act}", wire.name);
            answered(&mut prompt.messages, turn, "wild");
            let turn = model.turn(&prompt, &NullDeltaSink).await;
            let turn = turn.unwrap_or_else(|error| panic!("{} {act}: {error}", wire.name));
            assert_eq!(turn.text, "It said: wild, wild.", "{} {act}", wire.name);
        }
    }
}

#[tokio::test]
async fn a_conversation_can_change_its_provider() {
    // Each turn is another model's; nobody is given what is another one's own.
    let mut prompt = prompt(vec![user("How is the weather?")]);
    prompt.tools = vec![weather()];
    for wire in [ANTHROPIC, GEMINI, OPENAI, ANTHROPIC, OPENAI, GEMINI, ANTHROPIC] {
        let turn = model(wire, "calls").turn(&prompt, &NullDeltaSink).await;
        let turn = turn.unwrap_or_else(|error| panic!("{}: {error}", wire.name));
        assert_eq!(turn.calls.len(), 2, "{}", wire.name);
        answered(&mut prompt.messages, turn, "mild");
        prompt.messages.push(user("And now?"));
    }
}

#[tokio::test]
async fn a_model_fills_a_form() {
    for wire in WIRES {
        let mut prompt = prompt(vec![user("May I see my calendar?")]);
        prompt.answer = Some(route());
        let turn = model(wire, "fills").turn(&prompt, &NullDeltaSink).await.unwrap();
        let filled: Value = serde_json::from_str(&turn.text).unwrap();
        let expected =
            json!({"decision": "allow", "note": "text", "allowed_tool_types": ["calendar"]});
        assert_eq!(filled, expected, "{}", wire.name);
    }
}

#[tokio::test]
async fn stop_reasons_are_mapped() {
    for wire in WIRES {
        assert_eq!(greeted(wire, "refuses").await.unwrap().stop, Stop::Refused, "{}", wire.name);
        let stopped = greeted(wire, "stops").await.unwrap();
        assert_eq!(stopped.stop, Stop::Length, "{}", wire.name);
        assert_eq!(stopped.text, "Hello there, dear friend.");
    }
}

#[tokio::test]
async fn failures_have_kinds() {
    for wire in WIRES {
        for (act, kind) in [
            ("rate-limited", LlmErrorKind::RateLimited),
            ("rate-limited-until", LlmErrorKind::RateLimited),
            ("overloaded", LlmErrorKind::Overloaded),
            ("too-long", LlmErrorKind::TooLong),
            ("no-money", LlmErrorKind::Quota),
            ("nobody-knows-this-one", LlmErrorKind::NoSuchModel),
            ("cut", LlmErrorKind::Unreachable),
            ("dropped", LlmErrorKind::Unreachable),
            ("page", LlmErrorKind::Unreadable),
            ("nonsense", LlmErrorKind::Unreadable),
            ("error", LlmErrorKind::Overloaded),
            ("flood", LlmErrorKind::Unreadable),
            ("elsewhere", LlmErrorKind::BadRequest),
        ] {
            let error = failed(wire, act).await;
            assert_eq!(error.kind, kind, "{} {act}: {error:?}", wire.name);
        }
    }
    let stolen = fake().requests().into_iter().any(|seen| seen.path.contains("stolen"));
    assert!(!stolen, "a redirect is not followed");
}

#[tokio::test]
async fn a_provider_says_how_long_to_wait() {
    for wire in WIRES {
        let seconds = failed(wire, "rate-limited").await;
        assert_eq!(seconds.retry_after_ms, Some(7_000), "{}", wire.name);
        let date = failed(wire, "rate-limited-until").await;
        assert_eq!(date.retry_after_ms, Some(30_000), "{}", wire.name);
        assert_eq!(failed(wire, "overloaded").await.retry_after_ms, None);
    }
    // Gemini says it in its body as well, for what passes and for what does not.
    assert_eq!(failed(GEMINI, "no-money").await.retry_after_ms, Some(11_000));
}

#[tokio::test]
async fn an_error_for_a_wrong_key_does_not_contain_it() {
    for wire in WIRES {
        let mut config = config(wire, "says");
        let wrong = "sk-wrong-0123456789";
        remote(&mut config).key = Some(Secret::new(wrong));
        let error =
            opened(&config).turn(&prompt(vec![user("Hi")]), &NullDeltaSink).await.unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::Unauthorized, "{}: {error:?}", wire.name);
        assert!(!format!("{error:?}").contains("wrong"), "{error:?}");
        assert!(error.hint.is_some_and(|hint| hint.contains("key")));
    }
}

#[tokio::test]
async fn a_closed_port_is_unreachable_and_a_slow_provider_times_out() {
    for wire in WIRES {
        let mut config = config(wire, "silence");
        config.timeout_ms = Some(300);
        let late =
            opened(&config).turn(&prompt(vec![user("Hi")]), &NullDeltaSink).await.unwrap_err();
        assert_eq!(late.kind, LlmErrorKind::Timeout, "{}: {late:?}", wire.name);
        // A busy machine must not be late before it learns that nobody is there.
        config.timeout_ms = None;
        remote(&mut config).base_url = Some("http://127.0.0.1:1".to_owned());
        let gone =
            opened(&config).turn(&prompt(vec![user("Hi")]), &NullDeltaSink).await.unwrap_err();
        assert_eq!(gone.kind, LlmErrorKind::Unreachable, "{}: {gone:?}", wire.name);
    }
}

/// Says that something was heard.
struct Bell(tokio::sync::Notify);

impl DeltaSink for Bell {
    fn delta(&self, _delta: Delta) {
        self.0.notify_one();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_dropped_is_cancelled() {
    // A server of its own: others wait in silence as well.
    let fake = FakeModels::start();
    for (count, wire) in WIRES.into_iter().enumerate() {
        let mut config = config(wire, "silence");
        remote(&mut config).base_url = Some(fake.url());
        let model = opened(&config);
        let prompt = prompt(vec![user("Hi")]);
        let bell = Bell(tokio::sync::Notify::new());
        tokio::select! {
            turn = model.turn(&prompt, &bell) => panic!("{}: {turn:?}", wire.name),
            () = bell.0.notified() => {}
        }
        let gone = || (fake.left() > count).then_some(());
        wait_for("the fake to see that its client is gone", LIMIT, gone);
    }
}

#[tokio::test]
async fn every_provider_learns_of_which_span_a_turn_is() {
    let span = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for wire in WIRES {
        let fake = FakeModels::start();
        let mut config = config(wire, "says");
        remote(&mut config).base_url = Some(fake.url());
        let mut prompt = prompt(vec![user("Hi")]);
        for traced in [Some(span), None] {
            prompt.trace = traced.map(|span| span.parse().unwrap());
            opened(&config).turn(&prompt, &NullDeltaSink).await.unwrap();
            let seen = fake.requests().pop().unwrap();
            assert_eq!(seen.header("traceparent"), traced, "{}", wire.name);
        }
    }
}

#[tokio::test]
async fn a_script_is_done_in_order_and_each_turn_is_one_request() {
    let fake = FakeModels::start();
    fake.script([
        Act::Calls {
            text: String::new(),
            calls: vec![("get_weather".to_owned(), json!({"city": "Oslo"}))],
            thinks: false,
        },
        Act::Says("Cold.".to_owned()),
    ]);
    let mut config = config(OPENAI, "scripted");
    remote(&mut config).base_url = Some(fake.url());
    remote(&mut config).headers = vec![("x-team".to_owned(), Secret::new("seven"))];
    let model = opened(&config);
    let mut prompt = prompt(vec![user("Oslo?")]);
    prompt.tools = vec![weather()];
    let turn = model.turn(&prompt, &NullDeltaSink).await.unwrap();
    assert_eq!(*turn.calls[0].arguments, json!({"city": "Oslo"}));
    answered(&mut prompt.messages, turn, "snow");
    assert_eq!(model.turn(&prompt, &NullDeltaSink).await.unwrap().text, "Cold.");
    let error = model.turn(&prompt, &NullDeltaSink).await.unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::Overloaded, "the script is at its end");
    let seen = fake.requests();
    assert_eq!(seen.len(), 3, "nothing is repeated");
    assert!(seen.iter().all(|seen| seen.header("x-team") == Some("seven")));
    assert!(seen.iter().all(|seen| seen.path == "/v1/chat/completions"));
    assert_eq!(seen[1].body["messages"][2]["content"], "snow");
}
