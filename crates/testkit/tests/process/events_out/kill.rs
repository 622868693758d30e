//! The server killed at random moments while clients publish: every event of a run that was
//! acknowledged is at the receiver in the end, and in the file. `WAYPOST_SEED` asks for the choices
//! of an earlier run.

use super::{PLAN_ID, Site, wait_until_out};
use crate::api;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testkit::harness::wait_for;
use testkit::http::Client;
use testkit::kill::{Beacon, Book, Load, Order, Rng, SeenRun};
use testkit::servers::webhook::Mood;

const KILLS: u64 = 10;
/// So many times as many kills, and servers that live longer, where no kill hit anything yet: on a
/// busy machine a server can be gone before its clients were heard.
const TRIES: u64 = 4;
const CLIENTS: u64 = 8;
const TIMEOUT_MS: u64 = 2_000;
const PREFIX: &str = "out-";
const SETTLE_LIMIT: Duration = Duration::from_secs(600);

#[test]
fn a_killed_server_loses_no_event() {
    let _turn = crate::my_turn();
    let seed = seed();
    crate::tell(&format!("events out: {KILLS} kills, WAYPOST_SEED={seed}"));
    let site = Site::build("waypost-events-", TIMEOUT_MS);
    let load = Load::new(&order);
    let kills = thread::scope(|scope| {
        for client in 1..=CLIENTS {
            let load = &load;
            scope.spawn(move || load.work(Rng::new(seed.wrapping_add(client))));
        }
        let _stop = StopAtEnd(&load.beacon);
        kill_again_and_again(&site, &load, Rng::new(seed))
    });
    site.receiver.be(Mood::Well);
    let mut server = site.start();
    server.wait_until_ready();
    let mut client = server.client();
    settle(&mut client);
    wait_until_out(&mut client);
    let book = load.book();
    assert_eq!(book.faults, Vec::<String>::new());
    assert_eq!(site.receiver.faults(), Vec::<String>::new());
    for run in &book.runs {
        let status = api::run(&mut client, &run.id).status;
        assert_eq!(status, "completed", "{run:?} was acknowledged");
    }
    let acknowledged = || book.runs.iter().map(|run| (number_of(run), run.id.as_str()));
    let (received, written) = (site.received(), site.written());
    for events in [&received, &written] {
        events.check();
        events.hold(acknowledged());
    }
    assert!(written.broken as u64 <= kills, "{} lines broke off", written.broken);
    crate::tell(&format!(
        "events out: {kills} kills, {} runs ordered, {} acknowledged, {} requests without an \
         answer, {} deliveries of {} events, WAYPOST_SEED={seed}",
        book.orders.len(),
        book.runs.len(),
        book.unanswered,
        received.all.len(),
        written.told().len(),
    ));
    assert!(is_hit(&book), "no kill hit anything in flight");
}

/// Whether something was acknowledged, and a kill took the answer to something else.
fn is_hit(book: &Book) -> bool {
    !book.runs.is_empty() && book.unanswered > 0
}

/// Every third time the server is killed while it still recovers from the kill before; between
/// kills the receiver has its moods too. How many kills it took.
fn kill_again_and_again(site: &Site, load: &Load<'_>, mut rng: Rng) -> u64 {
    let moods = [Mood::Well, Mood::Well, Mood::Failing(503), Mood::Mute];
    for number in 0..KILLS * TRIES {
        let is_extra = number >= KILLS;
        if is_extra && is_hit(&load.book()) {
            return number;
        }
        let mut server = site.start();
        site.receiver.be(moods[rng.below(moods.len() as u64) as usize]);
        let moment_ms = if rng.one_in(3) {
            rng.below(60)
        } else {
            server.wait_until_ready();
            if is_extra { 400 + rng.below(2_000) } else { 50 + rng.below(400) }
        };
        load.beacon.publish(server.address());
        thread::sleep(Duration::from_millis(moment_ms));
        server.kill9();
    }
    KILLS * TRIES
}

/// Lets every run come to its end. Nobody is asked anything: the runs only publish, and a kill is
/// no reason to give one of them up.
fn settle(client: &mut Client) {
    wait_for("all runs to end", SETTLE_LIMIT, || {
        // In this order: what does not run cannot raise an ask between the two looks.
        let running: Vec<Value> = api::all(client, "/api/v1/sessions?status=running");
        let asks = api::open_asks(client, None);
        assert!(asks.is_empty(), "nobody should be asked: {asks:?}");
        running.is_empty().then_some(())
    });
}

fn order(number: u64, _rng: &mut Rng) -> Order {
    let input = json!({"number": number});
    Order { plan: PLAN_ID.to_owned(), session: format!("{PREFIX}{number}"), input }
}

fn number_of(run: &SeenRun) -> u64 {
    let digits = run.session.strip_prefix(PREFIX).and_then(|digits| digits.parse().ok());
    digits.unwrap_or_else(|| panic!("{run:?} is no run of this load"))
}

/// The clients end with the kills, and also when a check fails: the scope waits for them.
struct StopAtEnd<'a>(&'a Beacon);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn seed() -> u64 {
    match std::env::var("WAYPOST_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("WAYPOST_SEED is `{text}`")),
        Err(_) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.map_or(1, |since| since.as_nanos() as u64)
        }
    }
}
