//! The step `api`: schemathesis (PyPI) reads `/openapi.json` of the real server and tries its
//! routes with thousands of requests, right and wrong ones. No answer may be a server error, and
//! none may have a status, a type or a body that the document does not tell.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child::{self, Server};
use crate::shell::{self, Failure};
use crate::steps::product;

const VERSION: &str = "4.32.5";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance";
/// Requests per route and phase; more find little more and take minutes.
const EXAMPLES_MAX: &str = "25";
const SEED: &str = "1";
/// Streams have no end, so no one waits for it; a backup would be written wherever a made-up path
/// leads on this machine.
const LEFT_OUT: &str = "/(events|backup)$";

/// A tool that fails is answered with 502: that is an answer, and no fault of ours.
const SETTINGS: &str = "hooks = \"hooks.py\"\n\n\
                        [checks.not_a_server_error]\n\
                        expected-statuses = [\"2xx\", \"3xx\", \"4xx\", 502]\n";

/// Every route has a `default` answer, and with it every status would count as documented.
const HOOKS: &str = "\
import schemathesis


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for path in raw_schema[\"paths\"].values():
        for operation in path.values():
            operation[\"responses\"].pop(\"default\", None)
";

const RUN_WAIT: Duration = Duration::from_secs(3_600);
/// How long an answer may take: twice as long as a request that waits for its run, at least.
const ANSWER_WAIT_S: &str = "120";

/// Starts the built server, lets schemathesis at it, and stops it.
pub fn run(target: &Path) -> Result<(), Failure> {
    let program = provision(target)?;
    let folder = target.join("api");
    child::create_folder(&folder)?;
    child::write(&folder.join("schemathesis.toml"), SETTINGS)?;
    child::write(&folder.join("hooks.py"), HOOKS)?;
    let mut command = product::command(target, &folder);
    let server =
        Server::start(command.arg("--demo"), product::LISTENING, &folder.join("server.log"))?;
    let examined = examine(&program, &folder, &server.url);
    server.stop_after(examined)
}

/// schemathesis in a virtual environment of its own, made once.
fn provision(target: &Path) -> Result<PathBuf, Failure> {
    let _turn = shell::install_turn(target)?;
    let venv = target.join("venv");
    let program = venv.join("bin").join("schemathesis");
    let installed = || {
        shell::output_of("schemathesis", Command::new(&program).arg("--version"))
            .is_ok_and(|told| told.contains(VERSION))
    };
    if installed() {
        return Ok(program.clone());
    }
    shell::run("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    shell::run(
        "pip install schemathesis",
        Command::new(venv.join("bin").join("pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .arg(format!("schemathesis=={VERSION}")),
    )?;
    if installed() {
        return Ok(program.clone());
    }
    Err(Failure::new(format!(
        "schemathesis {VERSION} is not in `{}`; remove that folder and try again",
        venv.display()
    )))
}

fn examine(program: &Path, folder: &Path, url: &str) -> Result<(), Failure> {
    let log = folder.join("schemathesis.log");
    let mut command = Command::new(program);
    command
        .args(["--config-file", "schemathesis.toml", "--no-color", "run"])
        .arg(format!("{url}/openapi.json"))
        .args(["--checks", CHECKS, "--max-examples", EXAMPLES_MAX, "--seed", SEED])
        .args(["--exclude-path-regex", LEFT_OUT, "--generation-database", "none"])
        .args(["--request-timeout", ANSWER_WAIT_S, "--warnings", "off"])
        .current_dir(folder);
    let status = child::run_within("schemathesis", &mut command, &log, RUN_WAIT)?;
    if status.success() {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let counts = text.lines().find(|line| line.contains(" generated, "));
        println!("   schemathesis: {}", counts.unwrap_or("no requests").trim());
        return Ok(());
    }
    child::print_logs(&log);
    Err(Failure::new(format!(
        "schemathesis ended with {status}; mend the route or what its table of routes says"
    )))
}
