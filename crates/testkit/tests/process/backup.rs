//! Backups of the real server under load, at random moments, some of them cut short by a kill. What
//! is restored of a finished one must hold every run that was acknowledged before it began, must
//! ask about every write that was under way, and must send none of these again. `WAYPOST_SEED` asks
//! for the choices of an earlier run.

use crate::api;
use crate::kill::{StopAtEnd, number_in, seed_of_the_moment};
use kernel::contracts::backup::MANIFEST_FILE;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::harness::{self, Project, Server, StartOptions, wait_for};
use testkit::http::Client;
use testkit::kill::{Load, Order, Rng, SeenRun};
use testkit::servers::receiver::{Mark, Receiver};

const CLIENTS: u64 = 4;
const BACKUPS: u64 = 8;
const BACKUP: &str = "/api/v1/backup";
/// How often a backup is asked for until a kill cuts one short: on a busy machine it may be done
/// before the kill.
const CUTS_MAX: usize = 20;
/// How long something may take that takes milliseconds.
const LIMIT: Duration = Duration::from_secs(180);

/// Small, so that many values are blobs.
const LIMITS: &str = "[limits]\ncontext_inline_bytes_max = 256\n";

const WRITE: &str = r#"planId: backup/write
description: one write that takes a while
parameters: {type: object, required: [run]}
startStepId: write
steps:
  - id: write
    type: tool_call
    toolId: "http::request"
    arguments:
      method: POST
      url: "http://RECEIVER/slow?ms=600"
      body: {run: {jsonPath: $.promptInput.run}}
    saveAs: written
    nextStepId: end
  - {id: end, type: final_response, message: "wrote {{ context.written.body.n }}"}
"#;

const ASK: &str = r#"planId: backup/ask
description: one question
parameters: {type: object, required: [run]}
startStepId: ask
steps:
  - {id: ask, type: human_in_the_loop, message: "which word?", nextStepIdOnInput: end}
  - {id: end, type: final_response, message: "heard {{ context.human_input }}"}
"#;

/// A backup that was asked for, and what had been acknowledged until then.
struct Taken {
    dir: PathBuf,
    acknowledged: Vec<SeenRun>,
}

impl Taken {
    fn is_finished(&self) -> bool {
        self.dir.join(MANIFEST_FILE).is_file()
    }
}

#[test]
fn a_backup_under_load_is_whole_or_refused() {
    let _turn = crate::my_turn();
    let seed = number_in("WAYPOST_SEED").unwrap_or_else(seed_of_the_moment);
    crate::tell(&format!("backup test: {BACKUPS} backups, WAYPOST_SEED={seed}"));
    let site = Site::build();
    let load = Load::new(&order);
    let (taken, last) = thread::scope(|scope| {
        for client in 1..=CLIENTS {
            let load = &load;
            scope.spawn(move || load.work(Rng::new(seed.wrapping_add(client))));
        }
        let _stop = StopAtEnd(&load.beacon);
        site.back_up_again_and_again(&load, Rng::new(seed))
    });
    site.receiver.drain(last);
    let faults = load.book().faults.clone();
    assert!(faults.is_empty(), "the load saw faults:\n{}", faults.join("\n"));
    let (mut unknown, mut unfinished) = (0, 0);
    for (number, taken) in taken.iter().enumerate() {
        if taken.is_finished() {
            unknown += site.check_restored(number, taken);
        } else {
            unfinished += 1;
            site.check_refused(number, taken);
        }
    }
    crate::tell(&format!(
        "backup test: {BACKUPS} backups, {unfinished} cut short, {} runs acknowledged, {unknown} \
         unknown outcomes asked, WAYPOST_SEED={seed}",
        load.book().runs.len()
    ));
    // Backups that meet nothing under way would pass and prove nothing.
    assert!(unknown > 0, "no backup met a write that was under way");
    assert!(unfinished > 0, "no kill met a backup that was under way");
}

