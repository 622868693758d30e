//! `waypost demo`: stories that are shown while they happen, on a server of their own that no one
//! else needs and that is gone at the end. Every answer is the server's; the command that gets the
//! same stands above it.

mod telling;
mod stage;
mod plans;
mod trade;
mod calendar;
mod tools;

use crate::assembly::{Keys, NOWHERE, assemble, refused};
use crate::commands::word;
use crate::context::Context;
use crate::environment::Environment;
use crate::exit::{Exit, Failure, Result};
use crate::process::folder::TemporaryFolder;
use crate::process::signals::Signals;
use crate::terminal::output::{Output, table};
use clap::{Args, ValueEnum};
use project::config::Config;
use project::folder::{DEMO_SETTINGS, Project};
use serde_json::json;
use stage::Stage;
use std::net::SocketAddr;
use telling::Teller;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

const EXAMPLES: &str = "\
Examples:
  waypost demo                 # all stories
  waypost demo trade           # one of them
  waypost demo --fast          # without pauses
  waypost demo --list          # which there are";

/// What `waypost demo` takes.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// The story [default: all of them]
    #[arg(value_enum, hide_possible_values = true)]
    story: Option<Story>,
    /// List the stories
    #[arg(long, conflicts_with = "story")]
    list: bool,
    /// Tell them without pauses; where no terminal is there are none anyway
    #[arg(long)]
    fast: bool,
}

/// A story.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Story {
    Plans,
    Trade,
    Calendar,
    Tools,
}

impl Story {
    fn about(self) -> &'static str {
        match self {
            Story::Plans => "a plan that asks a person, and waits as long as it takes",
            Story::Trade => "failed trades: handlers for known reasons, an agent for the others",
            Story::Calendar => "an assistant that shows what it would change before it does",
            Story::Tools => "the same tools and plans for MCP clients",
        }
    }

    async fn tell(self, stage: &Stage) -> Result<()> {
        stage.begin(&word(&self), self.about()).await?;
        match self {
            Story::Plans => plans::tell(stage).await,
            Story::Trade => trade::tell(stage).await,
            Story::Calendar => calendar::tell(stage).await,
            Story::Tools => tools::tell(stage).await,
        }
    }
}

/// Tells the stories.
pub(crate) async fn run(args: DemoArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    if args.list {
        return list(output);
    }
    // Listened to from here on: a signal must not leave the temporary folder behind.
    let mut signals = Signals::listen()?;
    let folder = TemporaryFolder::new()?;
    let listener = TcpListener::bind(NOWHERE).await.map_err(|error| unbound(&error))?;
    let address = listener.local_addr().map_err(|error| unbound(&error))?;
    let keys = Keys::of(&Environment::bare());
    let starting = assemble(project()?, folder.path().to_path_buf(), address, keys);
    let assembled = tokio::select! {
        assembled = starting => assembled.map_err(refused)?,
        () = signals.next() => return Err(context.interrupted()),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server::serve(assembled, listener, None, async move {
        // No one sends anything: the story drops it.
        let _ = stopped.await;
    });
    let telling = async {
        let told = tokio::select! {
            told = tell(&args, output, address) => told,
            () = signals.next() => Err(context.interrupted()),
        };
        drop(stop);
        told
    };
    let ((), told) = tokio::join!(serving, telling);
    drop(folder);
    told.map(|()| Exit::Ok)
}

async fn tell(args: &DemoArgs, output: Output, address: SocketAddr) -> Result<()> {
    let stage = Stage::new(format!("http://{address}"), Teller::new(output, args.fast))?;
    let stories = Story::value_variants().iter();
    for story in stories.filter(|story| args.story.is_none_or(|chosen| chosen == **story)) {
        story.tell(&stage).await?;
    }
    stage.end().await
}

/// The embedded examples, with nothing of this machine's settings: neither keys nor other servers.
fn project() -> Result<Project> {
    let (file, text) = DEMO_SETTINGS;
    let config = Config::parse(file, text).map_err(|mistakes| {
        Failure::new(Exit::Failed, "demo", "the demo's settings are wrong").lines(mistakes)
    })?;
    Ok(Project::demo_with(config))
}

fn list(output: Output) -> Result<Exit> {
    let stories = Story::value_variants().iter();
    let item = |story: &Story| json!({"story": word(story), "about": story.about()});
    let items: Vec<_> = stories.clone().map(item).collect();
    let row = |story: &Story| vec![word(story), story.about().to_owned()];
    output.data(&json!({"items": items}), &table(&["story", "about"], stories.map(row)))
}

fn unbound(error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, "listen", format!("cannot listen on this machine: {error}"))
}
