//! Variables and the configuration that they give.

use super::*;

fn read(variables: &[(&str, &str)]) -> Config {
    Config::read(&|name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned())
    })
}

fn headers(destination: &Destination) -> Vec<(&str, &str)> {
    destination.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect()
}

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");

#[test]
fn nothing_is_exported_without_an_endpoint() {
    let config = read(&[("OTEL_TRACES_SAMPLER", "nonsense")]);
    assert!(!config.is_on());
    assert_eq!(config.warnings, Vec::<String>::new(), "what has no effect is not told");
    assert!(config.told().starts_with("no spans are exported"), "{}", config.told());
    assert!(!read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "  ")]).is_on(), "empty is as unset");
    assert!(!read(&[ENDPOINT, ("OTEL_SDK_DISABLED", "True")]).is_on());
    assert!(!read(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")]).is_on());
}

#[test]
fn the_endpoint_of_all_signals_gets_the_path_of_traces() {
    for (given, expected) in [
        ("http://localhost:4318", "http://localhost:4318/v1/traces"),
        ("https://a.test/otlp/", "https://a.test/otlp/v1/traces"),
    ] {
        let config = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", given)]);
        assert_eq!(config.destinations[0].url.as_str(), expected);
    }
    let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b.test/in");
    let config = read(&[ENDPOINT, own]);
    assert_eq!(config.destinations[0].url.as_str(), "http://b.test/in", "used as it is");
    assert_eq!(config.told(), "spans go to http://b.test (otlp)");
}

#[test]
fn headers_are_read_and_never_shown() {
    let config = read(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hush, x-team = a=b ,broken"),
    ]);
    let expected = [("authorization", "Bearer hush"), ("x-team", "a=b")];
    assert_eq!(headers(&config.destinations[0]), expected);
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    assert!(config.warnings[0].starts_with("entry 3 of OTEL_EXPORTER_OTLP_HEADERS"));
    assert!(!format!("{config:?}").contains("hush"));
    let own = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-own=1");
    let config = read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_HEADERS", "x-all=1"), own]);
    assert_eq!(headers(&config.destinations[0]), [("x-own", "1")], "those of traces go first");
}

#[test]
fn unsupported_settings_are_warned_about() {
    for (variable, value, exported) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", false),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", false),
        ("OTEL_TRACES_EXPORTER", "zipkin", false),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", true),
        ("OTEL_TRACES_SAMPLER", "xray", true),
        ("OTEL_BSP_SCHEDULE_DELAY", "soon", true),
    ] {
        let config = read(&[ENDPOINT, (variable, value)]);
        assert_eq!(config.is_on(), exported, "{variable}");
        assert_eq!(config.warnings.len(), 1, "{variable}: {:?}", config.warnings);
        assert!(config.warnings[0].contains(variable), "{:?}", config.warnings);
    }
    let wrong = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")]);
    assert!(!wrong.is_on() && wrong.warnings[0].contains("http://localhost:4318"));
    let fine = read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]);
    assert!(fine.is_on() && fine.warnings.is_empty());
}

#[test]
fn langfuse_variables_configure_an_exporter() {
    let keys = [("LANGFUSE_PUBLIC_KEY", "pk"), ("LANGFUSE_SECRET_KEY", "sk")];
    let config = read(&keys);
    let [langfuse] = config.destinations.as_slice() else { panic!("{config:?}") };
    let url = "https://cloud.langfuse.com/api/public/otel/v1/traces";
    assert_eq!((langfuse.name, langfuse.url.as_str()), ("langfuse", url));
    // base64 of `pk:sk`.
    let expected = [("authorization", "Basic cGs6c2s="), ("x-langfuse-ingestion-version", "4")];
    assert_eq!(headers(langfuse), expected);
    let host = ("LANGFUSE_HOST", "http://fuse.test:3000/");
    let both = read(&[ENDPOINT, keys[0], keys[1], host]);
    assert_eq!(
        both.told(),
        "spans go to http://localhost:4318 (otlp) and http://fuse.test:3000 (langfuse)"
    );
    let base = ("LANGFUSE_BASE_URL", "https://us.fuse.test/base");
    for more in [vec![], vec![host]] {
        let config = read(&[&keys[..], &[base], more.as_slice()].concat());
        let url = "https://us.fuse.test/base/api/public/otel/v1/traces";
        assert_eq!(config.destinations[0].url.as_str(), url, "{more:?}");
    }
    let wrong = read(&[keys[0], keys[1], host, ("LANGFUSE_BASE_URL", "us.fuse.test")]);
    assert!(!wrong.is_on() && wrong.warnings[0].contains("LANGFUSE_BASE_URL"), "{wrong:?}");
    let half = read(&keys[..1]);
    assert_eq!(half.warnings, ["LANGFUSE_SECRET_KEY is not set: nothing is exported to Langfuse"]);
}

#[test]
fn samplers_have_their_standard_names() {
    let sampling = |name: &str, arg: &str| {
        let variables = [("OTEL_TRACES_SAMPLER", name), ("OTEL_TRACES_SAMPLER_ARG", arg)];
        read(&variables).sampling
    };
    let default = Sampling { rule: Rule::Limited, follows_caller: true };
    assert_eq!(sampling("", ""), default);
    for (name, arg, rule, follows_caller) in [
        ("always_on", "", Rule::All, false),
        ("always_off", "", Rule::None, false),
        ("parentbased_always_on", "", Rule::All, true),
        ("traceidratio", "0.25", Rule::Share(0.25), false),
        ("parentbased_traceidratio", "", Rule::Share(1.0), true),
        ("traceidratio", "25", Rule::Share(1.0), false),
    ] {
        assert_eq!(sampling(name, arg), Sampling { rule, follows_caller }, "{name} {arg}");
    }
}

#[test]
fn other_settings_have_the_standard_defaults() {
    let config = read(&[]);
    let batch = Batch { delay_ms: 5_000, queue_max: 2_048, spans_max: 512, export_ms: 30_000 };
    assert_eq!((config.batch, config.content), (batch, false));
    assert_eq!(config.resource, [("service.name".to_owned(), "waypost".to_owned())]);
    let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "a=1%2C2,service.name=shop,b=2");
    let config = read(&[attributes, ("OTEL_BSP_MAX_QUEUE_SIZE", "100")]);
    let told: Vec<String> = config.resource.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(told, ["service.name=shop", "a=1,2", "b=2"]);
    assert_eq!(config.batch.spans_max, 100, "no batch is larger than the queue");
    let named = read(&[attributes, ("OTEL_SERVICE_NAME", "desk")]);
    assert_eq!(named.resource[0].1, "desk");
    for (text, content) in [("true", true), ("SPAN_ONLY", true), ("false", false), ("no", false)] {
        let variable = ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", text);
        assert_eq!(read(&[variable]).content, content, "{text}");
    }
}
