//! `waypost demo`: stories that are shown while they happen, on servers of their own that no one
//! else needs and that are gone at the end. Every answer is the server's; the command that gets the
//! same stands above it.

mod narrator;
mod waiting;
mod stage;
mod plans;
mod trade;
mod calendar;
mod tools;
mod heal;
mod a2a;
mod realms;
mod records;
mod crash;

use crate::assembly::{Keys, NOWHERE, assemble_with, refused};
use crate::commands::word;
use crate::context::Context;
use crate::environment::Environment;
use crate::exit::{Exit, Failure, Result};
use crate::process::folder::TemporaryFolder;
use crate::process::signals::Signals;
use crate::terminal::output::Output;
use crate::terminal::table::table;
use clap::{Args, ValueEnum};
use engine::system::clock::SystemEntropy;
use kernel::contracts::Entropy;
use kernel::definition::plan::mistake::Mistake;
use narrator::Narrator;
use project::config::Config;
use project::folder::{DEMO_RECORDS, DEMO_SETTINGS, Project};
use project::layer::Layer;
use project::records_example::records_example;
use project::two_teams::two_teams;
use serde_json::json;
use server::{Assembled, Extra};
use stage::Stage;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

const EXAMPLES: &str = "\
Examples:
  waypost demo                 # a tour of two minutes: a crash, healing, two teams
  waypost demo --all           # all stories
  waypost demo crash           # one of them: a payment outlives kill -9
  waypost demo --fast          # without pauses
  waypost demo --list          # which there are";

/// What `waypost demo` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// The story [default: crash, heal and realms]
    #[arg(value_enum, hide_possible_values = true)]
    story: Option<Story>,
    /// Tell all stories
    #[arg(long, conflicts_with = "story")]
    all: bool,
    /// List the stories
    #[arg(long, conflicts_with_all = ["story", "all"])]
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
    Heal,
    #[value(name = "a2a")]
    A2a,
    Realms,
    Records,
    Crash,
}

/// The stories of the tour, which takes less than two minutes.
const TOUR: [Story; 3] = [Story::Crash, Story::Heal, Story::Realms];

impl Story {
    fn about(self) -> &'static str {
        match self {
            Story::Plans => "a plan that asks a person, and waits as long as it takes",
            Story::Trade => "failed trades: handlers for known reasons, an agent for the others",
            Story::Calendar => "an assistant that shows what it would change before it does",
            Story::Tools => "the same tools and plans for MCP clients",
            Story::Heal => "steps that fail, and what is done before a person is asked",
            Story::A2a => "two servers whose agents work together, and one approval",
            Story::Realms => "two teams on one server: refused, asked, approved by another",
            Story::Records => "typed records: a question in words, a query, and who sees what",
            Story::Crash => "a payment, and the server killed at the worst moment",
        }
    }

    fn place(self) -> Place {
        match self {
            Story::Realms => Place::TwoTeams,
            Story::Records => Place::Records,
            Story::Plans
            | Story::Trade
            | Story::Calendar
            | Story::Tools
            | Story::Heal
            | Story::A2a
            | Story::Crash => Place::Demo,
        }
    }

    /// Whether it shows the calendar's tools, or has an agent work, who waits for all tools.
    fn needs_calendar(self) -> bool {
        matches!(self, Story::Trade | Story::Calendar | Story::Tools)
    }

    async fn tell(self, stage: &Stage) -> Result<()> {
        stage.begin(&word(&self), self.about()).await?;
        if self.needs_calendar() {
            stage.await_calendar().await?;
        }
        match self {
            Story::Plans => plans::tell(stage).await,
            Story::Trade => trade::tell(stage).await,
            Story::Calendar => calendar::tell(stage).await,
            Story::Tools => tools::tell(stage).await,
            Story::Heal => heal::tell(stage).await,
            Story::A2a => a2a::tell(stage.teller()).await,
            Story::Realms => realms::tell(stage).await,
            Story::Records => records::tell(stage).await,
            Story::Crash => crash::tell(stage.teller()).await,
        }
    }
}

