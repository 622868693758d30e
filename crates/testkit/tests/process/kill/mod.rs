//! The real server under load, killed at random moments and started again on the same data. The
//! oracle is the receiver: a process that is never killed and forgets nothing.
//!
//! Nothing acknowledged may be lost (runs, answers, replies, what an agent was told), no write may
//! happen twice, and every write of unknown outcome must be asked about. What retention
//! removes meanwhile is over, and the sink knows its end. A login at an upstream lasts, unless the
//! kill took its newest token. No run is given up because of kills that did not hit it. A rule
//! corrects every write of unknown outcome first: that happens once for each, however often its
//! server dies meanwhile, unless its run is given up.
//! `WAYPOST_KILLS` asks for more kills, `WAYPOST_SEED` for the choices of an earlier run.

mod plans;
mod effects;
mod told;
mod talk;
mod login;
mod hits;
mod settle;
mod check;
mod tasks;

use self::effects::Effects;
use self::hits::Hits;
use self::login::Logins;
use self::talk::Talks;
use self::told::Told;
use crate::events_out::{SECRET, wait_for_sinks};
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use testkit::harness::{DEMO_TOOLS, Project, Server, StartOptions};
use testkit::kill::{Beacon, Load, Rng};
use testkit::servers::receiver::{Mark, Receiver};
use testkit::servers::webhook::WebhookReceiver;

const KILLS_MIN: u64 = 50;
/// So many times as many kills, and servers that live longer, where no kill hit anything yet: on a
/// busy machine a server can be gone before its clients were heard.
const TRIES: u64 = 4;
const CLIENTS: u64 = 8;
/// How many of the others talk to an agent.
const TALKERS: u64 = 2;
const SINK: &str = "hook";

#[test]
fn a_killed_server_loses_nothing_and_repeats_nothing() {
    let _turn = crate::my_turn();
    let kills = number_in("WAYPOST_KILLS").unwrap_or(KILLS_MIN).max(KILLS_MIN);
    let seed = number_in("WAYPOST_SEED").unwrap_or_else(seed_of_the_moment);
    crate::tell(&format!("kill test: {kills} kills, WAYPOST_SEED={seed}"));
    let site = Site::build();
    let (load, talks) = (Load::new(&plans::order), Talks::default());
    let (mut told, mut hits) = (Told::new(&site.hook), Hits::default());
    let last = thread::scope(|scope| {
        let (load, talks, logins) = (&load, &talks, &site.logins);
        for client in 1..=CLIENTS {
            scope.spawn(move || load.work(Rng::new(seed.wrapping_add(client))));
        }
        for talker in 1..=TALKERS {
            scope.spawn(move || talks.talk(load, talker));
        }
        scope.spawn(move || talks.line(load));
        scope.spawn(move || talks.remove(load));
        scope.spawn(move || logins.work(load));
        let _stop = StopAtEnd(&load.beacon);
        let kills = Kills { count: kills, rng: Rng::new(seed), hits: &mut hits };
        kill_again_and_again(&site, load, &mut told, kills)
    });
    let mut server = site.start();
    server.wait_until_ready();
    let mut client = server.client();
    site.receiver.drain(last);
    site.logins.settle(&mut client, &load);
    let settled = settle::all(&mut client, &load, &site.receiver, &hits);
    wait_for_sinks(&mut client, &[SINK]);
    let (book, effects) = (load.book(), Effects::read(&site.receiver));
    let facts = check::Facts { book: &book, effects: &effects, settled: &settled, talks: &talks };
    check::everything(&mut client, &facts, &mut told);
    let log = site.log();
    site.logins.check(&mut client, &mut told, &log);
    let parked: Vec<&str> = log.lines().filter(|line| line.contains("session parked")).collect();
    assert_eq!(parked, Vec::<&str>::new(), "a session that can be read was parked");
    crate::tell(&format!(
        "kill test: {kills} kills, {} runs ordered, {} acknowledged, {} replies, {} requests \
         without an answer, {} put off, {} effects, {} unknown outcomes asked ({} had happened, {} \
         certainly unheard), {} hits of a session under work, {}, {}, {} deliveries, \
         WAYPOST_SEED={seed}",
        book.orders.len(),
        book.runs.len(),
        book.replies.len(),
        book.unanswered,
        book.put_off,
        effects.count(),
        settled.unknown.len(),
        settled.happened.len(),
        effects.unheard.len(),
        hits.count(),
        talks.figures(),
        site.logins.figures(),
        site.hook.taken().len(),
    ));
    // A load that no kill ever hits in the middle of something would pass and prove nothing.
    assert!(!book.runs.is_empty() && !book.replies.is_empty(), "nothing was acknowledged");
    assert!(book.unanswered > 0 && !effects.unheard.is_empty(), "no kill hit anything in flight");
}

