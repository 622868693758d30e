//! The server is killed while people with names approve calls in two realms. No acknowledged
//! decision is lost, each is that of the one who gave it, the chains of the audit are whole after
//! every start, and they hold every acknowledged decision once.

use super::ledger::{Decided, Ledger, Waiting, is_shown, reply};
use super::site::{APPROVERS, PLAN_ID, Person, REALMS, STARTER, Site, To};
use crate::kill::{StopAtEnd, number_in, seed_of_the_moment};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::http::{Client, NoAnswer};
use testkit::kill::{Load, Order, Rng, Run, read};

const KILLS_MIN: u64 = 20;
/// So many times as many kills, and servers that live longer, where somebody decided nothing yet:
/// on a busy machine a server can be gone before its clients were heard.
const TRIES: u64 = 4;
/// How long all that is open may take to be decided in the end.
const SETTLE_LIMIT: Duration = Duration::from_secs(300);
/// How long clients pause between two requests.
const PAUSE: Duration = Duration::from_millis(3);
/// In so many cases an approver says no.
const REJECTS_ONE_IN: u64 = 6;

#[test]
fn a_killed_server_loses_no_decision_and_knows_who_gave_it() {
    let _turn = crate::my_turn();
    let kills = number_in("WAYPOST_KILLS").unwrap_or(KILLS_MIN).max(KILLS_MIN);
    let seed = number_in("WAYPOST_SEED").unwrap_or_else(seed_of_the_moment);
    crate::tell(&format!("kill test with keys: {kills} kills, WAYPOST_SEED={seed}"));
    let site = Site::build("");
    let crowd = Crowd::enter(&site);
    // Only where the server is matters here: what is ordered is not this load's.
    let load = Load::new(&no_order);
    let mut heads = Heads::default();
    thread::scope(|scope| {
        let (crowd, load) = (&crowd, &load);
        for place in 0..REALMS.len() {
            scope.spawn(move || load.keep_at(|client| crowd.start(client, place)));
        }
        for (place, person) in (1..).zip(&crowd.approvers) {
            let mut rng = Rng::new(seed.wrapping_add(place));
            scope.spawn(move || load.keep_at(|client| crowd.approve(client, person, &mut rng)));
        }
        let _stop = StopAtEnd(&load.beacon);
        let mut rng = Rng::new(seed);
        for number in 0..kills * TRIES {
            let is_extra = number >= kills;
            if is_extra && idle(&crowd.ledger.decided()).is_none() && load.book().unanswered > 0 {
                break;
            }
            let mut server = site.start();
            // Every third time it is killed while it still recovers from the kill before.
            if !rng.one_in(3) {
                server.wait_until_ready();
                heads.check(&site.root, &mut server.client(), &crowd.ledger);
            }
            load.beacon.publish(server.address());
            let moment_ms = if is_extra { 400 + rng.below(2_000) } else { 20 + rng.below(300) };
            thread::sleep(Duration::from_millis(moment_ms));
            server.kill9();
        }
    });
    let mut server = site.start();
    server.wait_until_ready();
    let mut client = server.client();
    crowd.settle(&mut client, &mut Rng::new(seed));
    heads.check(&site.root, &mut client, &crowd.ledger);
    let decided = crowd.ledger.decided();
    check_shown(&site.root, &mut client, &decided);
    let unanswered = load.book().unanswered;
    crate::tell(&format!(
        "kill test with keys: {kills} kills, {} runs, {} decisions, {} acknowledged when sent \
         again, {unanswered} requests without an answer, WAYPOST_SEED={seed}",
        crowd.orders.iter().map(|orders| orders.load(Ordering::Relaxed)).sum::<u64>(),
        decided.len(),
        crowd.ledger.again(),
    ));
    assert_eq!(crowd.ledger.faults(), Vec::<String>::new());
    assert_eq!(load.book().faults, Vec::<String>::new());
    assert_eq!(idle(&decided), None, "this approver decided nothing in this realm");
    assert!(unanswered > 0, "no kill hit anything in flight");
}

