//! Sinks as operators write them, and the mistakes they make.

use super::*;
use crate::config::Config;
use crate::layer::Layer;
use std::path::PathBuf;

const FULL: &str = r#"
[events.sinks.out]
type = "stdout"

[events.sinks.archive]
type = "file"
path = "events.jsonl"
from = "start"
realm = "default"

[events.sinks.hook_1]
type = "webhook"
url = "https://ann:hunter3@hooks.test/in?key=hunter3"
secret = "${HOOK}"
types = ["TradeRepaired", "waypost.run.*"]
timeout_ms = 500
"#;

/// The base64 of 24 and of 64 bytes.
const SECRETS: &str = "whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVu  \
    whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnRlcjJodW50ZXIyaA==";

fn variables(name: &str) -> Option<String> {
    match name {
        "HOOK" => Some(SECRETS.to_owned()),
        "SHORT" => Some("whsec_aHVudGVyMg==".to_owned()),
        "BARE" => Some("aHVudGVyMmh1bnRlcjJodW50ZXIyaHVu".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn entries(text: &str) -> Vec<SinkEntry> {
    Config::parse("waypost.toml", text).unwrap().sinks
}

fn looked_up(text: &str) -> Result<Vec<ResolvedSink>, Vec<String>> {
    let data = Path::new("/data");
    let folder = Path::new("/shop");
    let around = SinkContext { data, folder, variables: &variables };
    let told = |mistakes: Vec<Mistake>| mistakes.iter().map(Mistake::to_string).collect();
    sendings(&entries(text), &around).map_err(told)
}

fn mistakes(text: &str) -> Vec<String> {
    let mistakes = Config::parse("waypost.toml", text).unwrap_err();
    mistakes.iter().map(Mistake::to_string).collect()
}

#[test]
fn sinks_are_read_by_name() {
    let sinks = looked_up(FULL).unwrap();
    let names: Vec<(&str, &str)> =
        sinks.iter().map(|sink| (sink.config.name.as_str(), sink.word())).collect();
    assert_eq!(names, [("archive", "file"), ("hook_1", "webhook"), ("out", "stdout")]);
    let [archive, hook, out] = sinks.as_slice() else { panic!("{sinks:?}") };
    let SinkKind::File { path } = &archive.config.kind else { panic!("{archive:?}") };
    assert_eq!(*path, PathBuf::from("/data/events.jsonl"));
    assert_eq!((archive.from_start, out.from_start), (true, false));
    assert_eq!(
        (archive.target.as_deref(), out.target.as_deref()),
        (Some("/data/events.jsonl"), None)
    );
    let SinkKind::Webhook { url, secret, timeout_ms } = &hook.config.kind else { panic!() };
    assert_eq!(url, "https://ann:hunter3@hooks.test/in?key=hunter3");
    assert_eq!(secret.expose().split(' ').count(), 2);
    assert_eq!(*timeout_ms, Some(500));
    assert_eq!(hook.target.as_deref(), Some("https://hooks.test/in"));
    let types: Vec<&str> = hook.types.iter().flatten().map(Pattern::as_str).collect();
    assert_eq!(types, ["TradeRepaired", "waypost.run.*"]);
    assert!(archive.types.is_none());
    assert_eq!(hook.place.to_string(), "waypost.toml:11");
    let shown = format!("{:?}", entries(FULL));
    assert!(!shown.contains("hunter") && !shown.contains("aHVud"), "{shown}");
}

#[test]
fn a_path_may_be_elsewhere_and_name_variables() {
    let path = |text: &str| {
        let text = format!("[events.sinks.a]\ntype = \"file\"\npath = \"{text}\"\n");
        match looked_up(&text).unwrap().remove(0).config.kind {
            SinkKind::File { path } => path.display().to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(path("/var/log/events.jsonl"), "/var/log/events.jsonl");
    assert_eq!(path("${workspaceFolder}/a"), "/shop/a");
    assert_eq!(path("out/${NAME:-x}.jsonl"), "/data/out/x.jsonl");
}

#[test]
fn layers_make_one_entry_together() {
    let below = "[events.sinks.a]\ntype = \"file\"\npath = \"x\"\ntypes = [\"A\"]\n";
    let above = "[events.sinks.a]\npath = \"y\"\n[events.sinks.b]\ntype = \"stdout\"\n";
    let layers = [Layer::file("below.toml", below), Layer::file("above.toml", above)];
    let sinks = Config::layered(&layers).unwrap().sinks;
    assert_eq!(sinks.len(), 2);
    assert_eq!(sinks[0].place.to_string(), "above.toml:1");
    let around =
        SinkContext { data: Path::new("/d"), folder: Path::new("/"), variables: &|_: &str| None };
    let first = sendings(&sinks, &around).unwrap().remove(0);
    assert_eq!(first.target.as_deref(), Some("/d/y"));
    assert_eq!(first.types.unwrap()[0].as_str(), "A");
}

/// A text, and what the first mistake in it begins with.
const MISTAKES: &[(&str, &str)] = &[
    (
        "[events.sinks.a]\ntpye = \"file\"\n",
        "waypost.toml:2:1: error: unknown key `tpye` in `[events.sinks.a]`; hint: did you mean `type`?",
    ),
    (
        "[events.sink.a]\ntype = \"stdout\"\n",
        "waypost.toml:1:9: error: unknown key `sink` in `[events]`; hint: did you mean `sinks`?",
    ),
    (
        "[events.sinks.a]\npath = \"x\"\n",
        "waypost.toml:1:15: error: `a`: `type` is missing; hint: it is `stdout`, `file` or `webhook`",
    ),
    (
        "[events.sinks.a]\ntype = \"webhok\"\n",
        "waypost.toml:2:8: error: `webhok` is no type of sink; hint: did you mean `webhook`?",
    ),
    (
        "[events.sinks.a]\ntype = \"kafka\"\n",
        "waypost.toml:2:8: error: `kafka` is no type of sink; hint: it is `stdout`",
    ),
    ("[events.sinks.a]\ntype = \"file\"\n", "waypost.toml:1:15: error: `a`: `path` is missing"),
    ("[events.sinks.a]\ntype = \"webhook\"\n", "waypost.toml:1:15: error: `a`: `url` is missing"),
    (
        "[events.sinks.a]\ntype = \"webhook\"\nurl = \"http://a.test\"\n",
        "waypost.toml:1:15: error: `a`: `secret` is missing; hint: make one with `echo \"whsec_$(openssl rand -base64 32)\"`",
    ),
    (
        "[events.sinks.a]\ntype = \"stdout\"\nsecret = \"x\"\n",
        "waypost.toml:3:1: error: `secret` has no place beside `type = \"stdout\"`",
    ),
    (
        "[events.sinks.a]\ntimeout_ms = 0\n",
        "waypost.toml:2:14: error: `timeout_ms` must be a whole number from 1 on",
    ),
    (
        "[events.sinks.a]\ntimeout_ms = 86400001\n",
        "waypost.toml:2:14: error: `timeout_ms` = 86400001 is out of range: it can be \
         1 to 86400000",
    ),
    (
        "[events.sinks.a]\ntypes = []\n",
        "waypost.toml:2:9: error: `types` is empty, so nothing would go there",
    ),
    (
        "[events.sinks.a]\ntypes = [\"A\", \"a b\"]\n",
        "waypost.toml:2:15: error: `a b` is no pattern of event types",
    ),
    (
        "[events.sinks.a]\nrealms = []\n",
        "waypost.toml:2:10: error: `realms` is empty, so it would be there for no one",
    ),
    (
        "[events.sinks.a]\nfrom = \"begin\"\n",
        "waypost.toml:2:8: error: `from` cannot be `begin`; hint: it is `now`",
    ),
    (
        "[events.sinks.a]\nrealm = \"shop\"\n",
        "waypost.toml:2:9: error: `realm` can only be `default`, and not `shop`",
    ),
    (
        "[events.sinks.\"a.b\"]\ntype = \"stdout\"\n",
        "waypost.toml:1:15: error: `a.b` cannot be the name of a sink",
    ),
    ("[events.sinks]\na = 1\n", "waypost.toml:2:5: error: `a` must be a table, and is a number"),
    ("[events]\nsinks = 1\n", "waypost.toml:2:9: error: `sinks` must be a table"),
    ("events = 1\n", "waypost.toml:1:10: error: `events` must be a table, and is a number"),
];

#[test]
fn mistakes_are_reported_with_their_line() {
    for (text, begins) in MISTAKES {
        let told = mistakes(text);
        assert!(told[0].starts_with(begins), "expected {begins}\n     got {told:?}");
    }
}

#[test]
fn expanded_secrets_are_checked_and_not_printed() {
    let hook = |url: &str, secret: &str| {
        let head = "[events.sinks.a]\ntype = \"webhook\"";
        looked_up(&format!("{head}\nurl = \"{url}\"\nsecret = \"{secret}\"\n")).unwrap_err()
    };
    for secret in ["${SHORT}", "${BARE}", "${EMPTY}", "whsec_", "${HOOK} ${BARE}", "whsec_!!"] {
        let told = hook("http://a.test", secret);
        assert!(told[0].starts_with("waypost.toml:4:10: error: `secret` must be"), "{told:?}");
        assert!(told[0].contains("openssl rand"), "{told:?}");
        assert!(!told[0].contains("aHVud"), "{told:?}");
    }
    let told = hook("http://a.test", "${NOBODY}");
    assert!(told[0].contains("the variable `NOBODY` is not set"), "{told:?}");
    for url in ["ftp://a.test", "a.test", "http://", "/x?key=hunter2"] {
        let told = hook(url, "${HOOK}");
        assert!(told[0].starts_with("waypost.toml:3:7: error: "), "{told:?}");
        assert!(told[0].contains("is not the address of a receiver"), "{told:?}");
        assert!(!told[0].contains("hunter2"), "{told:?}");
    }
    let told = looked_up("[events.sinks.a]\ntype = \"file\"\npath = \"out/\"\n").unwrap_err();
    assert!(told[0].starts_with("waypost.toml:3:8: error: `out/` is not the path"), "{told:?}");
}

#[test]
fn two_sinks_do_not_share_a_file() {
    let text = "[events.sinks.a]\ntype = \"file\"\npath = \"e\"\n\
        [events.sinks.b]\ntype = \"file\"\npath = \"/data/e\"\n\
        [events.sinks.c]\ntype = \"file\"\npath = \"f\"\n";
    let told = looked_up(text).unwrap_err();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("`b` and `a` write to one file, `/data/e`"), "{told:?}");
}
