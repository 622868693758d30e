//! The step `oidc`: an issuer that others wrote (`oidc-provider` from npm), and clients that others
//! wrote: the official MCP SDKs log in there and call the built server, and the `agentvault`
//! package (PyPI) asks the server itself for a token. All scripts are in `crates/testkit/oidc`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child::{self, Server};
use crate::shell::{self, Failure};
use crate::steps::interpreters::{self, Node};
use crate::steps::product;

/// What the issuer says before its address.
const LISTENING: &str = "issuer listening on ";
/// The environments of the Python SDKs, which peers use too, and of the other client.
const SDKS: &[&str] = &["python1", "python2"];
const AGENTVAULT: &str = "agentvault";
/// The versions of the TypeScript SDK, as their script calls them.
const ERAS: &[&str] = &["legacy", "modern"];
/// What administers the server; what it keeps safe is this test.
const ADMIN_KEY: &str = "an-admin-key-of-the-step-oidc-alone";
/// Scripts have a deadline of their own; this is for one that does not keep it.
const RUN_WAIT: Duration = Duration::from_secs(1_200);

/// A plan that MCP clients call as a tool.
const PLAN: &str = r#"planId: desk::greet
description: greets
parameters: {type: object}
startStepId: end
steps:
  - {id: end, type: final_response, message: Hello from the desk.}
"#;

/// A program that checks something, and what it is called.
struct Check {
    name: String,
    command: Command,
}

/// `cargo xtask oidc`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    product::build(root)?;
    run(root, &target)
}

/// Starts the issuer and the built server that takes its tokens, and lets all clients at them.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let folder = target.join("oidc");
    let scripts = interpreters::oidc_folder(root);
    let node = interpreters::node(root, target)?;
    let project = product::project(&folder)?;
    let mut command = Command::new(&node.program);
    command.arg(interpreters::node_script(&node, &scripts.join("issuer.mjs"), "oidc_issuer")?);
    // It goes with its value: it has nothing to say at its end.
    let issuer = Server::start(&mut command, LISTENING, &folder.join("issuer.log"))?;
    child::create_folder(&project.join("plans").join("desk"))?;
    child::write(&project.join("plans").join("desk").join("greet.yaml"), PLAN)?;
    child::write(&project.join("waypost.toml"), &settings(&issuer.url))?;
    let server = product::serve_guarded(target, &folder, ADMIN_KEY)?;
    let checks = checks(root, target, &node, [&server.url, &issuer.url]);
    let checked =
        checks.and_then(|checks| checks.into_iter().try_for_each(|check| passed(check, &folder)));
    server.stop_after(checked)
}

/// All that is checked, with what it needs installed.
fn checks(root: &Path, target: &Path, node: &Node, urls: [&str; 2]) -> Result<Vec<Check>, Failure> {
    let scripts = interpreters::oidc_folder(root);
    let peers = interpreters::peers_folder(root);
    let [server, issuer] = urls;
    let mcp = format!("{server}/mcp");
    let python = interpreters::python(&peers, target, "python2")?;
    let mut checks = vec![check("tokens", &[python, scripts.join("check.py")], &urls)];
    let script = interpreters::node_script(node, &scripts.join("client.mjs"), "oidc_client")?;
    for era in ERAS {
        let words = [node.program.clone(), script.clone()];
        checks.push(check(&format!("ts_{era}"), &words, &[*era, mcp.as_str(), issuer]));
    }
    for name in SDKS {
        let words = [interpreters::python(&peers, target, name)?, scripts.join("client.py")];
        checks.push(check(name, &words, &[mcp.as_str(), issuer]));
    }
    let python = interpreters::python(&scripts, target, AGENTVAULT)?;
    let words = [python, scripts.join(AGENTVAULT).join("check.py")];
    checks.push(check(AGENTVAULT, &words, &[server, ADMIN_KEY]));
    Ok(checks)
}

/// An interpreter with its script, and what the script is given.
fn check(name: &str, words: &[PathBuf; 2], given: &[&str]) -> Check {
    let [program, script] = words;
    let mut command = Command::new(program);
    command.arg(script).args(given);
    Check { name: name.to_owned(), command }
}

fn passed(check: Check, folder: &Path) -> Result<(), Failure> {
    let Check { name, mut command } = check;
    let log = folder.join(format!("{name}.log"));
    let passed = child::checks_within(&name, &mut command, &log, RUN_WAIT)?;
    println!("   {name}: {passed} checks");
    Ok(())
}

/// The server takes tokens of the issuer: for this audience everywhere, and for its `/mcp` there.
fn settings(issuer: &str) -> String {
    format!(
        "[auth.issuers.corp]\nurl = \"{issuer}\"\naudience = \"https://waypost.test/api\"\n\
         realms = [\"default\"]\n\n\
         [auth.issuers.corp.roles]\nstaff = [\"member\"]\nrobots = [\"operator\"]\n"
    )
}
