//! Models as operators write them, and the mistakes they make.

use super::*;
use crate::config::Config;
use crate::layer::Layer;
use llms::config::{ModelKind, Price};

const FULL: &str = r#"
[models.calendar]
provider = "rules"
rules = "rules/calendar.yaml"

[models."gpt-6.1"]
provider = "openai"
model = "gpt-6.1-terra"
base_url = "http://localhost:11434/v1"
api_key = "${KEY}"
headers = { X-Team = "${TEAM:-blue}" }
max_tokens = 1024
temperature = 0.2
timeout = "90s"
price = { input = 0.15, output = 0.6 }
"#;

fn variables(name: &str) -> Option<String> {
    match name {
        "KEY" => Some("hunter2".to_owned()),
        "ANTHROPIC_API_KEY" => Some("hunter3".to_owned()),
        "OPENAI_API_KEY" => Some("hunter4".to_owned()),
        _ => None,
    }
}

fn entries(text: &str) -> Vec<ModelEntry> {
    Config::parse("waypost.toml", text).unwrap().models
}

fn opened(text: &str) -> Result<Vec<ModelConfig>, Vec<String>> {
    let texts = BTreeMap::from([("rules/calendar.yaml".to_owned(), "version: 1".to_owned())]);
    let around = ModelContext {
        folder: Path::new("/nowhere"),
        texts: &texts,
        variables: &variables,
        bytes_max: 1_000,
    };
    let told = |mistakes: Vec<Mistake>| mistakes.iter().map(Mistake::to_string).collect();
    configs(&entries(text), &around).map_err(told)
}

fn mistakes(text: &str) -> Vec<String> {
    let mistakes = Config::parse("waypost.toml", text).unwrap_err();
    mistakes.iter().map(Mistake::to_string).collect()
}

fn named<'m>(models: &'m [ModelConfig], name: &str) -> &'m ModelConfig {
    models.iter().find(|model| model.name == name).unwrap()
}

#[test]
fn models_are_read_and_provider_keys_add_more() {
    let models = opened(FULL).unwrap();
    let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["anthropic", "calendar", "gpt-6.1", "openai"]);
    let rules = named(&models, "calendar");
    let file = "rules/calendar.yaml".into();
    assert_eq!(rules.kind, ModelKind::Rules { text: "version: 1".to_owned(), file });
    let gpt = named(&models, "gpt-6.1");
    let ModelKind::OpenAi(remote) = &gpt.kind else { panic!("{gpt:?}") };
    assert_eq!(
        (remote.model.as_str(), remote.base_url.as_deref()),
        ("gpt-6.1-terra", Some("http://localhost:11434/v1"))
    );
    assert_eq!(remote.key.as_ref().unwrap().expose(), "hunter2");
    assert_eq!((remote.headers[0].0.as_str(), remote.headers[0].1.expose()), ("X-Team", "blue"));
    assert_eq!(
        (gpt.max_tokens, gpt.temperature, gpt.timeout_ms),
        (Some(1_024), Some(0.2), Some(90_000))
    );
    let price = Price { input: 150_000, cached: 150_000, cache_written: 150_000, output: 600_000 };
    assert_eq!(gpt.price, Some(price));
    assert_eq!(gpt.origin, "waypost.toml:6");
    assert!(!format!("{models:?}{:?}", entries(FULL)).contains("hunter"), "keys are not shown");
}

