//! The real server under load, killed at random moments and started again on the same data. The
//! oracle is the receiver: a process that is never killed and forgets nothing.
//!
//! Nothing acknowledged may be lost (runs, answers, replies), no write may happen twice, and every
//! write whose outcome nobody can know must be asked about. `WAYPOST_KILLS` asks for more kills,
//! `WAYPOST_SEED` for the choices of an earlier run.

mod plans;
mod effects;
mod settle;
mod check;

use self::effects::Effects;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use testkit::harness::{Project, Server, StartOptions};
use testkit::kill::{Beacon, Load, Rng};
use testkit::receiver::{Mark, Receiver};

const KILLS_MIN: u64 = 50;
const CLIENTS: u64 = 8;

#[test]
fn a_killed_server_loses_nothing_and_repeats_nothing() {
    let _turn = crate::my_turn();
    let kills = number_in("WAYPOST_KILLS").unwrap_or(KILLS_MIN).max(KILLS_MIN);
    let seed = number_in("WAYPOST_SEED").unwrap_or_else(seed_of_the_moment);
    crate::tell(&format!("kill test: {kills} kills, WAYPOST_SEED={seed}"));
    let site = Site::build();
    let load = Load::new(&plans::order);
    let last = thread::scope(|scope| {
        for client in 1..=CLIENTS {
            let load = &load;
            scope.spawn(move || load.work(Rng::new(seed.wrapping_add(client))));
        }
        let _stop = StopAtEnd(&load.beacon);
        kill_again_and_again(&site, &load, Rng::new(seed), kills)
    });
    let mut server = site.start();
    server.wait_until_ready();
    let mut client = server.client();
    site.receiver.drain(last);
    let settled = settle::all(&mut client, &load, &site.receiver);
    let (book, effects) = (load.book(), Effects::read(&site.receiver));
    check::everything(&mut client, &book, &effects, &settled);
    crate::tell(&format!(
        "kill test: {kills} kills, {} runs ordered, {} acknowledged, {} replies, {} requests \
         without an answer, {} put off, {} effects, {} unknown outcomes asked ({} had happened, {} \
         certainly unheard), {} stalled runs, WAYPOST_SEED={seed}",
        book.orders.len(),
        book.runs.len(),
        book.replies.len(),
        book.unanswered,
        book.put_off,
        effects.count(),
        settled.unknown.len(),
        settled.happened.len(),
        effects.unheard.len(),
        settled.stalled.len(),
    ));
    // A load that no kill ever hits in the middle of something would pass and prove nothing.
    assert!(!book.runs.is_empty() && !book.replies.is_empty(), "nothing was acknowledged");
    assert!(book.unanswered > 0 && !effects.unheard.is_empty(), "no kill hit anything in flight");
}

/// Every third time the server is killed while it still recovers from the kill before.
fn kill_again_and_again(site: &Site, load: &Load<'_>, mut rng: Rng, kills: u64) -> Mark {
    let mut last = site.receiver.mark();
    for _ in 0..kills {
        let mut server = site.start();
        let moment_ms = if rng.one_in(3) {
            rng.below(60)
        } else {
            server.wait_until_ready();
            check::spots(&mut server.client(), load, &mut rng);
            20 + rng.below(380)
        };
        load.beacon.publish(server.address());
        thread::sleep(Duration::from_millis(moment_ms));
        server.kill9();
        last = site.receiver.mark();
    }
    last
}

/// The clients end with the kills, and also when a check fails: the scope waits for them.
pub(crate) struct StopAtEnd<'a>(pub(crate) &'a Beacon);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The receiver, the project and the data folder that all servers of this test share.
struct Site {
    receiver: Receiver,
    project: Project,
    data: PathBuf,
    folder: TempDir,
}

impl Site {
    fn build() -> Self {
        let folder = tempfile::Builder::new().prefix("waypost-kill-").tempdir().unwrap();
        let receiver = Receiver::start(folder.path());
        let files = plans::files(receiver.address());
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let project = Project::write(&folder.path().join("project"), &files, &receiver.allow());
        let data = folder.path().join("data");
        Self { receiver, project, data, folder }
    }

    fn start(&self) -> Server {
        let (project, data) = (self.project.path(), self.data.as_path());
        Server::start(&StartOptions { project, data, args: &[] })
    }
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
