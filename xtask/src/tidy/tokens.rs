//! Rules about words in the code: no clock, randomness or tasks outside the engine's clock, no HTTP
//! clients outside their crate, and words that may not stand anywhere.

use super::finding::{Finding, Rule};
use super::lexer::has_token;
use super::paths;
use super::source::{Line, Source};

/// Time, randomness and tasks of the system: a decision that used them could not be replayed.
const CLOCK: &[&str] = &[
    "Instant::now", "SystemTime::now", "Timestamp::now", "Zoned::now", "tokio::time::",
    "tokio::spawn", "task::spawn", "spawn_blocking", "thread::spawn", "thread::Builder",
    "thread::sleep", "getrandom", "rand::", "select!", "Uuid::new_v4", "Uuid::now_v7",
];

/// Where they are at home: the one clock, the binary that starts everything, and what never runs
/// in production.
const CLOCK_FREE: &[&str] = &[
    "crates/engine/src/system/clock.rs",
    "crates/waypost/",
    "crates/testkit/",
    "crates/fixture/",
    "bench/",
    "xtask/",
];

/// What opens connections to others: what may be reached, and what is reported of it, is decided
/// once.
const CLIENTS: &[&str] = &[
    "reqwest::Client", "reqwest::ClientBuilder", "reqwest::blocking", "reqwest::get",
    "Client::builder", "ClientBuilder", "hyper::client", "hyper_util::client",
];

/// Their crate, and what never runs in production.
const CLIENTS_FREE: &[&str] =
    &["crates/outbound/", "crates/testkit/", "crates/fixture/", "bench/", "xtask/"];

/// A panic is no answer to a caller; tests may use them.
const PANICS: &[&str] = &[".unwrap()", ".expect("];

/// Not in tests either.
const BANNED: &[&str] = &["unsafe", "todo!", "unimplemented!", "dbg!", "#[ignore"];

/// Marks of unfinished work, in comments too.
const MARKS: &[&str] = &["TODO", "FIXME", "XXX"];

/// Finds the system's clock, randomness and tasks outside their home.
pub fn clock(source: &Source) -> Vec<Finding> {
    let finding = |(line, token): (usize, &str)| Finding {
        path: source.path.clone(),
        line,
        rule: Rule::Clock,
        wrong: format!("`{token}` outside `crates/engine/src/system/clock.rs`"),
        remedy: "take a `Clock`, `Entropy` or `Spawn` from the caller",
    };
    away_from_home(source, CLOCK, CLOCK_FREE).into_iter().map(finding).collect()
}

/// Finds HTTP clients outside their crate.
pub fn clients(source: &Source) -> Vec<Finding> {
    let finding = |(line, token): (usize, &str)| Finding {
        path: source.path.clone(),
        line,
        rule: Rule::Clients,
        wrong: format!("`{token}` outside `crates/outbound`"),
        remedy: "make it of `outbound::client::ClientOptions`",
    };
    away_from_home(source, CLIENTS, CLIENTS_FREE).into_iter().map(finding).collect()
}

/// Where these tokens stand in production code, unless the source is where they are at home.
fn away_from_home<'t>(
    source: &Source,
    tokens: &[&'t str],
    homes: &[&str],
) -> Vec<(usize, &'t str)> {
    if homes.iter().any(|home| source.path.starts_with(home)) {
        return Vec::new();
    }
    let written = source.production().map(|line| (line.number, line.code.clone()));
    // A group hides the token from its line (`use tokio::{sync, time};`), not from the import.
    let imported = paths::imports(&source.production_code())
        .into_iter()
        .map(|import| (import.line, format!("{}::", import.segments.join("::"))));
    let mut found = Vec::new();
    for (line, text) in written.chain(imported) {
        for token in tokens.iter().filter(|token| has_token(&text, token)) {
            if !found.contains(&(line, *token)) {
                found.push((line, *token));
            }
        }
    }
    found
}

/// Finds panics, unfinished work and what else may not stand in the code.
pub fn banned(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for line in &source.lines {
        for (token, remedy) in banned_in(line) {
            findings.push(Finding {
                path: source.path.clone(),
                line: line.number,
                rule: Rule::Banned,
                wrong: format!("`{token}` is not allowed"),
                remedy,
            });
        }
    }
    findings
}

