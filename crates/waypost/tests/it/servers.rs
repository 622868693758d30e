//! Which server a command talks to: the one that is named, the one that serves the folder, the one
//! that the folder's settings describe. Never one that merely listens where another did.

use crate::process::{Ended, Server, waypost, waypost_with, write};
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use testkit::harness::wait_for;

const LIMIT: Duration = Duration::from_secs(120);

const SAYS: &str = "description: says who it is\nsteps:\n  \
                    - {id: end, type: final_response, message: here is NAME}\n";
const ASKS: &str = "description: asks\nstartStepId: ask\nsteps:\n  \
                    - {id: ask, type: human_in_the_loop, message: Who asks?, \
                    nextStepIdOnInput: end}\n  \
                    - {id: end, type: final_response, message: NAME heard}\n";

/// A project with two plans of its own.
fn project(name: &str, settings: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let says = SAYS.replace("NAME", name);
    let asks = ASKS.replace("NAME", name);
    let at_says = format!("plans/{name}/says.yaml");
    let at_asks = format!("plans/{name}/asks.yaml");
    let files = [
        ("waypost.toml", settings),
        (at_says.as_str(), says.as_str()),
        (at_asks.as_str(), asks.as_str()),
    ];
    write(folder.path(), &files);
    folder
}

/// The keys of the sessions that a server has.
fn sessions(server: &Server) -> Vec<String> {
    let listed = server.json(&["session", "ls"]).code(0).json();
    let key = |session: &Value| session["key"].as_str().unwrap().to_owned();
    listed["items"].as_array().unwrap().iter().map(key).collect()
}

/// Nobody needs to be told which server it was.
fn quiet(ended: &Ended) {
    assert!(!ended.stderr.contains("server"), "{ended:#?}");
}

#[test]
fn each_command_reaches_the_server_of_its_folder() {
    let settings = "[tools]\ndemo = true\n";
    let one = project("one", settings);
    let two = project("two", settings);
    let servers = [Server::of_project(one.path()), Server::of_project(two.path())];
    for (name, folder, server) in [("one", &one, &servers[0]), ("two", &two, &servers[1])] {
        let says = format!("{name}/says");
        let asks = format!("{name}/asks");
        // A folder below the project is in the project.
        write(folder.path(), &[("deep/er/x", "")]);
        let says = says.as_str();
        let asks = asks.as_str();
        let here = format!("here is {name}\n");
        let table: [(&[&str], i32, &str); 16] = [
            (&["plan", "ls"], 0, says),
            (&["plan", "show", says], 0, "final_response"),
            (&["plan", "run", says, "--session", name], 0, here.as_str()),
            (&["plan", "run", asks, "--session", "asked"], 3, "Who asks?"),
            (&["inbox", "ls"], 0, "asked"),
            (&["session", "ls"], 0, asks),
            (&["session", "show", name], 0, "completed"),
            (&["session", "tail", name], 0, "run.ended"),
            (&["session", "cancel", "asked"], 0, " cancelled\n"),
            (&["session", "prune", "--older-than", "30d"], 0, "0 sessions removed"),
            (&["tool", "ls"], 0, says),
            (&["tool", "call", "math::add", "a=1", "b=2"], 0, "3\n"),
            (&["agent", "ls"], 0, "AGENT"),
            (&["pipeline", "ls"], 0, "PIPELINE"),
            (&["events", "sinks"], 0, "NAME"),
            (&["mcp", "ls"], 0, "NAME"),
        ];
        for (arguments, code, said) in table {
            let ended = waypost(&folder.path().join("deep/er"), arguments).code(code);
            assert!(ended.stdout.contains(said), "no `{said}` in {ended:#?}");
            assert!(!ended.stderr.contains("using the server"), "{ended:#?}");
        }
        let mut keys = sessions(server);
        keys.retain(|key| !key.starts_with("ses_"));
        keys.sort_unstable();
        assert_eq!(keys, ["asked", name]);
        let quiet = waypost(folder.path(), &["--json", "plan", "ls"]).code(0);
        assert_eq!(quiet.stderr, "");
    }
}

#[test]
fn a_named_server_goes_before_the_folder() {
    let one = project("one", "");
    let two = project("two", "");
    let servers = [Server::of_project(one.path()), Server::of_project(two.path())];
    let [_, other] = &servers;
    let run = ["plan", "run", "two/says"];
    let flag = [&["--server", other.url.as_str()][..], &run].concat();
    let ended =
        waypost_with(one.path(), &flag, &[("WAYPOST_SERVER", servers[0].url.as_str())]).code(0);
    quiet(&ended);
    // A file may name one that is news.
    let named = format!("WAYPOST_SERVER={}\n", other.url);
    write(one.path(), &[(".env", named.as_str())]);
    let note = format!("using the server at {} (.env:1)\n", other.url);
    waypost(one.path(), &run).code(0).says(&note);
    fs::remove_file(one.path().join(".env")).unwrap();
    let ended = waypost_with(one.path(), &run, &[("WAYPOST_SERVER", other.url.as_str())]).code(0);
    quiet(&ended);
    // And the folder's server before what its settings say.
    let settings = format!("[server]\nport = {}\n", other.port());
    write(one.path(), &[("waypost.toml", settings.as_str())]);
    let ended = waypost(one.path(), &["plan", "run", "one/says"]).code(0);
    quiet(&ended);
}

/// Where a server left its address.
fn address(folder: &Path) -> PathBuf {
    folder.join(".waypost/address")
}