/// Tells the stories, those of each server together.
pub(crate) async fn run(args: DemoArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    if args.list {
        return list(output);
    }
    // Listened to from here on: a signal must not leave a temporary folder behind.
    let mut signals = Signals::listen()?;
    let wanted: Vec<Story> = match args.story {
        Some(chosen) => vec![chosen],
        None if args.all => Story::value_variants().to_vec(),
        None => TOUR.to_vec(),
    };
    let teller = Narrator::new(output, args.fast);
    for place in Place::ALL {
        let stories: Vec<Story> =
            wanted.iter().copied().filter(|story| story.place() == place).collect();
        if !stories.is_empty() {
            perform(&stories, place.setting()?, teller, context, &mut signals).await?;
        }
    }
    for text in ending(&context.program, &wanted) {
        teller.say(&text).await?;
    }
    Ok(Exit::Ok)
}

/// The last words after these stories.
fn ending(program: &str, told: &[Story]) -> Vec<String> {
    let mut all = vec!["That was it: the servers are gone, and so are their folders.".to_owned()];
    let others = Story::value_variants().iter().filter(|story| !told.contains(story));
    let others: Vec<String> = others.map(word).collect();
    if let Some(first) = others.first() {
        all.push(format!(
            "More stories: {}. `{program} demo {first}` tells one, `{program} demo --all` all.",
            others.join(", ")
        ));
    }
    all.push(format!(
        "Now you: `{program} up --demo` serves plans, an assistant for a calendar, a pipeline and \
         records. Beside it, `{program} chat` talks to the assistant, \
         `{program} plan run interaction::greeting` asks you something, and `{program} inbox` \
         shows what waits for an answer."
    ));
    all.push(format!("`{program} init` begins a project of your own."));
    all
}

/// The server on which a story is told. Those that are about who may do what ask everybody for a
/// credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Demo,
    TwoTeams,
    Records,
}

impl Place {
    const ALL: [Self; 3] = [Place::Demo, Place::TwoTeams, Place::Records];

    fn setting(self) -> Result<Setting> {
        match self {
            Place::Demo => Setting::demo(),
            Place::TwoTeams => two_teams().map(Setting::guarded).map_err(mistaken),
            Place::Records => records_example().map(Setting::guarded).map_err(mistaken),
        }
    }
}

/// What a server of stories is made of.
struct Setting {
    project: Project,
    /// The tools of its own.
    extra: Extra,
    keys: Keys,
    /// The admin key, where the server has one.
    admin: Option<String>,
}

impl Setting {
    /// The embedded examples, with nothing of this machine's settings: neither keys nor other
    /// servers.
    fn demo() -> Result<Self> {
        let layers = [DEMO_SETTINGS, DEMO_RECORDS].map(|(file, text)| Layer::file(file, text));
        let config = Config::layered(&layers).map_err(mistaken)?;
        let mut project = Project::demo_with(config);
        let keys = Keys::of(&Environment::bare());
        project.plans.extend(heal::plans());
        let extra = Extra { tools: demo::shop(), ..Extra::default() };
        Ok(Self { project, extra, keys, admin: None })
    }

    /// An example whose server asks everybody for a credential.
    fn guarded(project: Project) -> Self {
        let admin = format!("{:032x}", SystemEntropy.bits());
        let keys = Keys::of(&Environment::bare()).never_local(true).with_admin(admin.clone());
        Self { project, extra: Extra::default(), keys, admin: Some(admin) }
    }
}