/// Every third time the server is killed while it still recovers from the kill before.
fn kill_again_and_again(
    site: &Site,
    load: &Load<'_>,
    told: &mut Told<'_>,
    Kills { count, mut rng, hits }: Kills<'_>,
) -> Mark {
    let mut last = site.receiver.mark();
    for number in 0..count * TRIES {
        let is_extra = number >= count;
        if is_extra
            && load.book().unanswered > 0
            && !Effects::read(&site.receiver).unheard.is_empty()
        {
            break;
        }
        let mut server = site.start();
        if number == 0 {
            // On a slow machine no server might live long enough for it later.
            server.wait_until_ready();
            site.logins.settle(&mut server.client(), load);
        }
        let moment_ms = if rng.one_in(3) {
            rng.below(60)
        } else {
            server.wait_until_ready();
            check::spots(&mut server.client(), load, told, &mut rng);
            if rng.one_in(4) {
                site.logins.wait_until_back(&mut server.client());
            }
            if is_extra { 400 + rng.below(2_000) } else { 20 + rng.below(380) }
        };
        load.beacon.publish(server.address());
        thread::sleep(Duration::from_millis(moment_ms));
        server.kill9();
        hits.look(&site.data);
        last = site.receiver.mark();
    }
    last
}

/// How often the server is killed, at which moments, and what that hit.
struct Kills<'a> {
    count: u64,
    rng: Rng,
    hits: &'a mut Hits,
}

/// The clients end with the kills, and also when a check fails: the scope waits for them.
pub(crate) struct StopAtEnd<'a>(pub(crate) &'a Beacon);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The receivers, the project and the data folder that all servers of this test share.
struct Site {
    receiver: Receiver,
    /// Where the events go.
    hook: WebhookReceiver,
    logins: Logins,
    project: Project,
    data: PathBuf,
    folder: TempDir,
}

impl Site {
    fn build() -> Self {
        let folder = tempfile::Builder::new().prefix("waypost-kill-").tempdir().unwrap();
        let receiver = Receiver::start(folder.path());
        let hook = WebhookReceiver::start(&[SECRET]);
        let files = plans::files(receiver.address());
        let mut files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        files.push(login::PLAN);
        let logins = Logins::start();
        let (allow, model, login) = (receiver.allow(), talk::MODEL, logins.settings());
        let (rules, sink) = (plans::RULES, sink(&hook.url()));
        let settings = format!("{DEMO_TOOLS}{allow}\n{model}\n{login}\n{rules}\n{sink}");
        let project = Project::write(&folder.path().join("project"), &files, &settings);
        let rules = talk::RULES.replace(plans::RECEIVER, &receiver.address().to_string());
        let secret = format!("HOOK_SECRET={SECRET}\n");
        for (path, text) in [
            ("agents/scribe.yaml", talk::AGENT),
            ("rules/scribe.yaml", rules.as_str()),
            (".env", secret.as_str()),
        ] {
            let path = project.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let data = folder.path().join("data");
        Self { receiver, hook, logins, project, data, folder }
    }

    /// What every server of this test logged.
    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("server.log")).unwrap()
    }

    fn start(&self) -> Server {
        let (project, data) = (self.project.path(), self.data.as_path());
        Server::start(&StartOptions { project, data, args: &[] })
    }
}

/// The settings of the sink: nothing is given up, and nobody waits long.
fn sink(url: &str) -> String {
    format!(
        "[limits]\ndelivery_backoff_ms = 20\ndelivery_backoff_ms_max = 1500\n\
         delivery_attempts_max = 1000000\n\n\
         [events.sinks.{SINK}]\ntype = \"webhook\"\nurl = \"{url}\"\n\
         secret = \"${{HOOK_SECRET}}\"\n"
    )
}

impl Drop for Site {
    fn drop(&mut self) {
        if thread::panicking() {
            // The journal, the server's log and the receiver's are what a failure is found by.
            self.folder.disable_cleanup(true);
            crate::tell(&format!("kill test: kept `{}`", self.folder.path().display()));
        }
    }
}

pub(crate) fn number_in(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`, not a number")))
}

pub(crate) fn seed_of_the_moment() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_nanos() as u64)
}