#[test]
fn a_providers_own_key_goes_to_its_own_address_only() {
    let text =
        |more: &str| format!("[models.openai]\nprovider = \"openai\"\nmodel = \"m\"\n{more}");
    let key = |more: &str| {
        let models = opened(&text(more)).unwrap();
        assert_eq!(models.len(), 2, "the entry stands for the one of its name");
        match &named(&models, "openai").kind {
            ModelKind::OpenAi(remote) => remote.key.as_ref().map(|key| key.expose().to_owned()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(key(""), Some("hunter4".to_owned()));
    assert_eq!(key("base_url = \"http://localhost:1/v1\"\n"), None);
    assert_eq!(key("api_key = \"${NONE:-}\"\n"), None, "an empty one is none");
}

#[test]
fn layers_make_one_entry_together() {
    let below = "[models.fast]\nprovider = \"gemini\"\nmodel = \"a\"\nmax_tokens = 5\n";
    let above = "[models.fast]\nmodel = \"b\"\n";
    let layers = [Layer::file("below.toml", below), Layer::file("above.toml", above)];
    let config = Config::layered(&layers).unwrap();
    assert_eq!(config.models.len(), 1);
    assert_eq!(config.models[0].place.to_string(), "above.toml:1");
    let shown = format!("{:?}", config.models[0]);
    assert!(shown.contains("Some(5)") && shown.contains("above.toml:2"), "{shown}");
}

#[test]
fn mistakes_are_reported_with_their_line() {
    let cases = [
        (
            "[models.a]\nprovidr = \"openai\"\n",
            "waypost.toml:2:1: error: unknown key `providr` in `[models.a]`; hint: did you mean `provider`?",
        ),
        (
            "[models.a]\nmodel = \"m\"\n",
            "waypost.toml:1:9: error: `a`: `provider` is missing; hint: it is `rules`",
        ),
        (
            "[models.a]\nprovider = \"opnai\"\nmodel = \"m\"\n",
            "waypost.toml:2:12: error: `opnai` is no provider of models; hint: did you mean `openai`?",
        ),
        (
            "[models.a]\nprovider = \"ollama\"\nmodel = \"m\"\n",
            "waypost.toml:2:12: error: `ollama` is no provider of models; hint: it speaks as OpenAI does",
        ),
        ("[models.a]\nprovider = \"openai\"\n", "waypost.toml:1:9: error: `a`: `model` is missing"),
        ("[models.a]\nprovider = \"rules\"\n", "waypost.toml:1:9: error: `a`: `rules` is missing"),
        (
            "[models.a]\nrules = \"x\"\nmodel = \"m\"\n",
            "waypost.toml:3:1: error: `model` has no place beside `provider = \"rules\"`",
        ),
        (
            "[models.a]\nprovider = \"gemini\"\nmodel = \"m\"\nrules = \"x\"\n",
            "waypost.toml:4:9: error: `rules` goes with",
        ),
        (
            "[models.a]\nmax_tokens = 0\n",
            "waypost.toml:2:14: error: `max_tokens` must be a whole number from 1 on",
        ),
        (
            "[models.a]\ntemperature = 3.5\n",
            "waypost.toml:2:15: error: `temperature` cannot be `3.5`",
        ),
        (
            "[models.a]\ntemperature = \"hot\"\n",
            "waypost.toml:2:15: error: `temperature` must be a number from 0 on, and is a text",
        ),
        (
            "[models.a]\ntimeout = \"soon\"\n",
            "waypost.toml:2:11: error: `timeout` cannot be `soon`",
        ),
        ("[models.a]\nprice = { input = 1 }\n", "waypost.toml:2:9: error: `price` has no `output`"),
        (
            "[models.a]\nprice = { input = 1, output = 2, cache = 1 }\n",
            "waypost.toml:2:34: error: unknown key `cache` in `[models.a.price]`; hint: did you mean `cached`?",
        ),
        (
            "[models.\"a b\"]\nrules = \"x\"\n",
            "waypost.toml:1:9: error: `a b` cannot be the name of a model",
        ),
        ("[models]\na = 1\n", "waypost.toml:2:5: error: `a` must be a table, and is a number"),
        ("models = 1\n", "waypost.toml:1:10: error: `models` must be a table, and is a number"),
    ];
    for (text, begins) in cases {
        let told = mistakes(text);
        assert!(told[0].starts_with(begins), "expected {begins}\n     got {told:?}");
    }
}

#[test]
fn a_failed_lookup_is_reported_without_its_value() {
    let unset = "[models.a]\nprovider = \"anthropic\"\nmodel = \"m\"\napi_key = \"${NOBODY}\"\n";
    let told = opened(unset).unwrap_err();
    assert!(
        told[0].starts_with("waypost.toml:4:11: error: the variable `NOBODY` is not set"),
        "{told:?}"
    );
    let told = opened("[models.a]\nrules = \"rules/other.yaml\"\n").unwrap_err();
    assert!(
        told[0].starts_with(
            "waypost.toml:2:9: error: the rules `rules/other.yaml` of `a` cannot be read"
        ),
        "{told:?}"
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("r.yaml"), "x".repeat(1_001)).unwrap();
    let entries = entries("[models.a]\nrules = \"r.yaml\"\n");
    let none = BTreeMap::new();
    let around = ModelContext {
        folder: folder.path(),
        texts: &none,
        variables: &|_| None,
        bytes_max: 1_000,
    };
    let told = configs(&entries, &around).unwrap_err()[0].to_string();
    assert!(told.contains("1001 bytes are more than 1000"), "{told}");
    let around = ModelContext { bytes_max: 1_001, ..around };
    assert_eq!(configs(&entries, &around).unwrap().len(), 1);
}

#[test]
fn an_unknown_model_gets_a_suggestion() {
    let names = ["fast".to_owned(), "openai".to_owned()];
    assert_eq!(instead("opneai", &names), "did you mean `openai`?");
    assert_eq!(instead("large", &names), "the models are `fast`, `openai`");
    let fast = ["fast".to_owned()];
    let hint = "set `OPENAI_API_KEY` in the environment or in `.env`, and start the server again";
    assert_eq!(instead("openai", &fast), hint);
    assert_eq!(instead("openai", &[]), hint);
    assert!(instead("x", &[]).starts_with("there are no models: add `[models.<name>]`"));
}
