//! The audit of a server whose database somebody changed behind its back, and of an older copy:
//! `waypost audit verify` finds each of it.

use super::ledger::reply;
use super::site::{APPROVERS, PLAN_ID, STARTER, Site, To};
use rusqlite::Connection;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use testkit::harness::Server;
use testkit::kill::{Run, read};

/// How many runs are started and approved: each brings several rows.
const RUNS: usize = 3;

/// What is done to the rows of the realm, and a word of what is found then.
const DAMAGE: [(&str, &str, &str); 7] = [
    (
        "changed",
        "UPDATE audit SET body = replace(body, 'mia', 'eve') WHERE chain = 'default'
           AND body LIKE '%mia%'",
        "was changed",
    ),
    ("dated back", "UPDATE audit SET at = 7 WHERE chain = 'default' AND seq = 2", "was changed"),
    ("dropped", "DELETE FROM audit WHERE chain = 'default' AND seq = 3", "rows are missing"),
    (
        "swapped",
        "UPDATE audit SET seq = 9000 WHERE chain = 'default' AND seq = 2;
         UPDATE audit SET seq = 2 WHERE chain = 'default' AND seq = 3;
         UPDATE audit SET seq = 3 WHERE chain = 'default' AND seq = 9000",
        "row 2",
    ),
    (
        "moved to another chain",
        "UPDATE audit SET chain = 'acme', seq = 9000 WHERE chain = 'default' AND seq = 3",
        "rows are missing",
    ),
    (
        "cut at the beginning",
        "DELETE FROM audit WHERE chain = 'default' AND seq <= 2",
        "rows are missing",
    ),
    (
        "cut at the end",
        "DELETE FROM audit WHERE chain = 'default'
           AND seq >= (SELECT max(seq) - 1 FROM audit WHERE chain = 'default')",
        "",
    ),
];

#[test]
fn whatever_is_done_to_the_audit_is_found() {
    let _turn = crate::my_turn();
    let site = Site::build("[audit]\nstrict = true\n");
    let server = started(&site, &site.data);
    decide(&site, &server);
    stopped(server);
    let older = copied(&site, "older");

    // It continues, and somebody keeps how far it goes.
    let server = started(&site, &site.data);
    decide(&site, &server);
    let export = site.command(&server, &["audit", "export"]);
    assert!(export.status.success(), "{export:?}");
    let kept = site.folder.path().join("audit.jsonl");
    fs::write(&kept, &export.stdout).unwrap();
    let against = ["audit", "verify", "--against", kept.to_str().unwrap()];
    is_as_written(&site.command(&server, &["audit", "verify"]));
    is_as_written(&site.command(&server, &["audit", "verify", "--of-server"]));
    is_as_written(&site.command(&server, &against));
    stopped(server);

    for (name, sql, word) in DAMAGE {
        let data = copied(&site, name);
        let database = Connection::open(data.join("waypost.db")).unwrap();
        database.execute_batch(sql).unwrap();
        drop(database);
        let server = started(&site, &data);
        is_found(&site.command(&server, &["audit", "verify"]), name, word);
        stopped(server);
    }
    // The chain of an older copy is whole: only what was kept elsewhere tells.
    let server = started(&site, &older);
    is_as_written(&site.command(&server, &["audit", "verify"]));
    is_found(&site.command(&server, &against), "an older copy", "older copy");
    // It continues, and gets as many rows as there were.
    for _ in 0..RUNS {
        decide(&site, &server);
    }
    is_as_written(&site.command(&server, &["audit", "verify"]));
    is_found(&site.command(&server, &against), "an older copy that went on", "");
    stopped(server);
}

fn started(site: &Site, data: &Path) -> Server {
    let mut server = site.start_on(data);
    server.wait_until_ready();
    server
}

fn stopped(server: Server) {
    let ended = server.terminate();
    assert!(ended.status.success(), "the server did not end well: {ended:?}");
}

/// Somebody starts runs, and somebody else approves their calls, all with new keys.
fn decide(site: &Site, server: &Server) {
    let (starter, approver) = (site.person(server, STARTER), site.person(server, APPROVERS[0]));
    let mut client = server.client();
    for _ in 0..RUNS {
        let body = json!({"planId": PLAN_ID, "input": {}});
        let to = To::post("default", "/api/v1/runs");
        let run: Run = read(&starter.done(&mut client, to, &body)["run"]);
        let [ask] = run.asks.as_slice() else { panic!("{run:?} asks for no approval") };
        let path = format!("/api/v1/asks/{}", ask.id);
        approver.done(&mut client, To::post("default", &path), &reply(ask, true));
    }
}

/// A copy of the data, which no server holds, in a folder of its own.
fn copied(site: &Site, name: &str) -> PathBuf {
    let data = site.folder.path().join(name.replace(' ', "-")).join("data");
    copy_folder(&site.data, &data);
    data
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match source.is_dir() {
            true => copy_folder(&source, &target),
            false => {
                fs::copy(&source, &target).unwrap();
            }
        }
    }
}

fn is_as_written(output: &Output) {
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(told.contains("is as it was written"), "{told}");
}

fn is_found(output: &Output, what: &str, word: &str) {
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{what} is not found: {output:?}");
    assert!(told.contains("NOT as it was written") && told.contains(word), "{what}: {told}");
}
