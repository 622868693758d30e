//! Data folders of every release, killed in the middle of work and kept as data (`data/` of this
//! crate; its README says how they are recorded): the program that is built now opens each of them,
//! finds what was stored, and continues with everything that had not come to its end.

mod noted;
mod site;
mod recovered;
mod asked;
mod logins;
mod kept;
mod guarded;

use crate::api;
use serde_json::Value;
use site::Site;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::harness::Server;
use testkit::http::{Client, Request};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
/// How long something may take that takes some seconds.
const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn data_folders_of_every_release_open_and_go_on() {
    let _turn = crate::my_turn();
    let releases = releases();
    assert!(!releases.is_empty(), "there are no data folders in {DATA}");
    for release in releases {
        crate::tell(&format!("releases: data of {}", release.display()));
        opens_and_goes_on(&release);
    }
}

#[test]
fn data_folders_of_every_release_go_on_where_everybody_needs_a_credential() {
    let _turn = crate::my_turn();
    for release in releases() {
        crate::tell(&format!("releases: data of {}, with credentials", release.display()));
        goes_on_with_credentials(&release);
    }
}

/// The recorded folders.
fn releases() -> Vec<PathBuf> {
    let entries = fs::read_dir(DATA).unwrap_or_else(|error| panic!("{DATA}: {error}"));
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut releases: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
    releases.sort();
    releases
}

fn opens_and_goes_on(release: &Path) {
    let site = Site::copy(release);
    let server = site.start("data");
    let mut client = server.client();
    recovered::check(&site, &mut client);
    logins::wait_until_ready(&mut client, "hub");
    kept::check(&site, &mut client);
    asked::answer(&site, &mut client);
    logins::check(&site, &mut client);
    kept::check_sink(&site, &mut client);
    site.doctor(&server);
    let over = statuses(&mut client);
    stop(server);

    // What continued stays as it is: at the next start, and in a backup that is restored.
    let effects = site.shop.effects().len();
    site.waypost(&["backup", "backup", "--data", "data"]);
    site.waypost(&["restore", "backup", "--data", "restored"]);
    for data in ["data", "restored"] {
        let server = site.start(data);
        let mut client = server.client();
        assert_eq!(statuses(&mut client), over, "`{data}`");
        assert_eq!(api::open_asks(&mut client, None).len(), 0, "`{data}`");
        kept::check_blobs(&site, &mut client);
        logins::wait_until_ready(&mut client, "hub");
        stop(server);
    }
    assert_eq!(site.shop.effects().len(), effects, "something was done once more");
    assert_eq!(site.hub.faults(), Vec::<String>::new(), "what the hub was sent");
    assert_eq!(site.hook.faults(), Vec::<String>::new(), "what the receiver was sent");
}

fn goes_on_with_credentials(release: &Path) {
    let site = Site::copy(release);
    let key = site.ask_for_credentials();
    let server = site.start("data");
    let mut client = server.client().with_header("x-api-key", &key);
    recovered::check(&site, &mut client);
    logins::wait_until_ready(&mut client, "hub");
    kept::check_blobs(&site, &mut client);
    kept::check_definitions(&mut client);
    guarded::check(&site, &mut client);
    stop(server);
    assert_eq!(site.hub.faults(), Vec::<String>::new(), "what the hub was sent");
}

fn stop(server: Server) {
    let ended = server.terminate();
    assert!(ended.status.success(), "{ended:?}");
}

/// All sessions by id, and where they stand.
fn statuses(client: &mut Client) -> BTreeMap<String, String> {
    let sessions: Vec<Value> = api::all(client, "/api/v1/sessions?");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    sessions.iter().map(|session| (text(&session["id"]), text(&session["status"]))).collect()
}

/// Sends a POST that must be answered with this status; the answer's body.
fn post(client: &mut Client, status: u16, path: &str, body: &Value) -> Value {
    let answer = client.post(path, body).unwrap_or_else(|error| panic!("POST {path}: {error}"));
    assert_eq!(answer.status, status, "POST {path} {body}: {}", answer.body);
    answer.json()
}

/// The same without a body.
fn post_nothing(client: &mut Client, status: u16, path: &str) -> Value {
    let request = Request { method: "POST", path, headers: &[], body: None };
    let answer = client.send(&request).unwrap_or_else(|error| panic!("POST {path}: {error}"));
    assert_eq!(answer.status, status, "POST {path}: {}", answer.body);
    answer.json()
}
