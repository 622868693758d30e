//! `waypost key`, `waypost whoami` and `waypost serve`: who has a key is let in, and no one else.

use crate::process::{Ended, Server, waypost, waypost_with};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use testkit::harness::wait_for;
use testkit::http::Client;
use testkit::servers::login::LoginServer;

/// A project, and the folder around it.
fn project() -> (TempDir, PathBuf) {
    let around = tempfile::tempdir().unwrap();
    waypost(around.path(), &["init", "shop"]).code(0);
    let shop = around.path().join("shop");
    (around, shop)
}

/// Makes a key with these options, with this key; its id and its text.
fn created(shop: &Path, options: &[&str], with: &str) -> (String, String) {
    let arguments = [&["--json", "key", "create"], options].concat();
    let made = with_key(shop, &arguments, with).code(0).json();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}

fn with_key(shop: &Path, arguments: &[&str], key: &str) -> Ended {
    waypost_with(shop, arguments, &[("WAYPOST_API_KEY", key)])
}

#[test]
fn the_first_key_is_made_before_the_server_starts_and_works() {
    let (_around, shop) = project();
    waypost(&shop, &["serve", "--port", "0"])
        .code(2)
        .says("waypost key add")
        .says("WAYPOST_ADMIN_KEY");
    let made = waypost(&shop, &["key", "create", "--name", "me", "--role", "admin"])
        .code(0)
        .says("shown this once")
        .says("WAYPOST_API_KEY")
        .says("no server holds");
    let key = made.stdout.trim_end().to_owned();
    assert!(key.starts_with("wp_") && made.stdout.lines().count() == 1, "{made:#?}");
    assert!(!made.stderr.contains(&key), "{made:#?}");

    let _server = Server::asking(&shop);
    waypost(&shop, &["tool", "ls"]).code(4).says("set WAYPOST_API_KEY");
    with_key(&shop, &["tool", "ls"], &format!("{key}x")).code(4).says("is no valid key");
    with_key(&shop, &["tool", "ls"], &key).code(0);
    with_key(&shop, &["plan", "run", "hello/greet"], &key).code(3);
    let who = with_key(&shop, &["--json", "whoami"], &key).code(0).json();
    assert_eq!(who["mode"], "credentials");
    assert_eq!((&who["key"]["name"], &who["roles"]), (&json!("me"), &json!(["admin"])));
    let told = with_key(&shop, &["whoami"], &key).code(0).stdout;
    assert!(told.contains("asks every caller") && !told.contains(&key), "{told}");
}

#[test]
fn a_key_is_listed_rotated_and_revoked_over_the_server_that_runs() {
    let (_around, shop) = project();
    let (_, admin) = created(&shop, &["--name", "me", "--role", "admin"], "");
    let _server = Server::asking(&shop);
    let (id, old) = created(&shop, &["--name", "ci", "--expires", "never"], &admin);
    let listed = with_key(&shop, &["--json", "key", "list"], &admin).code(0);
    assert!(!listed.stdout.contains("wp_"), "{listed:#?}");
    assert_eq!(listed.json()["items"].as_array().map(Vec::len), Some(2), "{listed:#?}");
    let table = with_key(&shop, &["key", "list"], &admin).code(0).stdout;
    assert!(table.contains("member of default") && table.contains("never"), "{table}");

    let rotate = ["--json", "key", "rotate", id.as_str(), "--overlap", "1h"];
    let rotated: Value = with_key(&shop, &rotate, &admin).code(0).json();
    let new = rotated["key"].as_str().unwrap();
    assert_ne!(new, old);
    for key in [old.as_str(), new] {
        with_key(&shop, &["tool", "ls"], key).code(0);
    }
    let tried = with_key(&shop, &["key", "revoke", &id, "--dry-run"], &admin).code(0).stdout;
    assert!(tried.contains("(`ci`: member of default, active) would end at once"), "{tried}");
    with_key(&shop, &["tool", "ls"], new).code(0);
    with_key(&shop, &["key", "revoke", &id], &admin).code(0).says("is revoked");
    for key in [old.as_str(), new] {
        with_key(&shop, &["tool", "ls"], key).code(4);
    }
    with_key(&shop, &["key", "revoke", "nosuchkeyx"], &admin).code(1).says("waypost key ls");
}

#[test]
fn the_removal_of_a_realm_can_be_tried() {
    let (_around, shop) = project();
    let (_, admin) = created(&shop, &["--name", "me", "--role", "admin", "--realm", "*"], "");
    let _server = Server::asking(&shop);
    let realm = |words: &[&str]| with_key(&shop, &[&["realm"], words].concat(), &admin);
    realm(&["add", "acme"]).code(0);
    let tried = realm(&["rm", "acme", "--dry-run"]).code(0).stdout;
    assert!(tried.contains("realm `acme` would be removed for good"), "{tried}");
    assert!(tried.contains("its audit stays; nothing was changed"), "{tried}");
    let tried = realm(&["rm", "default", "--dry-run", "--json"]).code(0).json();
    assert_eq!(tried, json!({"dryRun": true, "name": "default", "removed": false}));
    realm(&["rm", "nowhere", "--dry-run"]).code(1).says("no realm `nowhere`");
    let shown = realm(&["show", "acme", "--json"]).code(0).json();
    assert_eq!(shown["removedAt"], Value::Null, "{shown}");
    realm(&["rm", "acme"]).code(0).says("realm `acme` is removed");
    let again = realm(&["rm", "acme", "--dry-run"]).code(0).stdout;
    assert!(again.contains("would stay as it is: it was removed before"), "{again}");
}

