//! Who gets what at which door, over the real program: every route, every method of MCP in both
//! eras, every operation of A2A 1.0 and 0.3 in all bindings, every method of AgentVault's profile,
//! `/rpc`, a pipeline's route and its own port, and the pipe, each without a credential, with wrong
//! ones, and with good ones that do not do. One rule says what is expected, the page of the
//! reference is what was observed, and a door without a row fails.

mod doors;
mod rules;
mod files;
mod sending;
mod site;
mod a2a;
mod over;
mod page;
mod pipe;
mod apart;
mod neighbours;
mod foreign;
mod equal;

use doors::{Door, Kind, Thing};
use page::{Cells, Line};
use rules::{Case, Expected, expected, is_served};
use serde_json::Value;
use site::{CANARY, Site};
use std::time::{Duration, Instant};
use testkit::http::Answer;
use wire::a2a::GRPC_SERVICE;

/// For how long an address is used whose failures are not answered any more: they are counted by
/// the minute.
const FLOODED_FOR: Duration = Duration::from_secs(30);

/// An address whose failures are not answered any more, and since when it has failed.
struct Flooded {
    address: String,
    since: Instant,
}

impl Flooded {
    /// The address of this number.
    fn new(site: &mut Site, number: usize) -> Self {
        let (address, since) = (format!("198.51.100.{}", number % 200 + 1), Instant::now());
        site.flood(&address);
        Self { address, since }
    }
}

#[test]
fn every_door_answers_by_the_rule() {
    let _turn = crate::my_turn();
    let doors = [doors::all(), a2a::doors()].concat();
    let mut site = Site::of(over::written);
    site.furnish();
    a2a::furnish(&mut site);
    let (mut cells, mut mistakes) = (Cells::new(), Vec::new());
    let mut flooded: Option<Flooded> = None;
    for case in Case::ALL {
        if case == Case::Over {
            site.furnish_busy();
        }
        for (index, door) in doors.iter().enumerate() {
            let own = format!("10.0.{}.{}", index / 200, index % 200 + 1);
            let from = match case {
                Case::TooMany => {
                    let fresh = flooded.take().filter(|one| one.since.elapsed() < FLOODED_FOR);
                    let fresh = fresh.unwrap_or_else(|| Flooded::new(&mut site, index));
                    flooded.insert(fresh).address.clone()
                }
                _ => own,
            };
            if case == Case::Over {
                site.keep_busy();
            }
            let cell = tried(&mut site, door, case, &from, &mut mistakes);
            cells.insert((index, case), cell);
        }
    }
    assert_none(&mistakes);
    // So it was not for what was asked that all of these were refused.
    for door in &doors {
        let answer = site.ask_allowed(door);
        let speaks_rpc =
            matches!(door.kind, Kind::Mcp(..) | Kind::Rpc | Kind::A2aRpc(_) | Kind::A2aGrpc(_));
        let is_error = speaks_rpc && told(&answer).contains(' ');
        if is_error || !is_served(door, answer.status) {
            mistakes.push(format!("{}, allowed: {answer:?}", door.name()));
        }
    }
    let piped = pipe::tried(&site.stop(), &mut mistakes);
    assert_none(&mistakes);
    let lines = page::lines(&doors, &cells);
    let is_mcp = |line: &Line| line.name.starts_with("`/mcp`");
    let (mcp, rest): (Vec<Line>, Vec<Line>) = lines.into_iter().partition(is_mcp);
    let words = ["/a2a", "agent-card", "jwks", GRPC_SERVICE];
    let is_a2a = |line: &Line| words.iter().any(|word| line.name.contains(word));
    let (a2a, http): (Vec<Line>, Vec<Line>) = rest.into_iter().partition(is_a2a);
    page::check(&[
        ("HTTP", http),
        ("MCP", mcp),
        ("A2A", a2a),
        ("Standard input and output", piped),
    ]);
}

/// What a door says in a case to this address; where that is not what the rule says, it is a
/// mistake.
fn tried(
    site: &mut Site,
    door: &Door,
    case: Case,
    from: &str,
    mistakes: &mut Vec<String>,
) -> String {
    let expected = expected(door, case);
    if expected == Expected::NoCase {
        return "-".to_owned();
    }
    let answer = site.ask(door, case, from);
    let found = told(&answer);
    let is_right = match expected {
        Expected::Told(told) => found == told,
        Expected::Served if door.thing == Thing::Open => is_served(door, answer.status),
        Expected::Served | Expected::NoCase => found == "200",
    };
    let is_exhausted = answer.status == 429 || found == "200 RESOURCE_EXHAUSTED";
    let wants_quota = case == Case::Over && is_exhausted;
    let has_quota = ["ratelimit-policy", "ratelimit", "retry-after"]
        .iter()
        .all(|name| answer.header(name).is_some());
    if wants_quota && !has_quota {
        mistakes.push(format!("{}, {case:?}: no numbers: {answer:?}", door.name()));
    }
    if !is_right {
        mistakes.push(format!("{}, {case:?}: {found}, not {expected:?}: {answer:?}", door.name()));
    }
    // Who may not read it must not find it in a refusal or a list either.
    if case != Case::Scope && case != Case::Denied && answer.body.contains(CANARY) {
        mistakes.push(format!("{}, {case:?}: it tells what is another's", door.name()));
    }
    match expected {
        Expected::Told(told) => match told.split_once(' ') {
            Some((status, code)) => format!("{status} `{code}`"),
            None => told.to_owned(),
        },
        Expected::Served | Expected::NoCase => "served".to_owned(),
    }
}

/// The status of an answer, with its stable word or number if it is a refusal.
fn told(answer: &Answer) -> String {
    let body = message(answer);
    let error = &body["error"];
    let words = [&body["code"], &error["data"]["code"], &error["status"], error];
    let word = words.into_iter().find_map(Value::as_str).map(str::to_owned);
    let word = word.or_else(|| error["code"].as_i64().map(|number| number.to_string()));
    match word {
        Some(word) => format!("{} {word}", answer.status),
        None => answer.status.to_string(),
    }
}

/// The body as JSON: of a stream the last message, of anything else nothing.
fn message(answer: &Answer) -> Value {
    let last = answer.body.lines().rev().find_map(|line| line.strip_prefix("data:"));
    serde_json::from_str(last.unwrap_or(&answer.body)).unwrap_or_default()
}

fn assert_none(mistakes: &[String]) {
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
}