/// Tells these stories on a server of their own.
async fn perform(
    stories: &[Story],
    setting: Setting,
    teller: Narrator,
    context: &Context,
    signals: &mut Signals,
) -> Result<()> {
    let Setting { project, extra, keys, admin } = setting;
    let folder = TemporaryFolder::new()?;
    let (listener, address) = listen().await?;
    let starting = assemble_with(project, folder.path().to_path_buf(), address, keys, extra);
    let assembled = tokio::select! {
        assembled = starting => assembled.map_err(refused)?,
        () = signals.next() => return Err(context.interrupted()),
    };
    let telling = async {
        tokio::select! {
            told = tell(stories, teller, address, admin) => told,
            () = signals.next() => Err(context.interrupted()),
        }
    };
    let told = served_while(assembled, listener, telling).await;
    drop(folder);
    told
}

/// Serves until the story is told.
async fn served_while<T>(
    assembled: Assembled,
    listener: TcpListener,
    story: impl Future<Output = T>,
) -> T {
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server::serve(assembled, listener, None, async move {
        // No one sends anything: the end of the story drops it.
        let _ = stopped.await;
    });
    let telling = async {
        let told = story.await;
        drop(stop);
        told
    };
    let ((), told) = tokio::join!(serving, telling);
    told
}

/// Listens on a free port of this machine.
async fn listen() -> Result<(TcpListener, SocketAddr)> {
    let unbound = |error: std::io::Error| {
        Failure::new(Exit::Failed, "listen", format!("cannot listen on this machine: {error}"))
    };
    let listener = TcpListener::bind(NOWHERE).await.map_err(unbound)?;
    let address = listener.local_addr().map_err(unbound)?;
    Ok((listener, address))
}

async fn tell(
    stories: &[Story],
    teller: Narrator,
    address: SocketAddr,
    admin: Option<String>,
) -> Result<()> {
    let stage = Stage::new(format!("http://{address}"), teller, admin)?;
    for story in stories {
        story.tell(&stage).await?;
    }
    Ok(())
}

fn mistaken(mistakes: Vec<Mistake>) -> Failure {
    Failure::new(Exit::Failed, "demo", "the demo's settings are wrong").lines(mistakes)
}

fn list(output: Output) -> Result<Exit> {
    let stories = Story::value_variants().iter();
    let item = |story: &Story| json!({"story": word(story), "about": story.about()});
    let items: Vec<_> = stories.clone().map(item).collect();
    let row = |story: &Story| vec![word(story), story.about().to_owned()];
    output.data(&json!({"items": items}), &table(&["story", "about"], stories.map(row)))
}

#[cfg(test)]
mod tests {
    use super::stage::CALENDAR_TOOL;
    use super::*;
    use axum::Router;
    use axum::http::{StatusCode, Uri};
    use std::sync::{Arc, Mutex};

    /// The paths that a story asks for at a server whose calendar is there at the third look, and
    /// which fails at everything else.
    async fn asked_by(story: Story) -> Vec<String> {
        let asked = Arc::new(Mutex::new(Vec::<String>::new()));
        let seen = asked.clone();
        let router: Router = Router::new().fallback(move |uri: Uri| {
            let mut paths = seen.lock().unwrap();
            paths.push(uri.path().to_owned());
            let status = match (uri.path(), paths.len()) {
                (CALENDAR_TOOL, 3) => StatusCode::OK,
                (CALENDAR_TOOL, _) => StatusCode::NOT_FOUND,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            async move { status }
        });
        let listener = TcpListener::bind(NOWHERE).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let stage = Stage::new(url, Narrator::new(Output::new(true), true), None).unwrap();
        story.tell(&stage).await.unwrap_err();
        asked.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn a_story_that_needs_the_calendar_waits_for_its_tools() {
        for (story, first) in [
            (Story::Trade, "/api/v1/pipelines/trade-failures"),
            (Story::Calendar, "/run"),
            (Story::Tools, "/mcp"),
        ] {
            let asked = asked_by(story).await;
            assert_eq!(asked, [CALENDAR_TOOL, CALENDAR_TOOL, CALENDAR_TOOL, first]);
        }
        assert_eq!(asked_by(Story::Plans).await, ["/api/v1/plans/interaction::greeting"]);
    }
}
