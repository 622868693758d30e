//! The pages whose commands are run, what each needs before its first one, and what is said of
//! single commands. All others are run as they stand and must end with 0.

/// What is done with a command.
#[derive(Debug)]
pub(super) enum Treated {
    /// It is run, and ends with this code.
    Ends(i32),
    /// This is started instead, on a free port, and serves until the page ends.
    Serves(&'static str),
    /// The same, and it is stopped as soon as it listens.
    ServesOnce(&'static str),
    /// This is run instead.
    Runs(&'static str),
    /// It cannot be run, for this reason; that the binary knows it is checked all the same.
    Left(&'static str),
}

use Treated::{Ends, Left, Runs, Serves, ServesOnce};

/// What is said of a command: one that begins so where a `*` is at the end, or only the second of
/// that name where `#2` is.
pub(super) struct Note {
    pub(super) command: &'static str,
    pub(super) treated: Treated,
}

const fn note(command: &'static str, treated: Treated) -> Note {
    Note { command, treated }
}

pub(super) struct Page {
    pub(super) file: &'static str,
    pub(super) text: &'static str,
    /// What the page takes for granted.
    pub(super) before: &'static [Treated],
    /// Commands before which another empty folder is gone to.
    pub(super) afresh: &'static [&'static str],
    pub(super) notes: &'static [Note],
}

macro_rules! page {
    ($file:literal, $before:expr, $afresh:expr, $notes:expr) => {
        Page {
            file: $file,
            text: include_str!(concat!("../../../../../", $file)),
            before: $before,
            afresh: $afresh,
            notes: $notes,
        }
    };
}

/// Pages whose commands other tests run, with their output.
pub(super) const ELSEWHERE: &[(&str, &str)] = &[
    ("docs/guides/first-plan.md", "guide.rs"),
    ("docs/guides/first-pipeline.md", "guide.rs"),
    ("docs/guides/connect-a-client.md", "connect_guide.rs"),
    ("docs/guides/crash.md", "crash.rs"),
];

const UP: &str = "waypost up --port 0";
const DEMO: &str = "waypost up --demo --port 0";

const README_TEST: &str = "the test of the README runs it and compares what it prints";
const NETWORK: &str = "it reaches for a server or a package on the network";
const LOGIN: &str = "a person has to log in at another server";
const ID: &str = "the reader puts an id in";
const KEY: &str = "it needs a key of a provider of models";
const ROOT: &str = "it changes the machine, as root, or needs systemd or podman";
const FILES: &str = "it needs files that the reader has written";
const OTHER: &str = "it needs a server of the reader's behind ours";
const FOLLOWS: &str = "it follows until it is interrupted";
const JQ: &str = "it needs jq";

pub(super) const PAGES: &[Page] = &[
    page!("README.md", &[], &["waypost init shop && cd shop", "waypost demo crash"], README),
    page!("docs/guides/agentvault.md", GUARDED, &[], AGENTVAULT),
    page!("docs/guides/audit.md", GUARDED, &[], AUDIT),
    page!("docs/guides/backup.md", SHOP, &[], BACKUP),
    page!("docs/guides/be-called.md", &[Serves(DEMO)], &[], BE_CALLED),
    page!("docs/guides/calendar.md", &[], &[], CALENDAR),
    page!(
        "docs/guides/configuration.md",
        &[Runs("waypost init shop && cd shop"), ServesOnce(UP)],
        &[],
        &[]
    ),
    page!("docs/guides/connect-a-server.md", &[], &[], CONNECT_A_SERVER),
    page!("docs/guides/deployment.md", &[], &[], DEPLOYMENT),
    page!("docs/guides/drafts.md", &[Serves(DEMO)], &[], DRAFTS),
    page!("docs/guides/events-to-a-webhook.md", &[], &[], WEBHOOK),
    page!("docs/guides/first-agent.md", &[], &["mkdir desk && cd desk"], FIRST_AGENT),
    page!("docs/guides/keys.md", &[], &[], KEYS),
    page!("docs/guides/limit-tools.md", &[], &[], LIMIT_TOOLS),
    page!("docs/guides/network.md", &[], &[], NETWORK_PAGE),
    page!("docs/guides/oidc.md", &[], &[], &[note("curl *", Left(NETWORK))]),
    page!("docs/guides/pipelines.md", &[], &[], PIPELINES),
    page!("docs/guides/principals.md", &[], &[], &[note("waypost *", Left(FILES))]),
    page!("docs/guides/rest-provider.md", &[], &[], REST_PROVIDER),
    page!("docs/guides/run-an-agent.md", &[Serves(DEMO)], &[], RUN_AN_AGENT),
    page!("docs/guides/sign-cards.md", &[Serves(DEMO)], &[], &[]),
    page!("docs/guides/telemetry.md", &[], &[], TELEMETRY),
    page!("docs/guides/upgrade.md", &[], &[], UPGRADE),
    page!("docs/guides/write-a-policy.md", &[], &[], &[note("waypost policy *", Left(FILES))]),
];

const AGENTVAULT: &[Note] = &[
    note("python *", Left("the step `a2a-peers` runs it")),
    note("export AGENTVAULT_KEY_ACME=*", Left("the reader puts a key in")),
];

const DRAFTS: &[Note] = &[
    note("waypost plan graph *", Left("the plan needs the calendar's server in this project")),
    note("waypost plan validate", Left("the plan needs the calendar's server in this project")),
];

/// A project that is served.
const SHOP: &[Treated] = &[Runs("waypost init shop && cd shop"), Serves(UP)];

/// The same to callers with keys.
const GUARDED: &[Treated] = &[
    Runs("waypost init shop && cd shop"),
    Runs("export WAYPOST_API_KEY=$(waypost key add --name me --role admin --realm '*')"),
    Serves("waypost serve --port 0"),
];

const README: &[Note] = &[
    note("cargo run -- up --demo", Serves(DEMO)),
    note("cargo xtask test", Left("it runs this test")),
    note("cargo run -- demo crash", Left("`crash.rs` runs it")),
    note("curl *", Left(README_TEST)),
    note("CALL=*", Left(README_TEST)),
    note("ASK=*", Left(README_TEST)),
    note("pip install fastmcp", Left(NETWORK)),
    note("waypost mcp test stock", Left("it needs fastmcp")),
    note("waypost up", ServesOnce(UP)),
    note("waypost tool call stock.count article=chair", Left("it needs fastmcp")),
    note("waypost demo crash", Left("`crash.rs` runs it")),
    note("waypost up shop --watch", ServesOnce("waypost up shop --watch --port 0")),
    note("waypost inbox answer ask_.. name=Ada", Left(ID)),
    note("waypost resume work --approve call_..", Left(ID)),
    note("waypost agent apply agents/desk.yaml", Left(FILES)),
    note("waypost session tail ses_..", Left(ID)),
    note("waypost events tail --type 'Trade*'", Left(FOLLOWS)),
    note("waypost key add --name laptop --of ann", Left(FILES)),
    note("waypost principal disable ann", Left(FILES)),
    note("waypost realm add acme", Left("it needs a server that asks for credentials")),
    note("waypost policy test", Left(FILES)),
    note("waypost mcp login notes", Left(LOGIN)),
    note("waypost mcp serve --stdio shop", Left("a client starts it and talks to it")),
];

const AUDIT: &[Note] = &[
    note("waypost audit tail --of-realm acme", Left("it needs a realm `acme`")),
    note("waypost --json audit tail --act answer *", Left(JQ)),
];

const BACKUP: &[Note] = &[
    note("0 3*", Left("it is a line of a crontab")),
    note("waypost restore *", Left("`backup.rs` runs it: it wants the server to be stopped")),
    note("waypost up", Serves(UP)),
];

const BE_CALLED: &[Note] =
    &[note("curl -s localhost:8420/a2a/v1/message:send *", Left("its skills are the reader's"))];

const CALENDAR: &[Note] = &[
    note(
        "waypost up examples/calendar",
        Serves("waypost up @root/examples/calendar --ephemeral --port 0"),
    ),
    note("curl -X POST http://127.0.0.1:8420/resume", Left(ID)),
    note("waypost example calendar-server *", Left("it serves until it is stopped")),
];

const CONNECT_A_SERVER: &[Note] = &[
    note("waypost up", Serves(UP)),
    note("waypost mcp test web", Left(NETWORK)),
    note("waypost mcp login hub", Left(LOGIN)),
    note("waypost mcp logout hub", Left(LOGIN)),
    note("waypost mcp import *", Left("it needs the settings of a client")),
    note("waypost doctor", Left(NETWORK)),
    note("waypost mcp doctor hub", Left(NETWORK)),
    note("waypost mcp test hub", Left(NETWORK)),
    note("curl -X PUT *", Left("the server must have been started with the variable")),
];

const DEPLOYMENT: &[Note] = &[
    note("install *", Left(ROOT)),
    note("useradd *", Left(ROOT)),
    note("sudo *", Left(ROOT)),
    note("systemctl *", Left(ROOT)),
    note("podman *", Left(ROOT)),
];

const WEBHOOK: &[Note] = &[
    note("python3 -m venv *", Left(NETWORK)),
    note("export *", Left(NETWORK)),
    note("waypost up", Serves(UP)),
    note("waypost plan run trade/repair *", Left(FILES)),
    note("waypost events deliveries *", Left(FILES)),
    note("waypost events resend *", Left(ID)),
    note("waypost events resume *", Left(FILES)),
    note("waypost events tail *", Left(FOLLOWS)),
    note("waypost events forget *", Left(FILES)),
];

const FIRST_AGENT: &[Note] = &[
    note("export OPENAI_API_KEY=sk-...", Left(KEY)),
    note("mkdir -p desk/agents *", Left(KEY)),
    note("waypost up#1", Left(KEY)),
    note("waypost up --ephemeral --port 0", Ends(2)),
    note("waypost up", Serves(UP)),
    note("waypost plan run agent/desk *", Ends(3)),
    note("waypost agent diff front-desk.yaml", Ends(1)),
    note("waypost agent rm desk", Ends(1)),
];

const KEYS: &[Note] = &[
    note("waypost serve", Serves("waypost serve --port 0")),
    note("waypost --json key add *", Left(JQ)),
    note("export WAYPOST_API_KEY=wp_...", Left(ID)),
    note("waypost key rotate *", Left(ID)),
    note("waypost key revoke *", Left(ID)),
];

const LIMIT_TOOLS: &[Note] = &[
    // The page shows what it says of a plan whose tool is kept out.
    note("waypost plan validate", Ends(1)),
    note("waypost up", Serves(UP)),
    // The last of three calls is one too many.
    note("for n in 1 2 3; do", Ends(22)),
];

const NETWORK_PAGE: &[Note] = &[
    note("waypost key add", Left("`keys.rs` runs it")),
    note("SSL_CERT_FILE=*", Left("it needs the server with that certificate")),
    note("curl *", Left(NETWORK)),
];

const PIPELINES: &[Note] = &[
    note("waypost up --demo", Serves(DEMO)),
    note("waypost inbox show ask_..", Left(ID)),
    note("waypost inbox answer *", Left(ID)),
];

const REST_PROVIDER: &[Note] = &[
    note("waypost up", Left(OTHER)),
    note("waypost tool *", Left(OTHER)),
    note("pip install *", Left(NETWORK)),
    note("chroma *", Left(NETWORK)),
];

const RUN_AN_AGENT: &[Note] = &[
    note("waypost run *", Ends(3)),
    note("waypost resume *", Left(ID)),
    note("curl -X POST http://127.0.0.1:8420/resume *", Left(ID)),
];

const TELEMETRY: &[Note] = &[
    note("OTEL_EXPORTER_OTLP_ENDPOINT=*", Left("it needs a collector")),
    note("LANGFUSE_PUBLIC_KEY=*", Left(KEY)),
];

const UPGRADE: &[Note] = &[
    note("waypost backup *", Left(ROOT)),
    note("systemctl *", Left(ROOT)),
    note("install *", Left(ROOT)),
    note("waypost doctor", Left(ROOT)),
];