fn banned_in(line: &Line) -> Vec<(&'static str, &'static str)> {
    let panics: &[&str] = if line.in_test { &[] } else { PANICS };
    let in_code = |token: &&&str| has_token(&line.code, token);
    let anywhere = |token: &&&str| has_token(&line.code, token) || has_token(&line.comment, token);
    let panics = panics.iter().filter(in_code).map(|token| (*token, "return an error"));
    let words = BANNED.iter().filter(in_code).map(|token| (*token, "finish it or remove it"));
    let marks = MARKS.iter().filter(anywhere).map(|token| (*token, "do it now or open an issue"));
    panics.chain(words).chain(marks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(rule: fn(&Source) -> Vec<Finding>, path: &str, text: &str) -> Vec<String> {
        let findings = rule(&Source::parse(path, text));
        findings.iter().map(|finding| format!("{}: {}", finding.line, finding.wrong)).collect()
    }

    #[test]
    fn every_clock_token_is_found() {
        for token in CLOCK {
            let text = format!("fn f() {{\n    x::{token}(y)\n}}\n");
            let expected = format!("2: `{token}` outside `crates/engine/src/system/clock.rs`");
            let found = report(clock, "crates/engine/src/driver.rs", &text);
            assert!(found.contains(&expected), "{token}: {found:?}");
        }
    }

    #[test]
    fn a_group_hides_nothing() {
        let text = "use tokio::{\n    sync,\n    time,\n};\nuse std::thread::spawn;\n";
        let found = report(clock, "crates/engine/src/driver.rs", text);
        assert_eq!(
            found,
            [
                "5: `thread::spawn` outside `crates/engine/src/system/clock.rs`",
                "3: `tokio::time::` outside `crates/engine/src/system/clock.rs`",
            ]
        );
    }

    #[test]
    fn the_clock_is_free_at_home_and_in_tests() {
        let text = "fn f() { Instant::now(); }\n";
        for path in
            ["crates/engine/src/system/clock.rs", "crates/waypost/src/up.rs", "bench/src/main.rs"]
        {
            assert!(report(clock, path, text).is_empty(), "{path}");
        }
        assert!(report(clock, "crates/kernel/tests/it/main.rs", text).is_empty());
        let behind = "#[cfg(test)]\nmod tests {\n    fn f() { Instant::now(); }\n}\n";
        assert!(report(clock, "crates/kernel/src/definition/plan.rs", behind).is_empty());
        assert_eq!(report(clock, "crates/kernel/src/definition/plan.rs", text).len(), 1);
    }

    #[test]
    fn every_client_is_found_outside_its_crate() {
        for token in CLIENTS {
            let text = format!("fn f() {{\n    {token}::new(y)\n}}\n");
            let expected = format!("2: `{token}` outside `crates/outbound`");
            for path in ["crates/llms/src/http.rs", "crates/waypost/src/remote/client.rs"] {
                let found = report(clients, path, &text);
                assert!(found.contains(&expected), "{path}: {token}: {found:?}");
            }
            for path in ["crates/outbound/src/client.rs", "bench/src/main.rs"] {
                assert!(report(clients, path, &text).is_empty(), "{path}");
            }
            assert!(report(clients, "crates/waypost/tests/it/main.rs", &text).is_empty());
        }
    }

    #[test]
    fn a_client_in_a_group_is_found_and_what_others_call_client_is_not() {
        let text = "use reqwest::{\n    Client,\n    Url,\n};\nuse hyper::{Uri, client};\n";
        let found = report(clients, "crates/sinks/src/webhook.rs", text);
        assert_eq!(
            found,
            [
                "2: `reqwest::Client` outside `crates/outbound`",
                "5: `hyper::client` outside `crates/outbound`",
            ]
        );
        let text = "use outbound::client::Client;\nuse reqwest::{Response, Url};\n\
            fn f(client: &Client) { crate::client::Client::new(1); }\n";
        assert!(report(clients, "crates/waypost/src/context.rs", text).is_empty());
    }

    #[test]
    fn prose_and_longer_names_are_no_tokens() {
        let text = "/// Not `Instant::now`.\nfn f() { operand::g(\"rand::\"); reselect!(x); }\n";
        assert!(report(clock, "crates/kernel/src/definition/plan.rs", text).is_empty());
    }

    #[test]
    fn panics_are_found_outside_tests() {
        let text =
            "fn f() {\n    a.unwrap();\n    b\n        .expect(\"c\");\n    d.unwrap_or(e)\n}\n";
        let found = report(banned, "crates/kernel/src/definition/plan.rs", text);
        assert_eq!(found, ["2: `.unwrap()` is not allowed", "4: `.expect(` is not allowed"]);
        assert!(report(banned, "crates/kernel/tests/it/main.rs", text).is_empty());
    }

    #[test]
    fn banned_words_are_found_in_tests_too() {
        let text = "#[ignore = \"slow\"]\nunsafe fn f() { todo!() }\nfn g() { dbg!(1); }\n";
        let found = report(banned, "crates/kernel/tests/it/main.rs", text);
        assert_eq!(
            found,
            [
                "1: `#[ignore` is not allowed",
                "2: `unsafe` is not allowed",
                "2: `todo!` is not allowed",
                "3: `dbg!` is not allowed",
            ]
        );
        assert!(report(banned, "crates/a/src/lib.rs", "#![forbid(unsafe_code)]\n").is_empty());
    }

    #[test]
    fn marks_are_found_in_comments_but_not_in_literals() {
        let text = "// TODO: later\nlet a = \"FIXME\";\n/* XXX */ let b = MAXXXIMUM;\n";
        let found = report(banned, "crates/kernel/src/definition/plan.rs", text);
        assert_eq!(found, ["1: `TODO` is not allowed", "3: `XXX` is not allowed"]);
    }
}
