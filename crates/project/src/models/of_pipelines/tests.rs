//! Models inside pipelines, and mistakes in them.

use super::*;
use kernel::definition::pipeline_reader::read_text;
use kernel::limits::Limits;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

const FILE: &str = "pipelines/trades.yaml";

fn pipeline(kind: &str, params: Value) -> (String, Pipeline) {
    let source = json!({
        "http": {"route": "/trades"},
        "schema": {"caseIdField": "id", "allowedFields": ["id", "reason"],
            "requiredFields": ["id", "reason"]},
        "tools": ["case.raiseTicket"],
        "llm": {"type": "stub"},
    });
    let read = read_text(&source.to_string(), FILE, "trades", &Limits::default());
    let (mut pipeline, _) = read.unwrap();
    let Value::Object(params) = params else { panic!("{params}") };
    pipeline.llm =
        PipelineLlm::Own { name: "pipeline/trades".into(), kind: kind.to_owned(), params };
    (FILE.to_owned(), pipeline)
}

fn opened(kind: &str, params: Value) -> Result<ModelConfig, Vec<String>> {
    let texts = BTreeMap::from([("rules/a.yaml".to_owned(), "version: 1".to_owned())]);
    let variables = |name: &str| match name {
        "KEY" => Some("hunter2".to_owned()),
        "OPENAI_API_KEY" => Some("hunter3".to_owned()),
        _ => None,
    };
    let around = ModelContext {
        folder: Path::new("/nowhere"),
        texts: &texts,
        variables: &variables,
        bytes_max: 1_000,
    };
    let found = of_pipelines(&[pipeline(kind, params)], &around);
    let mut found = found
        .map_err(|mistakes| -> Vec<String> { mistakes.iter().map(Mistake::to_string).collect() })?;
    assert_eq!(found.len(), 1);
    Ok(found.remove(0))
}

fn rules(params: Value) -> String {
    let config = opened("stub", params).unwrap();
    let ModelKind::Rules { text, .. } = config.kind else { panic!("{config:?}") };
    text
}

#[test]
fn a_stub_has_our_rules_those_of_a_file_or_its_own() {
    assert_eq!(rules(json!({})), stub_rules());
    assert_eq!(rules(json!({"rules": "rules/a.yaml"})), "version: 1");
    assert_eq!(rules(json!({"rules": "version: 1\nrules: []\n"})), "version: 1\nrules: []\n");
    assert_eq!(rules(json!({"rules": {"version": 1}})), "{\"version\":1}");
    let config = opened("rules", json!({})).unwrap();
    assert_eq!((config.name.as_str(), config.origin.as_str()), ("pipeline/trades", FILE));
}

#[test]
fn a_provider_is_sent_the_key_that_is_named_or_its_own() {
    let remote = |kind: &str, params: Value| match opened(kind, params).unwrap().kind {
        ModelKind::OpenAi(remote) | ModelKind::Anthropic(remote) | ModelKind::Gemini(remote) => {
            remote
        }
        ModelKind::Rules { .. } => panic!("it is made of rules"),
    };
    let secret = |text: &str| Some(Secret::new(text));
    let named = json!({"model": "m", "endpoint": "http://a.test/v1", "apiKey": "${KEY}"});
    let found = remote("openai", named);
    assert_eq!((found.model.as_str(), &found.key), ("m", &secret("hunter2")));
    assert_eq!(found.base_url.as_deref(), Some("http://a.test/v1"));
    assert_eq!(remote("openai", json!({"model": "m"})).key, secret("hunter3"));
    let elsewhere = json!({"model": "m", "base_url": "http://a.test/v1"});
    assert_eq!(remote("openai", elsewhere).key, None, "nobody else is sent it");
    assert_eq!(remote("anthropic", json!({"model": "m", "api_key": "x"})).key, secret("x"));
    let more = json!({"model": "m", "temperature": 0.1, "maxTokens": 5, "timeoutMs": 70});
    let config = opened("gemini", more).unwrap();
    assert_eq!(
        (config.temperature, config.max_tokens, config.timeout_ms),
        (Some(0.1), Some(5), Some(70))
    );
}

#[test]
fn mistakes_are_reported_without_secrets() {
    for (kind, params, told) in [
        ("opnai", json!({}), "there is no `llm` of type `opnai`; hint: did you mean `openai`?"),
        ("openai", json!({}), "`model` of `llm` is missing"),
        ("openai", json!({"model": 7}), "`model` of `llm` must be a text"),
        ("openai", json!({"model": "m", "apiKey": "${NO}"}), "the variable `NO` is not set"),
        ("openai", json!({"model": "m", "apikey": "hush"}), "unknown parameter `apikey` of `llm`"),
        ("openai", json!({"model": "m", "temperature": 3}), "`temperature` of `llm` cannot be `3`"),
        ("openai", json!({"model": "m", "maxTokens": 0}), "must be a whole number from 1 on"),
        ("stub", json!({"rules": "rules/b.yaml"}), "the rules `rules/b.yaml` of `llm` cannot"),
        ("stub", json!({"rules": 7}), "`rules` of `llm` cannot be read"),
        ("stub", json!({"model": "m"}), "unknown parameter `model` of `llm`"),
    ] {
        let mistakes = opened(kind, params).unwrap_err();
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        assert!(mistakes[0].starts_with("pipelines/trades.yaml: error: "), "{mistakes:?}");
        assert!(mistakes[0].contains(told), "no `{told}` in {mistakes:?}");
        assert!(!mistakes[0].contains("hush"), "{mistakes:?}");
    }
}

#[test]
fn models_of_the_project_and_stubs_stay_local() {
    assert!(is_alone(&PipelineLlm::Named("main".into())));
    assert!(is_alone(&pipeline("stub", json!({})).1.llm));
    assert!(!is_alone(&pipeline("openai", json!({})).1.llm));
}
