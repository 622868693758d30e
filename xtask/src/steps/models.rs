//! The step `models`: the vendors' own SDKs talk to our fakes of their wires
//! (`crates/testkit/src/llms`), so that what our adapters are tested against is what the providers
//! say. `crates/testkit/models/sdks/check.py` is the client.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::child::{self, Server};
use crate::shell::{self, Failure};
use crate::steps::fixtures;
use crate::steps::interpreters;

const FAKES: &str = "fake-models";
/// What it says before its address.
const LISTENING: &str = "fake models listening on ";
/// The environment, and the folder of its list and its script.
const SDKS: &str = "sdks";
const SCRIPT: &str = "check.py";
/// Every request has a deadline of its own; this is for a script that does not keep it.
const RUN_WAIT: Duration = Duration::from_secs(1_800);
/// How a check that passed begins.
const PASSED: &str = "ok ";
/// Keys and addresses that the SDKs would take from the environment.
const UNWANTED: &[&str] = &[
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_GENAI_API_VERSION",
    "GOOGLE_GENAI_USE_VERTEXAI",
];

/// `cargo xtask models`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    fixtures::build(root, &target)?;
    run(root, &target)
}

/// Lets the SDKs at the built fakes.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let folder = target.join("models");
    child::create_folder(&folder)?;
    let lists = interpreters::models_folder(root);
    let python = interpreters::python(&lists, target, SDKS)?;
    let mut fakes = Command::new(fixtures::program(target));
    fakes.arg(FAKES);
    // It goes with its value: it has nothing to say at its end.
    let fakes = Server::start(&mut fakes, LISTENING, &folder.join("fakes.log"))?;
    let mut command = Command::new(python);
    command.arg(lists.join(SDKS).join(SCRIPT)).arg(&fakes.url);
    // What a script prints must be in its log even when it is ended.
    command.env("PYTHONUNBUFFERED", "1");
    for variable in UNWANTED {
        command.env_remove(variable);
    }
    let log = folder.join("sdks.log");
    let status = child::run_within("the SDKs", &mut command, &log, RUN_WAIT)?;
    let text = fs::read_to_string(&log).unwrap_or_default();
    let passed = text.lines().filter(|line| line.starts_with(PASSED)).count();
    if status.success() && passed > 0 {
        println!("   the SDKs: {passed} checks");
        return Ok(());
    }
    child::print_logs(&log);
    Err(Failure::new(format!("the SDKs ended with {status} after {passed} checks that passed")))
}