#[test]
fn a_refusal_names_the_missing_role_or_scope() {
    let (_around, shop) = project();
    let (_, admin) = created(&shop, &["--name", "me", "--role", "admin"], "");
    let _server = Server::asking(&shop);
    let (_, viewer) = created(&shop, &["--name", "v", "--role", "viewer"], &admin);
    let run = ["plan", "run", "hello/greet"];
    with_key(&shop, &run, &viewer).code(7).says("may do this is `member`");
    let (_, reader) = created(&shop, &["--name", "r", "--scope", "read"], &admin);
    with_key(&shop, &run, &reader).code(7).says("lacks the scope `use`");
    with_key(&shop, &["key", "create", "--name", "x"], &viewer).code(7).says("is `admin`");
}

#[test]
fn a_key_does_not_go_to_a_server_that_asks_for_none() {
    let server = Server::demo();
    let folder = tempfile::tempdir().unwrap();
    let whoami = ["--server", server.url.as_str(), "whoami"];
    let told = waypost(folder.path(), &whoami).code(0).stdout;
    assert!(told.contains("local: the server asks for no credentials"), "{told}");
    with_key(folder.path(), &whoami, "wp_other").code(4).says("unset WAYPOST_API_KEY");
}

#[test]
fn doctor_says_who_may_call_and_which_keys_should_be_looked_at() {
    let (_around, shop) = project();
    let (_, admin) = created(&shop, &["--name", "me", "--role", "admin"], "");
    let _server = Server::asking(&shop);
    created(&shop, &["--name", "short", "--expires", "2d"], &admin);
    created(&shop, &["--name", "long", "--expires", "never"], &admin);
    let told = with_key(&shop, &["doctor"], &admin).stdout;
    for what in ["asks for credentials; we are", "expire within 7 days", "never expire"] {
        assert!(told.contains(what), "{told}");
    }
    assert!(!told.contains("(me)"), "{told}");
    let stranger = waypost(&shop, &["doctor"]).stdout;
    assert!(stranger.contains("does not know who we are"), "{stranger}");
}

#[test]
fn invalid_key_options_are_refused_before_anything_is_made() {
    let (_around, shop) = project();
    let create = ["key", "create", "--name", "x"];
    for (option, value, says) in [
        ("--role", "root", "viewer, member"),
        ("--scope", "all", "read, use"),
        ("--expires", "soon", "never"),
        ("--realm", "No Realm", "is not the name of a realm"),
    ] {
        waypost(&shop, &[&create[..], &[option, value]].concat()).code(2).says(says);
    }
}

/// A person follows the link of a login to its end: the code on the last page.
fn code_of(hub: &LoginServer, server: &Server, page: &str) -> String {
    let back = hub.agree(page);
    let path = back.strip_prefix(&server.url);
    let path = path.unwrap_or_else(|| panic!("`{back}` is not here"));
    let address = server.url.strip_prefix("http://").unwrap().parse().unwrap();
    let last = Client::new(address).get(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (_, rest) = last.body.split_once("The code is <code>").unwrap();
    rest.split_once("</code>").unwrap().0.to_owned()
}

#[test]
fn a_caller_logs_in_at_an_upstream_for_itself() {
    let hub = LoginServer::start();
    let (_around, shop) = project();
    let entry = format!("\n[mcp.servers.hub]\nurl = \"{}/mcp\"\nlogin = \"user\"\n", hub.base);
    let settings = OpenOptions::new().append(true).open(shop.join("waypost.toml"));
    settings.unwrap().write_all(entry.as_bytes()).unwrap();
    let (_, ann) = created(&shop, &["--name", "ann"], "");
    let (_, bob) = created(&shop, &["--name", "bob"], "");
    let server = Server::asking(&shop);
    let listed = |key: &str| with_key(&shop, &["--json", "mcp", "ls"], key).code(0).json();
    wait_for("the server that wants a login", Duration::from_secs(120), || {
        (listed(&ann)["items"][0]["state"] == "login").then_some(())
    });
    let is_logged_in = |key: &str| listed(key)["items"][0]["yourLogin"]["done"].clone();

    let begin = ["mcp", "login", "hub", "--mine", "--no-browser"];
    let begun = with_key(&shop, &begin, &ann).code(0);
    let begun =
        begun.says("log in at `hub` on this page").says("waypost mcp login hub --code CODE");
    let code = code_of(&hub, &server, begun.stdout.trim_end());
    let finish = ["mcp", "login", "hub", "--code", code.as_str()];
    with_key(&shop, &finish, &bob).code(1).says("no login that you began");
    with_key(&shop, &["mcp", "login", "hub", "--code", "AAAA-AAAA-AAAA"], &ann).code(1);
    assert_eq!((is_logged_in(&ann), is_logged_in(&bob)), (json!(false), json!(false)));
    with_key(&shop, &finish, &ann).code(0).says("you are logged in at `hub`");
    assert_eq!((is_logged_in(&ann), is_logged_in(&bob)), (json!(true), json!(false)));
    let forget = ["mcp", "logout", "hub", "--mine"];
    let tried =
        |key: &str| with_key(&shop, &[&forget[..], &["--dry-run"]].concat(), key).code(0).stdout;
    assert_eq!(tried(&ann), "your login at `hub` would be forgotten; nothing was changed\n");
    assert!(tried(&bob).contains("that you began at `hub`"), "{}", tried(&bob));
    assert_eq!(is_logged_in(&ann), json!(true));
    with_key(&shop, &forget, &ann).code(0).says("your login at `hub` is forgotten");
    assert_eq!(is_logged_in(&ann), json!(false));
}