/// An approver who decided nothing in a realm, and that realm, if there is one.
fn idle(decided: &BTreeMap<String, Decided>) -> Option<(&'static str, &'static str)> {
    let mut pairs = REALMS.into_iter().flat_map(|realm| APPROVERS.map(|by| (by, realm)));
    pairs.find(|(by, realm)| !decided.values().any(|one| one.realm == *realm && one.by == *by))
}

fn no_order(_number: u64, _rng: &mut Rng) -> Order {
    panic!("nothing is ordered by this load")
}

/// Those who come.
struct Crowd {
    starter: Person,
    approvers: Vec<Person>,
    ledger: Ledger,
    /// How many runs were ordered in each realm.
    orders: [AtomicU64; 2],
}

impl Crowd {
    /// Everybody gets a key from a server that is there for that alone.
    fn enter(site: &Site) -> Self {
        let mut server = site.start();
        server.wait_until_ready();
        let crowd = Self {
            starter: site.person(&server, STARTER),
            approvers: APPROVERS.map(|name| site.person(&server, name)).to_vec(),
            ledger: Ledger::default(),
            orders: Default::default(),
        };
        assert!(server.terminate().status.success(), "the first server did not end well");
        crowd
    }

    /// Starts a run that waits for an approval. The names of sessions are the same in both realms.
    fn start(&self, client: &mut Client, place: usize) -> Result<Duration, NoAnswer> {
        let (realm, number) = (REALMS[place], self.orders[place].fetch_add(1, Ordering::Relaxed));
        let body = json!({"planId": PLAN_ID, "session": format!("s{number}"), "input": {}});
        let answer = self.starter.send(client, To::post(realm, "/api/v1/runs"), &body)?;
        match answer.status {
            200 | 202 => {
                let run: Run = read(&answer.json()["run"]);
                self.ledger.asked(realm, run.asks);
            }
            429 | 503 => {}
            _ => self.ledger.fault(format!("{body} got {answer:?}")),
        }
        Ok(PAUSE)
    }

    /// Decides about something that waits, if anything does.
    fn approve(
        &self,
        client: &mut Client,
        person: &Person,
        rng: &mut Rng,
    ) -> Result<Duration, NoAnswer> {
        if let Some(waiting) = self.ledger.take(person, rng) {
            self.decide(client, person, waiting, !rng.one_in(REJECTS_ONE_IN))?;
        }
        Ok(PAUSE)
    }

    /// Sends a decision, the same again where one was sent before.
    fn decide(
        &self,
        client: &mut Client,
        person: &Person,
        waiting: Waiting,
        approve: bool,
    ) -> Result<(), NoAnswer> {
        let was_sent = waiting.sent.is_some();
        let new = Decided { realm: waiting.realm, by: person.name.clone(), approve };
        let decided = waiting.sent.clone().unwrap_or(new);
        let path = format!("/api/v1/asks/{}", waiting.ask.id);
        let body = reply(&waiting.ask, decided.approve);
        match person.send(client, To::post(waiting.realm, &path), &body) {
            Ok(answer) => {
                self.ledger.answered(waiting, decided, was_sent, &answer);
                Ok(())
            }
            Err(error) => {
                // It may have been taken or not: only a second try can tell.
                let sent = Some(decided).filter(|_| !matches!(error, NoAnswer::Unreachable(_)));
                let sent = sent.or_else(|| waiting.sent.clone());
                self.ledger.put_back(Waiting { sent, ..waiting });
                Err(error)
            }
        }
    }