#[test]
fn the_address_of_a_server_that_is_gone_is_passed_over() {
    let one = project("one", "[server]\nport = 0\n");
    let two = project("two", "");
    let gone = Server::of_project(one.path());
    let url = gone.url.clone();
    let other = Server::of_project(two.path());
    gone.stop();
    assert!(address(one.path()).is_file());
    let ended = waypost(one.path(), &["plan", "ls"]).code(6);
    let expected = format!(
        "error: no server of this folder is known: no server listens at {url}\n\
         hint: the settings leave its port to the system: start it with `waypost up`, or name it \
         with `--server URL`\n"
    );
    assert_eq!(ended.stderr, expected);
    // The settings lead to another project's server: it is read from, and nothing is changed there.
    let settings = format!("[server]\nport = {}\n", other.port());
    write(one.path(), &[("waypost.toml", settings.as_str())]);
    let read = waypost(one.path(), &["plan", "ls"]).code(0);
    assert!(read.stdout.contains("two/says"), "{read:#?}");
    let note = format!(
        "`: no server listens at {url}; reading from {}, which may be another project's\n",
        other.url
    );
    assert!(read.stderr.starts_with("no server runs for `"), "{read:#?}");
    assert!(read.stderr.ends_with(&note) && read.stderr.lines().count() == 1, "{read:#?}");
    other.run(&["plan", "run", "two/asks", "--session", "theirs"]).code(3);
    let changes: [&[&str]; 6] = [
        &["plan", "run", "two/says", "--session", "astray"],
        &["run", "hello", "--thread", "astray"],
        &["inbox", "answer", "--last", "Ada"],
        &["session", "cancel", "theirs"],
        &["session", "prune", "--older-than", "0s"],
        &["tool", "call", "two/says"],
    ];
    for arguments in changes {
        let refused = waypost(one.path(), arguments).code(6).says("nothing is changed at");
        let refused = refused.says("start this folder's with `waypost up`");
        assert_eq!(refused.stdout, "", "{refused:#?}");
    }
    assert_eq!(sessions(&other), ["theirs"]);
    let asks = other.json(&["inbox", "ls"]).code(0).json();
    assert_eq!(asks["items"].as_array().unwrap().len(), 1, "{asks}");
}

#[test]
fn a_project_that_was_never_served_changes_nothing_at_the_default_server() {
    // Whether something listens there does not matter.
    let folder = project("one", "");
    let run = ["plan", "run", "one/says"];
    waypost(folder.path(), &run).code(6).says("no server runs for `").says("`waypost up`");
}

#[test]
fn a_server_that_listens_where_another_did_is_sent_nothing() {
    let one = project("one", "[server]\nport = 0\n");
    let two = project("two", "");
    let gone = Server::of_project(one.path());
    let other = Server::of_project(two.path());
    let left = fs::read_to_string(address(one.path())).unwrap();
    let url = gone.url.clone();
    let pid = gone.pid();
    gone.stop();
    // The system gave the port to the other server, and the process id to somebody as well.
    let stale = left
        .replace(&url, &other.url)
        .replace(&format!("pid {pid}"), &format!("pid {}", other.pid()));
    assert_ne!(stale, left);
    fs::write(address(one.path()), stale).unwrap();
    let commands: [&[&str]; 6] = [
        &["plan", "ls"],
        &["plan", "run", "two/says", "--session", "astray"],
        &["inbox", "ls"],
        &["session", "ls"],
        &["session", "cancel", "astray"],
        &["session", "prune", "--older-than", "0s"],
    ];
    for arguments in commands {
        let ended = waypost(one.path(), arguments).code(6);
        let why =
            format!("no server of this folder is known: another server listens at {}", other.url);
        assert_eq!((ended.stdout.as_str(), ended.stderr.contains(&why)), ("", true), "{ended:#?}");
    }
    assert_eq!(sessions(&other), Vec::<String>::new());
    // What a folder says of other machines is not believed, and without a token nothing is.
    let without_token = format!("pid 1\nurl {}\n", other.url);
    for text in ["pid 1\nurl http://192.0.2.1:80\ntoken x\n", without_token.as_str()] {
        fs::write(address(one.path()), text).unwrap();
        waypost(one.path(), &["plan", "ls"]).code(6).says("no server of this folder is known");
    }
    // A program that speaks something else.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    fs::write(address(one.path()), format!("pid {}\nurl http://{place}\ntoken x\n", u32::MAX))
        .unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(listener.accept().unwrap()));
        waypost(one.path(), &["plan", "ls"]).code(6).says("no server of this folder is known");
    });
}

#[test]
fn outside_of_a_project_the_default_server_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let shown = waypost(folder.path(), &["--json", "config", "show"]).code(0).json();
    let client = |shown: &Value| {
        let mut all = shown["settings"].as_array().unwrap().iter();
        all.find(|setting| setting["key"] == "client.server").unwrap().clone()
    };
    let expected = json!({
        "key": "client.server", "value": "http://127.0.0.1:8420", "origin": "default"
    });
    assert_eq!(client(&shown), expected);
    write(folder.path(), &[("waypost.toml", "[server]\nport = 8777\n")]);
    let shown = waypost(folder.path(), &["--json", "config", "show"]).code(0).json();
    let expected = json!({
        "key": "client.server", "value": "http://127.0.0.1:8777", "origin": "waypost.toml:2"
    });
    assert_eq!(client(&shown), expected);
}

#[test]
fn a_server_whose_data_is_elsewhere_says_how_it_is_reached() {
    let folder = project("one", "");
    let log = |server: &Server| {
        wait_for("the server to say how it is reached", LIMIT, || {
            Some(server.log()).filter(|log| log.contains("MCP clients connect"))
        })
    };
    let elsewhere = Server::elsewhere(folder.path());
    let told = format!("commands reach this server with `--server {}`\n", elsewhere.url);
    let said = log(&elsewhere);
    assert!(said.contains(&told), "{said}");
    let said = log(&Server::of_project(folder.path()));
    assert!(!said.contains("commands reach"), "{said}");
}