fn order(number: u64, rng: &mut Rng) -> Order {
    let plan = if rng.one_in(3) { "backup/ask" } else { "backup/write" };
    let session = format!("backup-{number}");
    let input = json!({"run": session, "note": session.repeat(40)});
    Order { plan: plan.to_owned(), session, input }
}

/// The receiver, the project and the data folder of this test.
struct Site {
    receiver: Receiver,
    project: Project,
    folder: TempDir,
}

impl Site {
    fn build() -> Self {
        let folder = tempfile::Builder::new().prefix("waypost-backup-").tempdir().unwrap();
        let receiver = Receiver::start(folder.path());
        let write = WRITE.replace("RECEIVER", &receiver.address().to_string());
        let plans = [("backup/write.yaml", write.as_str()), ("backup/ask.yaml", ASK)];
        let settings = format!("{}{LIMITS}", receiver.allow());
        let project = Project::write(&folder.path().join("project"), &plans, &settings);
        Self { receiver, project, folder }
    }

    /// A server over this data that takes work.
    fn start(&self, data: &Path) -> Server {
        let project = self.project.path();
        let mut server = Server::start(&StartOptions { project, data, args: &[] });
        server.wait_until_ready();
        server
    }

    fn back_up_again_and_again(&self, load: &Load<'_>, mut rng: Rng) -> (Vec<Taken>, Mark) {
        let data = self.folder.path().join("data");
        let mut server = self.start(&data);
        load.beacon.publish(server.address());
        let mut all = Vec::new();
        for number in 0..BACKUPS {
            thread::sleep(Duration::from_millis(100 + rng.below(200)));
            if number % 3 == 2 {
                for cut in 0..CUTS_MAX {
                    let taken = self.taken(load, &format!("{number}-{cut}"));
                    cut_short(server, &taken.dir, Duration::from_micros(rng.below(2_000)));
                    server = self.start(&data);
                    load.beacon.publish(server.address());
                    let is_finished = taken.is_finished();
                    all.push(taken);
                    if !is_finished {
                        break;
                    }
                }
            } else {
                let taken = self.taken(load, &number.to_string());
                let answer = server.client().post(BACKUP, &json!({"dir": taken.dir})).unwrap();
                assert_eq!(answer.status, 200, "{}", answer.body);
                all.push(taken);
            }
        }
        server.kill9();
        (all, self.receiver.mark())
    }

    /// A backup that is about to be asked for.
    fn taken(&self, load: &Load<'_>, name: &str) -> Taken {
        let dir = self.folder.path().join(format!("backup-{name}"));
        Taken { dir, acknowledged: load.book().runs.clone() }
    }

    /// Neither what is there of it nor what is not is taken for a backup.
    fn check_refused(&self, number: usize, taken: &Taken) {
        let data = self.folder.path().join(format!("refused-{number}"));
        // One that says what is inside is whole, and lacks nothing but its name.
        let is_cut = |dir: &PathBuf| !dir.join(MANIFEST_FILE).exists();
        for dir in [taken.dir.clone(), unfinished(&taken.dir)].into_iter().filter(is_cut) {
            let ended = self.restore(&dir, &data);
            assert_eq!(ended.status.code(), Some(1), "{ended:?}");
            assert!(!data.exists() && !unfinished(&data).exists(), "{ended:?}");
        }
    }

    fn restore(&self, dir: &Path, data: &Path) -> std::process::Output {
        let (dir, data) = (dir.to_str().unwrap(), data.to_str().unwrap());
        harness::waypost(self.folder.path(), &["restore", dir, "--data", data])
    }