    /// Decides about all that is left, also about what nobody was told of.
    fn settle(&self, client: &mut Client, rng: &mut Rng) {
        let begun = Instant::now();
        for person in &self.approvers {
            while let Some(waiting) = self.ledger.take(person, rng) {
                assert!(begun.elapsed() < SETTLE_LIMIT, "waited in vain for all to be decided");
                let sent = self.decide(client, person, waiting, true);
                sent.unwrap_or_else(|error| panic!("a decision got no answer: {error}"));
            }
        }
        let first = &self.approvers[0];
        for realm in REALMS {
            for ask in first.all(client, realm, "/api/v1/asks?status=open") {
                let waiting = Waiting { realm, ask: read(&ask), sent: None };
                let sent = self.decide(client, first, waiting, true);
                sent.unwrap_or_else(|error| panic!("a decision got no answer: {error}"));
            }
        }
    }
}

/// How far each chain was when somebody looked last.
#[derive(Debug, Default)]
struct Heads(BTreeMap<&'static str, String>);

impl Heads {
    /// Every chain is as it was written and goes at least as far as it did, and what was
    /// acknowledged is in it once.
    fn check(&mut self, root: &Person, client: &mut Client, ledger: &Ledger) {
        // Before the audit is read: what is acknowledged meanwhile is not looked for.
        let decided = ledger.decided();
        for chain in ["server", "acme", "globex"] {
            let (realm, of) = match chain {
                "server" => ("default", "?chain=server"),
                realm => (realm, "?chain=realm"),
            };
            let known = self.0.get(chain).map_or(String::new(), |head| format!("&head={head}"));
            let seen = root.get(client, realm, &format!("/api/v1/audit/verify{of}{known}"));
            assert_eq!(seen["valid"], json!(true), "the chain of {chain}: {seen}");
            let head = root.get(client, realm, &format!("/api/v1/audit/head{of}"));
            let head = head["head"].as_str().unwrap();
            // A chain without rows has no head to come back to.
            if !head.starts_with("0:") {
                self.0.insert(chain, head.to_owned());
            }
        }
        for realm in REALMS {
            let entries = root.all(client, realm, "/api/v1/audit?act=answer");
            check_kept(realm, &entries, &decided);
        }
    }
}

/// The entries of a realm hold each acknowledged decision once, as that of who gave it.
fn check_kept(realm: &str, entries: &[Value], decided: &BTreeMap<String, Decided>) {
    let mut kept: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry["verdict"] == "allow") {
        if let Some(ask) = entry["ask"].as_str() {
            kept.entry(ask).or_default().push(entry);
        }
    }
    for (ask, one) in decided {
        let found = kept.get(ask.as_str()).map_or(&[][..], Vec::as_slice);
        if one.realm != realm {
            assert!(found.is_empty(), "{ask} of `{}` is in the audit of `{realm}`", one.realm);
            continue;
        }
        let [entry] = found else {
            panic!("{one:?} to {ask} is in the audit {} times: {found:?}", found.len());
        };
        assert_eq!(entry["subject"], json!(one.by), "{ask}: {entry}");
        let word = if one.approve { "approved" } else { "rejected" };
        assert_eq!(entry["reply"], json!(word), "{ask}: {entry}");
    }
    for (ask, found) in kept {
        assert_eq!(found.len(), 1, "{ask} was decided more than once: {found:?}");
    }
}

/// Each ask shows the decision that was acknowledged, in its own realm alone.
fn check_shown(root: &Person, client: &mut Client, decided: &BTreeMap<String, Decided>) {
    for (ask, one) in decided {
        let path = format!("/api/v1/asks/{ask}");
        let shown = root.get(client, one.realm, &path);
        assert!(is_shown(&shown["decision"], one), "{one:?} was acknowledged: {shown}");
        let other = REALMS.into_iter().find(|realm| *realm != one.realm).unwrap();
        let to = To { realm: other, method: "GET", path: &path };
        let answer = root.send(client, to, &Value::Null).unwrap();
        assert_eq!(answer.status, 404, "{one:?} is shown in `{other}`: {answer:?}");
    }
}
