//! The part of the step `upstreams` with a service that is no MCP server: Chroma, a database from
//! PyPI that serves its own OpenAPI document, behind a `waypost up` with REST providers made from
//! it. `check_rest.py` in `crates/testkit/upstreams` is the client, over REST and over MCP.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child::{self, Server};
use crate::shell::{self, Failure};
use crate::steps::interpreters;
use crate::steps::product;

/// The service's folder below those of the upstreams, and its environment.
const SERVICE: &str = "chroma";
const LISTENING: &str = "listening on ";
const DOCUMENT: &str = "/openapi.json";
const ERAS: &[&str] = &["legacy", "modern"];
/// The script has a deadline of its own; this is for one that does not keep it.
const RUN_WAIT: Duration = Duration::from_secs(1_800);

/// Starts the service and the built server before it, and lets the client of each era at it.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let folder = target.join("upstreams").join("rest");
    let data = folder.join("data");
    // What an earlier run left would be found again.
    if data.exists() {
        fs::remove_dir_all(&data).map_err(|error| {
            Failure::new(format!("cannot remove `{}`: {error}; remove it", data.display()))
        })?;
    }
    child::create_folder(&folder)?;
    let scripts = interpreters::upstreams_folder(root);
    let python = interpreters::python(&scripts, target, SERVICE)?;
    let mut command = Command::new(python);
    command.arg(scripts.join(SERVICE).join("server.py")).arg(&data);
    let service = Server::start(&mut command, LISTENING, &folder.join("service.log"))?;
    let file = folder.join("openapi.json");
    child::write(&file, &moved(&document(&service.url)?, &service.url)?)?;
    let settings = settings(&service.url, &file);
    let server = product::start(target, &folder, &settings, "{}")?;
    let python = interpreters::python(&interpreters::peers_folder(root), target, "python2")?;
    let client = [python, scripts.join("check_rest.py")];
    let checked = check(&client, &folder, [&server.url, &service.url]);
    // The service goes with its value: it has nothing to say at its end.
    server.stop_after(checked)
}

/// Lets the client at the server and at the service behind it, in one era after the other.
fn check(client: &[PathBuf; 2], folder: &Path, urls: [&str; 2]) -> Result<(), Failure> {
    let [python, script] = client;
    for era in ERAS {
        let mut command = Command::new(python);
        command.arg(script).arg(era).args(urls);
        let log = folder.join(format!("check-{era}.log"));
        let name = format!("a client of REST and {era} MCP");
        let passed = child::checks_within(&name, &mut command, &log, RUN_WAIT)?;
        println!("   {name} with a REST provider: {passed} checks");
    }
    Ok(())
}

/// The service's own document.
fn document(service: &str) -> Result<String, Failure> {
    let url = format!("{service}{DOCUMENT}");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--noproxy", "*", url.as_str()]);
    shell::output_of("curl", &mut curl)
}

/// A document in JSON as the service would write it if it named its server itself.
fn moved(document: &str, service: &str) -> Result<String, Failure> {
    let rest = document.trim_start().strip_prefix('{').ok_or_else(|| {
        Failure::new(format!("what `{service}{DOCUMENT}` answers is no object of JSON"))
    })?;
    Ok(format!("{{\"servers\": [{{\"url\": \"{service}\"}}],{rest}"))
}

/// Three providers: one of the document's URL, which says by itself that its address is meant, and
/// two of a file, whose server is not a public one: without and with the operator's word for it.
fn settings(service: &str, file: &Path) -> String {
    // Rust quotes a path as TOML does, as long as it has no control characters.
    format!(
        "[providers.chroma]\ntype = \"rest\"\ndocument = \"{service}{DOCUMENT}\"\n\n\
         [providers.walled]\ntype = \"rest\"\ndocument = {file:?}\n\n\
         [providers.allowed]\ntype = \"rest\"\ndocument = {file:?}\nallow_private = true\n\
         include = [\"version\"]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_gets_a_server() {
        let moved = moved(" {\"openapi\":\"3.1.0\"}", "http://127.0.0.1:7").unwrap_or_default();
        let expected = r#"{"servers": [{"url": "http://127.0.0.1:7"}],"openapi":"3.1.0"}"#;
        assert_eq!(moved, expected);
        assert!(super::moved("<html>", "http://127.0.0.1:7").is_err());
    }

    #[test]
    fn only_one_provider_may_leave_the_public() {
        let settings = settings("http://127.0.0.1:7", Path::new("/a b/openapi.json"));
        assert_eq!(settings.matches("allow_private").count(), 1);
        assert!(settings.contains("document = \"http://127.0.0.1:7/openapi.json\"\n"));
        assert_eq!(settings.matches("document = \"/a b/openapi.json\"\n").count(), 2);
    }
}
