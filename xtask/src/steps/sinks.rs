//! The step `sinks`: events go out of the built server to a webhook receiver around the
//! `standardwebhooks` package (PyPI), which verifies every delivery while it is well and unwell.
//! `crates/testkit/sinks/check.py` publishes and looks at what arrived.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::child::{self, Server};
use crate::shell::{self, Failure};
use crate::steps::interpreters;
use crate::steps::product;

/// The environment, and the folder of its list and its script.
const RECEIVER: &str = "standardwebhooks";
/// What the receiver says before its address.
const LISTENING: &str = "receiver listening on ";
/// The base64 of 32 bytes; what it keeps safe is this test.
const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
/// The script has a deadline of its own; this is for one that does not keep it.
const RUN_WAIT: Duration = Duration::from_secs(2_400);

/// A plan that tells three events.
const PLAN: &str = r#"planId: out/three
description: tells three events, one after the other
parameters: {type: object, required: [number]}
startStepId: one
steps:
  - id: one
    type: publish_event
    event: {type: Told, number: {jsonPath: $.promptInput.number}, part: 1}
    nextStepId: two
  - id: two
    type: publish_event
    event: {type: Told, number: {jsonPath: $.promptInput.number}, part: 2}
    nextStepId: three
  - id: three
    type: publish_event
    event: {type: Told, number: {jsonPath: $.promptInput.number}, part: 3}
    nextStepId: end
  - {id: end, type: final_response, message: {jsonPath: $.promptInput.number}}
"#;

/// `cargo xtask sinks`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    product::build(root)?;
    run(root, &target)
}

/// Lets the receiver verify what the built server sends.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let folder = target.join("sinks");
    let scripts = interpreters::sinks_folder(root);
    let python = interpreters::python(&scripts, target, RECEIVER)?;
    let project = product::project(&folder)?;
    let mut command = Command::new(&python);
    command.arg(scripts.join(RECEIVER).join("receiver.py")).arg(SECRET);
    let receiver = Server::start(&mut command, LISTENING, &folder.join("receiver.log"))?;
    let file = project.join("events.jsonl");
    child::create_folder(&project.join("plans").join("out"))?;
    child::write(&project.join("plans").join("out").join("three.yaml"), PLAN)?;
    child::write(&project.join("waypost.toml"), &settings(&receiver.url, &file))?;
    let command = command_of(&python, &scripts);
    let checked = checked(target, &folder, command, &receiver.url, &file);
    receiver.stop_after(checked)
}

fn command_of(python: &Path, scripts: &Path) -> Command {
    let mut command = Command::new(python);
    command.arg(scripts.join("check.py"));
    command
}

fn checked(
    target: &Path,
    folder: &Path,
    mut command: Command,
    receiver: &str,
    file: &Path,
) -> Result<(), Failure> {
    let server = product::serve(target, folder)?;
    command.args([server.url.as_str(), receiver]).arg(file);
    let log = folder.join("check.log");
    let passed = child::checks_within("the check of sinks", &mut command, &log, RUN_WAIT);
    let passed = passed.map(|passed| println!("   {RECEIVER}: {passed} checks"));
    server.stop_after(passed)
}

/// Nothing is given up, and no one waits long: the receiver is well again soon.
fn settings(receiver: &str, file: &Path) -> String {
    let file = file.display();
    format!(
        "[limits]\ndelivery_backoff_ms = 20\ndelivery_backoff_ms_max = 1500\n\
         delivery_attempts_max = 100000\n\n\
         [events.sinks.lines]\ntype = \"file\"\npath = \"{file}\"\n\n\
         [events.sinks.hook]\ntype = \"webhook\"\nurl = \"{receiver}/events\"\n\
         secret = \"{SECRET}\"\ntimeout_ms = 2000\n"
    )
}
