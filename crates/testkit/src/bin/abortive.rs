//! Our own server over a project folder, with two more tools: a test sees with them what becomes of
//! a run that ends the process. `test::hold` answers once the project has a file `go`;
//! `test::abort` ends the process while the project has a file `abort`, and answers otherwise.
//!
//! `abortive PROJECT DATA` serves on a free port of this machine until its standard input ends.

use engine::system::clock::SystemClock;
use futures::future::BoxFuture;
use kernel::contracts::{Clock, Tool};
use kernel::definition::plan::mistake::Mistake;
use kernel::tool::call::{Call, Caller, Pace, Reach, ToolError, ToolOutput, ToolSpec, Yields};
use project::config::Config;
use project::folder::{CONFIG_FILE, Project};
use serde_json::json;
use server::{Extra, Setup};
use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use testkit::harness::SERVER_BANNER;
use tokio::io::{copy, sink, stdin};
use tokio::net::TcpListener;

/// How often `test::hold` looks for its file.
const LOOK_MS: u64 = 5;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("abortive: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [project, data] = words.as_slice() else {
        return Err("it takes the folder of a project and a folder for data".to_owned());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(in_words)?;
    let served = runtime.block_on(serve(project, data));
    // A thread may still wait for standard input; no one waits for the thread.
    runtime.shutdown_background();
    served
}

async fn serve(folder: &Path, data: &Path) -> Result<(), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(in_words)?;
    let address = listener.local_addr().map_err(in_words)?;
    let setup = Setup::new(
        load(folder)?,
        data.to_path_buf(),
        address,
        Arc::new(|why: String| {
            eprintln!("abortive: {why}");
            std::process::exit(1);
        }),
    );
    let extra = Extra { tools: tools(folder), ..Extra::default() };
    let assembled = server::assemble(Setup { extra, ..setup }).await.map_err(in_words)?;
    writeln!(io::stdout(), "{SERVER_BANNER}{address}").map_err(in_words)?;
    server::serve(assembled, listener, None, parent_gone()).await;
    Ok(())
}

fn load(folder: &Path) -> Result<Project, String> {
    let text = fs::read_to_string(folder.join(CONFIG_FILE)).map_err(in_words)?;
    let config = Config::parse(CONFIG_FILE, &text).map_err(|mistakes| {
        let lines: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
        lines.join("\n")
    })?;
    Project::load(folder, config).map_err(in_words)
}

async fn parent_gone() {
    // An error says the same as the end of the input: no one is there any more.
    let _ = copy(&mut stdin(), &mut sink()).await;
}

fn tools(folder: &Path) -> Vec<Arc<dyn Tool>> {
    let tool = |name: &str, description: &str, act: Act, file: &str| -> Arc<dyn Tool> {
        let spec = Arc::new(spec(name, description));
        Arc::new(FileTool { spec, act, file: folder.join(file) })
    };
    vec![
        tool("test::hold", "Answers once the project has a file `go`.", Act::Hold, "go"),
        tool(
            "test::abort",
            "Ends the process if the project has a file `abort`.",
            Act::Abort,
            "abort",
        ),
    ]
}

/// A tool whose doing depends on whether a file is there.
struct FileTool {
    spec: Arc<ToolSpec>,
    act: Act,
    file: PathBuf,
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Hold,
    Abort,
}

impl Tool for FileTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _: &'a Caller,
        _: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match self.act {
                Act::Hold => {
                    while !self.file.exists() {
                        SystemClock.sleep_until(SystemClock.now().plus_ms(LOOK_MS)).await;
                    }
                }
                // In the middle of its driver's work, as a tool does that overflows its stack.
                Act::Abort if self.file.exists() => std::process::abort(),
                Act::Abort => {}
            }
            Ok(ToolOutput::Value(json!("done")))
        })
    }
}

/// A tool that reads and takes nothing.
fn spec(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        title: name.to_owned(),
        description: description.to_owned(),
        input_schema: Arc::new(json!({"type": "object", "properties": {}})),
        output_schema: None,
        reach: Reach::Reads,
        idempotent: true,
        tags: vec!["fixture".to_owned()],
        pace: Pace::Quick,
        yields: Yields::Value,
        unrecorded: false,
        listed: None,
    }
}

fn in_words(error: impl Display) -> String {
    error.to_string()
}
