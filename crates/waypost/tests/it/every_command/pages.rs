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
    /// It is run with these texts in place of words that the reader replaces, and ends with this
    /// code.
    Puts(&'static [(&'static str, &'static str)], i32),
    /// The first block of the page that has these words is added to this file.
    Shown(&'static str, &'static str),
    /// All of this is done, one after the other.
    Each(&'static [Treated]),
    /// It cannot be run, for this reason; that the binary knows it is checked all the same.
    Left(&'static str),
}

use Treated::{Each, Ends, Left, Puts, Runs, Serves, ServesOnce, Shown};

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
const SERVE: &str = "waypost serve --port 0";
const ADMIN_KEY: Treated =
    Runs("export WAYPOST_API_KEY=$(waypost key add --name me --role admin --realm '*')");

/// A project that nothing serves yet.
const INIT: Treated = Runs("waypost init shop && cd shop");
/// What follows events, for a while.
const FOLLOWS: Treated = Puts(&[("waypost", "timeout 5 waypost")], 124);
/// The only ask that is open.
const OPEN_ASK: (&str, &str) =
    ("ask_..", "$(waypost --json inbox ls | grep -oE 'ask_[0-9a-f]+' | head -n 1)");
/// The server of others' names, which is ours here, with the certificate that the page makes.
const OVER_TLS: (&str, &str) =
    ("https://wp.example.com", "--cacert cert.pem https://127.0.0.1:8420");
/// The id of a key that is made for this.
const OLD_KEY: Treated = Puts(&[("abcdefghij", "$(waypost key add --name old | cut -c 4-13)")], 0);
/// The call that the thread `test-1` asks about, within quotes.
const ASKED_CALL: &str = "'$(curl -s '127.0.0.1:8420/api/v1/asks?session=test-1&status=open' \
                          | grep -oE 'call_[0-9a-f]+' | head -n 1)'";
/// A call that the thread `lunch` asks about.
const LUNCH_1: (&str, &str) = (
    "call_1..",
    "$(curl -s 'http://127.0.0.1:8420/api/v1/asks?session=lunch&status=open' \
     | grep -oE 'call_[0-9a-f]+' | sort -u | sed -n 1p)",
);
/// Another one.
const LUNCH_2: (&str, &str) = (
    "call_2..",
    "$(curl -s 'http://127.0.0.1:8420/api/v1/asks?session=lunch&status=open' \
     | grep -oE 'call_[0-9a-f]+' | sort -u | sed -n 2p)",
);
/// The tools of the demo's calendar server are there a moment after the demo itself.
const CALENDAR_COMES: &str =
    "until waypost tool show create_event > /dev/null 2>&1; do sleep 0.2; done";

const README_TEST: &str = "the test of the README runs it and compares what it prints";
const NETWORK: &str = "it reaches for a server or a package on the network";
const LOGIN: &str = "a person has to log in at another server";
const KEY: &str = "it needs a key of a provider";
const ROOT: &str = "it changes the machine, as root, or needs systemd or podman";
const CREDENTIALS: &str = "it needs a server that asks for credentials: `principals.md` runs it";
const RECEIVER: &str = "its receiver needs a package: `events_out.rs` runs it with another one";
const PACKAGE: &str = "it needs a package: `cargo xtask upstreams` runs it";

pub(super) const PAGES: &[Page] = &[
    page!("README.md", &[], &["waypost init shop && cd shop", "waypost demo crash"], README),
    page!("docs/guides/agentvault.md", GUARDED, &[], AGENTVAULT),
    page!("docs/guides/audit.md", GUARDED, &[], AUDIT),
    page!("docs/guides/backup.md", SHOP, &[], BACKUP),
    page!("docs/guides/be-called.md", EXPOSED, &[], BE_CALLED),
    page!("docs/guides/calendar.md", &[], &[], CALENDAR),
    page!("docs/guides/configuration.md", &[INIT, ServesOnce(UP)], &[], &[]),
    page!("docs/guides/connect-a-server.md", &[], &[], CONNECT_A_SERVER),
    page!("docs/guides/deployment.md", &[], &[], DEPLOYMENT),
    page!("docs/guides/drafts.md", &[Serves(DEMO), Runs(CALENDAR_COMES)], &[], DRAFTS),
    page!("docs/guides/events-to-a-webhook.md", &[], &[], WEBHOOK),
    page!("docs/guides/first-agent.md", &[], &["mkdir desk && cd desk"], FIRST_AGENT),
    page!("docs/guides/first-type.md", &[], &[], FIRST_TYPE),
    page!("docs/guides/keys.md", &[], &[], KEYS),
    page!("docs/guides/limit-tools.md", &[], &[], LIMIT_TOOLS),
    page!("docs/guides/network.md", &[INIT], &[], NETWORK_PAGE),
    page!("docs/guides/oidc.md", &[], &[], &[note("curl *", Left(NETWORK))]),
    page!("docs/guides/pipelines.md", &[], &[], PIPELINES),
    page!("docs/guides/principals.md", NAMED, &[], PRINCIPALS),
    page!("docs/guides/rest-provider.md", &[INIT], &[], REST_PROVIDER),
    page!("docs/guides/run-an-agent.md", &[Serves(DEMO)], &[], RUN_AN_AGENT),
    page!("docs/guides/sign-cards.md", &[Serves(DEMO)], &[], &[]),
    page!("docs/guides/telemetry.md", &[INIT], &[], TELEMETRY),
    page!("docs/guides/upgrade.md", SHOP, &[], UPGRADE),
    page!("docs/guides/write-a-policy.md", POLICIES, &[], &[]),
];

const AGENTVAULT: &[Note] = &[note("python *", Left("the step `a2a-peers` runs it"))];

const DRAFTS: &[Note] = &[
    // The tool is the demo's, and the plan is saved in a folder that has no tools.
    note("waypost plan graph *", Ends(1)),
    note("waypost plan validate", Ends(1)),
];

/// A project that is served.
const SHOP: &[Treated] = &[INIT, Serves(UP)];

/// The same to callers with keys.
const GUARDED: &[Treated] = &[INIT, ADMIN_KEY, Serves(SERVE)];

/// The same with the principals that the page shows, and the issuer that it takes for granted.
const NAMED: &[Treated] = &[
    INIT,
    ADMIN_KEY,
    Runs(
        "printf '\\n[auth.issuers.corp]\\nurl = \"http://127.0.0.1:9\"\\naudience = \"shop\"\\n\
         realms = [\"default\"]\\n' >> waypost.toml",
    ),
    Shown("principals.yaml", "nightly:"),
    Serves(SERVE),
];

/// A project with the policies that the page shows.
const POLICIES: &[Treated] = &[
    INIT,
    Shown("policies/payments.cedar", "clerks-pay"),
    Shown("policies/tests.yaml", "cases:"),
    Runs("waypost policy validate"),
];

/// Plans that are skills.
const EXPOSED: &[Treated] = &[
    Runs("cp -r @root/examples/plans shop && cd shop"),
    Runs("printf '\\n[a2a]\\nexpose = [\"math::*\"]\\n' >> waypost.toml"),
    Serves(UP),
];

const README: &[Note] = &[
    note("cargo run -- up --demo", Serves(DEMO)),
    note("cargo xtask test", Left("it runs this test")),
    note("cargo run -- demo crash", Left("`crash.rs` runs it")),
    note("curl *", Left(README_TEST)),
    note("CALL=*", Left(README_TEST)),
    note("ASK=*", Left(README_TEST)),
    note("pip install fastmcp", Left(NETWORK)),
    note("waypost mcp test stock", Left(PACKAGE)),
    note("waypost up", ServesOnce(UP)),
    note("waypost tool call stock.count article=chair", Left(PACKAGE)),
    note("waypost demo crash", Left("`crash.rs` runs it")),
    note("waypost up shop --watch", ServesOnce("waypost up shop --watch --port 0")),
    note(
        "waypost inbox answer ask_.. name=Ada",
        Each(&[
            Runs("waypost plan run interaction::greeting > asked.txt; test $? = 3"),
            Puts(&[OPEN_ASK], 0),
        ]),
    ),
    note(
        "waypost resume work --approve call_..",
        Puts(
            &[(
                "call_..",
                "$(waypost run 'create a meeting called Standup tomorrow at 9am' --thread work \
                 | grep -oE 'call_[0-9a-f]+' | head -n 1)",
            )],
            0,
        ),
    ),
    note(
        "waypost agent apply agents/desk.yaml",
        Each(&[
            Runs(
                "mkdir agents && printf 'refName: desk\\nllmConfigRef: rules\\n' \
                 > agents/desk.yaml",
            ),
            Ends(0),
        ]),
    ),
    note(
        "waypost session tail ses_..",
        Puts(
            &[("ses_..", "$(waypost --json session ls | grep -oE 'ses_[0-9a-f]+' | head -n 1)")],
            0,
        ),
    ),
    note("waypost events tail --type 'Trade*'", FOLLOWS),
    note("waypost key add --name laptop --of ann", Left(CREDENTIALS)),
    note("waypost principal disable ann", Left(CREDENTIALS)),
    note(
        "waypost realm add acme",
        Left("it needs a server that asks for credentials: the test of `audit.md` runs it"),
    ),
    note("waypost policy test", Runs("waypost policy test --dir shop")),
    note("waypost mcp login notes", Left(LOGIN)),
];

const AUDIT: &[Note] =
    &[note("waypost audit tail --of-realm acme", Each(&[Runs("waypost realm add acme"), Ends(0)]))];

const BACKUP: &[Note] = &[
    note("0 3*", Left("it is a line of a crontab")),
    note(
        "waypost restore /mnt/backups/waypost-monday --data /tmp/restored",
        Puts(&[("/tmp/restored", "\"$TMPDIR/restored\"")], 0),
    ),
    note("waypost restore *", Left("`backup.rs` runs it: it wants the server to be stopped")),
    note("waypost up", Serves(UP)),
];

const BE_CALLED: &[Note] = &[
    note(
        "curl -s localhost:8420/a2a/v1/message:send -H 'A2A-Version: 1.0' \
         -H 'Content-Type: application/json' -d '{#2",
        Left("no plan of that project asks a question that `yes` answers"),
    ),
    note(
        "curl -s localhost:8420/a2a/v1/message:send -H 'A2A-Version: 1.0' \
         -H 'Content-Type: application/json' -d '{#3",
        Left(NETWORK),
    ),
];

const CALENDAR: &[Note] = &[
    note(
        "waypost up examples/calendar",
        Serves("waypost up @root/examples/calendar --ephemeral --port 0"),
    ),
    note("curl -X POST http://127.0.0.1:8420/resume", Puts(&[("<call_id>", ASKED_CALL)], 0)),
    note(
        "waypost example calendar-server --http *",
        Puts(&[("waypost", "timeout 5 waypost"), ("127.0.0.1:8000", "127.0.0.1:0")], 124),
    ),
];

const CONNECT_A_SERVER: &[Note] = &[
    note("waypost up", Serves(UP)),
    note("waypost mcp test web", Left(NETWORK)),
    note("waypost mcp login hub", Left(LOGIN)),
    note("waypost mcp logout hub", Left(LOGIN)),
    note(
        "waypost mcp import claude",
        Each(&[
            Runs("echo '{\"mcpServers\": {\"files\": {\"command\": \"cat\"}}}' > ~/.claude.json"),
            Ends(0),
        ]),
    ),
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
    note("export *", Left(RECEIVER)),
    note(
        "waypost up",
        Each(&[
            Shown("plans/trade/repair.yaml", "# plans/trade/repair.yaml"),
            Shown("waypost.toml", "[events.sinks.hook]"),
            Serves(UP),
        ]),
    ),
    note("waypost events resend *", Left(RECEIVER)),
    note("waypost events tail *", FOLLOWS),
    note("waypost events forget *", Left("`events_out.rs` runs it, after another start")),
];

const FIRST_AGENT: &[Note] = &[
    note("waypost up#1", ServesOnce(UP)),
    note("waypost up --ephemeral --port 0", Ends(2)),
    note("waypost up", Serves(UP)),
    note("waypost plan run agent/desk *", Ends(3)),
    note("waypost agent diff front-desk.yaml", Ends(1)),
    note("waypost agent rm desk", Ends(1)),
];

const FIRST_TYPE: &[Note] = &[
    note("waypost up --watch", Serves("waypost up --watch --port 0")),
    note("waypost record find Depot 'city:oslo AND kind:side'", Ends(2)),
    // Another save came first.
    note(
        "waypost record save Depot --merge --set refName=harbour --set opened=2024-03-01 *",
        Ends(1),
    ),
    // Another record refers to it.
    note("waypost record rm Depot --query 'refName:station' --yes", Ends(1)),
    note(
        "waypost record save Depot --merge --set refName=station --set phone=555-0100",
        Each(&[
            // The server sees the changed file within about a second.
            Runs("until waypost record schema Depot | grep -q phone; do sleep 0.1; done"),
            Ends(0),
        ]),
    ),
    note("waypost record migrate *", Left("the server of this page would have to be stopped")),
    note("waypost up", Left("the server of this page still serves the folder")),
];

const KEYS: &[Note] = &[
    note("waypost serve", Serves(SERVE)),
    note(
        "export WAYPOST_API_KEY=wp_...",
        Puts(&[("wp_...", "$(waypost key add --name mine --role admin)")], 0),
    ),
    note("waypost key rotate *", OLD_KEY),
    note("waypost key revoke *", OLD_KEY),
];

const LIMIT_TOOLS: &[Note] = &[
    // The page shows what it says of a plan whose tool is kept out.
    note("waypost plan validate", Ends(1)),
    note("waypost up", Serves(UP)),
    // The last of three calls is one too many.
    note("for n in 1 2 3; do", Ends(22)),
];

const NETWORK_PAGE: &[Note] = &[
    note(
        "SSL_CERT_FILE=*",
        Each(&[
            Runs(
                "printf '\\n[server.tls]\\ncertificate = \"cert.pem\"\\nkey = \"key.pem\"\\n' \
                 >> waypost.toml",
            ),
            Serves(SERVE),
            Ends(0),
        ]),
    ),
    note("curl https://wp.example.com/readyz", Puts(&[OVER_TLS], 0)),
    note("curl https://wp.example.com/api/v1/plans", Puts(&[OVER_TLS], 22)),
    note("curl -H *", Puts(&[OVER_TLS], 0)),
];

const PIPELINES: &[Note] = &[
    note("waypost up --demo", Serves(DEMO)),
    note(
        "waypost inbox show ask_..",
        Each(&[
            Runs("waypost plan run test::plan_that_fails > asked.txt; test $? = 3"),
            Puts(&[OPEN_ASK], 0),
        ]),
    ),
    note(
        "waypost inbox answer ask_.. 'your answer'",
        Left("nothing here asks a question: `run-an-agent.md` answers one"),
    ),
    // The plan fails again.
    note("waypost inbox answer ask_.. --action retry", Puts(&[OPEN_ASK], 3)),
];

const PRINCIPALS: &[Note] =
    &[note("waypost principal apply people.yaml", Each(&[Shown("people.yaml", "bob:"), Ends(0)]))];

const REST_PROVIDER: &[Note] = &[
    note(
        "waypost up",
        Each(&[
            Shown("shop.yaml", "operationId: listOrders"),
            Shown("waypost.toml", "[providers.shop]"),
            Serves(UP),
            // The document is read while the server serves already.
            Runs("until waypost --json tool ls | grep -q shop.listOrders; do sleep 0.1; done"),
        ]),
    ),
    note("waypost tool call chroma.*", Left(PACKAGE)),
    note("pip install *", Left(PACKAGE)),
    note("chroma *", Left(PACKAGE)),
];

const RUN_AN_AGENT: &[Note] = &[
    note("waypost run *", Ends(3)),
    note("waypost resume lunch --approve *", Puts(&[LUNCH_1, LUNCH_2], 0)),
    note(
        "waypost resume lunch --edit *",
        Each(&[
            Runs(
                "waypost run 'create a meeting called Retro tomorrow at 4pm' --thread lunch \
                  > asked.json; test $? = 3",
            ),
            Runs(
                "echo '{\"calendar_id\": \"primary\", \"name\": \"Retro\", \
                 \"start\": \"2036-11-16T16:00:00\", \"duration_minutes\": 15}' > arguments.json",
            ),
            Puts(&[LUNCH_1], 0),
        ]),
    ),
    note(
        "waypost resume lunch --answer *",
        Each(&[
            Runs("waypost run 'schedule something' --thread lunch > asked.json; test $? = 3"),
            // It asks before it does that.
            Ends(3),
        ]),
    ),
    note("waypost resume lunch", Ends(3)),
    note("curl -X POST http://127.0.0.1:8420/resume *", Puts(&[("call_..", ASKED_CALL)], 0)),
];

const TELEMETRY: &[Note] = &[
    note(
        "OTEL_EXPORTER_OTLP_ENDPOINT=*",
        ServesOnce("env OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 waypost up --port 0"),
    ),
    note("LANGFUSE_PUBLIC_KEY=*", Left(KEY)),
];

const UPGRADE: &[Note] = &[note("systemctl *", Left(ROOT)), note("install *", Left(ROOT))];