    /// How many writes were under way when the backup was taken.
    fn check_restored(&self, number: usize, taken: &Taken) -> usize {
        let place = self.folder.path().join(format!("restored-{number}"));
        fs::create_dir(&place).unwrap();
        let data = place.join("data");
        let ended = self.restore(&taken.dir, &data);
        assert!(ended.status.success(), "{ended:?}");
        let under_way = under_way(&data.join("waypost.db"));
        let sent_before = self.receiver.effects().len();
        let server = self.start(&data);
        let mut client = server.client();
        for seen in &taken.acknowledged {
            let run = api::run(&mut client, &seen.id);
            if seen.answer.is_some() {
                let now = (run.status.as_str(), &run.answer);
                assert_eq!(now, ("completed", &seen.answer), "{seen:?} was acknowledged: {run:?}");
            }
        }
        wait_for("all runs to end or to wait", LIMIT, || {
            let running: Vec<Value> = api::all(&mut client, "/api/v1/sessions?status=running");
            running.is_empty().then_some(())
        });
        let unknown = answer_some(&mut client);
        assert!(under_way.is_subset(&unknown), "nobody is asked about some of {under_way:?}");
        let effects = self.receiver.effects();
        let again = effects[sent_before..].iter().filter_map(|effect| effect.key.clone());
        let again: Vec<String> = again.filter(|call| under_way.contains(call)).collect();
        assert_eq!(again, Vec::<String>::new(), "writes that were under way are sent again");
        under_way.len()
    }
}

/// Answers one of each kind of what is asked; the calls whose outcome is asked about.
fn answer_some(client: &mut Client) -> BTreeSet<String> {
    let asks = api::open_asks(client, None);
    for (kind, reply) in [("clarify", json!({"answer": "x"})), ("fix", json!({"action": "skip"}))] {
        if let Some(ask) = asks.iter().find(|ask| ask.kind == kind) {
            let answer = client.post(&format!("/api/v1/asks/{}", ask.id), &reply).unwrap();
            assert_eq!(answer.status, 200, "{ask:?}: {}", answer.body);
        }
    }
    let mut calls = BTreeSet::new();
    for ask in asks.iter().filter(|ask| ask.kind == "fix") {
        assert_eq!(ask.how.as_deref(), Some("unknown"), "{ask:?}");
        calls.extend(ask.calls.iter().map(|call| call.call_id.clone()));
    }
    calls
}

/// Asks for a backup, and kills the server once something of it is on the disk.
fn cut_short(server: Server, dir: &Path, after: Duration) {
    let (address, body) = (server.address(), json!({"dir": dir}));
    let asking = thread::spawn(move || Client::new(address).post(BACKUP, &body));
    let begun = Instant::now();
    while !unfinished(dir).exists() && !dir.exists() {
        assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} in vain for a backup to begin");
        thread::yield_now();
    }
    thread::sleep(after);
    server.kill9();
    // It may have been quicker than the kill.
    let _ = asking.join().unwrap();
}

fn unfinished(dir: &Path) -> PathBuf {
    let mut name = dir.as_os_str().to_os_string();
    name.push(".unfinished");
    PathBuf::from(name)
}

/// The calls that a sound database says were sent and did not come back.
fn under_way(database: &Path) -> BTreeSet<String> {
    let connection = rusqlite::Connection::open(database).unwrap();
    let check = "PRAGMA quick_check";
    let told: String = connection.query_row(check, (), |row| row.get(0)).unwrap();
    assert_eq!(told, "ok");
    let mut statement = connection.prepare("SELECT body FROM journal ORDER BY row").unwrap();
    let rows = statement.query_map((), |row| row.get::<_, String>(0)).unwrap();
    let mut calls = BTreeSet::new();
    for row in rows {
        let events: Vec<Value> = serde_json::from_str(&row.unwrap()).unwrap();
        for event in events {
            let call = event["data"]["call"].as_str().unwrap_or_default().to_owned();
            match event["type"].as_str().unwrap_or_default() {
                "call.started" => {
                    calls.insert(call);
                }
                "call.finished" | "call.failed" => {
                    calls.remove(&call);
                }
                _ => {}
            }
        }
    }
    calls
}
