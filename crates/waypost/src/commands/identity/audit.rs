//! `waypost audit`: who did what and what was decided, whether that is as it was written, and a
//! copy of it whose first line can prove later that nothing was cut off.

use crate::commands::{Most, age};
use crate::context::{Context, Listing};
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request, read};
use crate::terminal::output::counted;
use crate::terminal::table::Cell;
use clap::{Args, Subcommand};
use engine::system::clock::SystemClock;
use kernel::contracts::Clock;
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use wire::rest::{AuditCheck, AuditEntry, AuditHead, Page};

const EXAMPLES: &str = "\
Examples:
  waypost audit tail --since 1h                     # what was decided, newest first
  waypost audit tail --act call --subject ann
  waypost audit export > audit.jsonl                # all of it, and how far it goes
  waypost audit verify --against audit.jsonl        # as it was written, and nothing cut off since
  waypost audit verify --of-server                  # the server's own: starts, failed credentials";

/// How many seconds it may take to read a long chain.
const VERIFY_SECONDS: u64 = 3_600;
/// The largest page that a server gives.
const PAGE_ITEMS: usize = 200;

/// What `waypost audit` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// List what was decided, newest first
    #[command(alias = "ls")]
    Tail(TailArgs),
    /// Check that no row was changed, dropped, swapped or cut off; exit code 1 where one was
    Verify(VerifyArgs),
    /// Print how far the audit goes, then all of it, newest first, as lines of JSON
    Export(Which),
}

/// Which audit.
#[derive(Debug, Args)]
struct Which {
    /// That of the server itself instead of the realm's
    #[arg(long)]
    of_server: bool,
    /// That of this realm, also of one that was removed
    #[arg(long, value_name = "NAME", conflicts_with = "of_server")]
    of_realm: Option<String>,
}

#[derive(Debug, Args)]
struct TailArgs {
    #[command(flatten)]
    which: Which,
    /// Only this act, such as `call` or `key.create`
    #[arg(long)]
    act: Option<String>,
    /// Only what was done for or by this subject
    #[arg(long)]
    subject: Option<String>,
    /// Only what is not older
    #[arg(long, value_name = "AGE", value_parser = age)]
    since: Option<u64>,
    #[command(flatten)]
    most: Most,
}

#[derive(Debug, Args)]
struct VerifyArgs {
    #[command(flatten)]
    which: Which,
    /// A head that was kept, `<row>:<64 hexadecimal digits>`
    #[arg(long, conflicts_with = "against")]
    head: Option<String>,
    /// A file that `waypost audit export` wrote
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

/// Runs `waypost audit`.
pub(crate) async fn run(args: AuditArgs, context: &Context) -> Result<Exit> {
    match args.command {
        AuditCommand::Tail(args) => tail(args, context).await,
        AuditCommand::Verify(args) => verify(args, context).await,
        AuditCommand::Export(which) => export(&which, context).await,
    }
}

async fn tail(args: TailArgs, context: &Context) -> Result<Exit> {
    let since = args.since.map(|age| {
        let age = i64::try_from(age).unwrap_or(i64::MAX);
        Millis(SystemClock.now().0.saturating_sub(age)).rfc3339()
    });
    let request = args.which.request(&["audit"], context)?;
    let request = request.with("act", args.act).with("subject", args.subject).with("since", since);
    let body = newest(&context.client().await?, &request, args.most.limit).await?;
    let heads = ["row", "at", "subject", "act", "object", "verdict", "why"];
    let none = "nothing of that was decided";
    context.table(&body, Listing { noun: "entry", heads: &heads, none }, row)
}

/// So many of the newest entries. A page may be empty and not the last: the server looks at some
/// entries at a time.
async fn newest(client: &Client, request: &Request<'_>, limit: usize) -> Result<Value> {
    let (mut items, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let size = (limit - items.len()).min(PAGE_ITEMS);
        let page = request.clone().with("limit", Some(size)).with("cursor", cursor.as_ref());
        let page: Page<Value> = read(&client.get(page).await?)?;
        items.extend(page.items);
        cursor = page.next_cursor;
        if items.len() >= limit || cursor.is_none() {
            return Ok(json!({"items": items, "nextCursor": cursor}));
        }
    }
}

async fn verify(args: VerifyArgs, context: &Context) -> Result<Exit> {
    let head = match &args.against {
        Some(file) => Some(head_in(file)?),
        None => args.head,
    };
    let request = args.which.request(&["audit", "verify"], context)?.with("head", head);
    let client = context.client().await?;
    let reading = client.get(request.taking(VERIFY_SECONDS));
    let body = context.progress().during("reading the audit", reading).await?;
    let check: AuditCheck = read(&body)?;
    context.output.data(&body, &told(&check))?;
    Ok(if check.valid { Exit::Ok } else { Exit::Failed })
}

/// The head comes first: what is written meanwhile is then not missed by who compares.
async fn export(which: &Which, context: &Context) -> Result<Exit> {
    let client = context.client().await?;
    let head = client.get(which.request(&["audit", "head"], context)?).await?;
    context.output.document(&head)?;
    let mut cursor: Option<String> = None;
    loop {
        let page = entries(&client, which, cursor.as_ref(), context).await?;
        for entry in &page.items {
            context.output.document(entry)?;
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(Exit::Ok),
        }
    }
}

async fn entries(
    client: &Client,
    which: &Which,
    cursor: Option<&String>,
    context: &Context,
) -> Result<Page<Value>> {
    let request = which.request(&["audit"], context)?;
    let request = request.with("limit", Some(PAGE_ITEMS)).with("cursor", cursor);
    read(&client.get(request).await?)
}

impl Which {
    fn request<'a>(&self, path: &[&'a str], context: &Context) -> Result<Request<'a>> {
        let request = Request::to(path).keyed(context.admin_key()?);
        let of_realm = self.of_realm.as_ref().map(|realm| format!("realm:{realm}"));
        Ok(request.with("chain", self.of_server.then(|| "server".to_owned()).or(of_realm)))
    }
}

/// The head in the first line of an export.
fn head_in(file: &Path) -> Result<String> {
    let wrong = |why: String| {
        Failure::usage(format!("`{}` is no export of an audit: {why}", file.display()))
            .hint("`waypost audit export > FILE` writes one")
    };
    let opened = File::open(file).map_err(|error| wrong(error.to_string()))?;
    let mut line = String::new();
    BufReader::new(opened).read_line(&mut line).map_err(|error| wrong(error.to_string()))?;
    let head: AuditHead =
        serde_json::from_str(&line).map_err(|error| wrong(format!("its first line: {error}")))?;
    Ok(head.head)
}

fn row(entry: AuditEntry) -> Vec<Cell> {
    let mut who = entry.subject;
    for (word, other) in [("as", entry.run_as), ("by", entry.actor)] {
        if let Some(other) = other {
            who = format!("{who} {word} {other}");
        }
    }
    let object = match entry.object.id {
        Some(id) => format!("{} {id}", entry.object.kind),
        None => entry.object.kind,
    };
    let verdict = match entry.reply {
        Some(reply) => format!("{}: {reply}", entry.verdict.name()),
        None => entry.verdict.name().to_owned(),
    };
    let why = entry.why.unwrap_or_default();
    vec![
        Cell::word(entry.row.to_string()),
        Cell::time(entry.at),
        who.into(),
        entry.act.into(),
        object.into(),
        verdict.into(),
        why.into(),
    ]
}

fn told(check: &AuditCheck) -> String {
    let AuditCheck { chain, rows, unchecked, flaws, found, .. } = check;
    let whose = if chain == "*" { "the server".to_owned() } else { format!("realm `{chain}`") };
    let (rows, told_flaws) = (counted(*rows, "row"), counted(*flaws, "flaw"));
    let mut lines = match flaws {
        0 => vec![format!("the audit of {whose} is as it was written: {rows}")],
        _ => vec![format!("the audit of {whose} is NOT as it was written: {told_flaws}")],
    };
    lines.extend(found.iter().map(|flaw| format!("  {flaw}")));
    if *unchecked > 0 {
        let rows = counted(*unchecked, "row");
        lines.push(format!(
            "  {rows} of a secret key that the server does not have any more: only their order was \
             checked"
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_told() {
        let check = |flaws: u64, unchecked: u64| AuditCheck {
            chain: "acme".to_owned(),
            valid: flaws == 0,
            rows: 7,
            unchecked,
            flaws,
            found: (0..flaws).map(|_| "row 3 was changed".to_owned()).collect(),
        };
        assert_eq!(told(&check(0, 0)), "the audit of realm `acme` is as it was written: 7 rows");
        let flawed = told(&check(1, 2));
        for part in ["NOT", ": 1 flaw\n", "\n  row 3 was changed", "2 rows of a secret key"] {
            assert!(flawed.contains(part), "{flawed}");
        }
        let server = AuditCheck { chain: "*".to_owned(), ..check(0, 0) };
        assert!(told(&server).contains("of the server is"), "{server:?}");
    }

    #[test]
    fn an_entry_is_a_line() {
        let entry: AuditEntry = serde_json::from_value(json!({
            "row": 4, "at": "2026-11-16T00:00:00.000Z", "subject": "ann", "actor": "bob",
            "act": "answer", "object": {"kind": "ask", "id": "approve"}, "verdict": "allow",
            "reply": "approved",
        }))
        .unwrap();
        let texts = ["ann by bob", "answer", "ask approve", "allow: approved", ""];
        let mut expected = vec![Cell::word("4"), Cell::time("2026-11-16T00:00:00.000Z")];
        expected.extend(texts.map(|text| Cell::from(text.to_owned())));
        assert_eq!(row(entry), expected);
        let called: AuditEntry = serde_json::from_value(json!({
            "row": 5, "at": "2026-11-16T00:00:00.000Z", "subject": "ann", "actor": "bob",
            "runAs": "service", "act": "call", "object": {"kind": "tool", "id": "math::add"},
            "verdict": "allow",
        }))
        .unwrap();
        assert_eq!(row(called)[2], Cell::from("ann as service by bob".to_owned()));
    }

    #[test]
    fn the_head_is_in_the_first_line_of_an_export() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        std::fs::write(&file, "{\"chain\":\"acme\",\"head\":\"7:0f\"}\n{\"row\":7}\n").unwrap();
        assert_eq!(head_in(&file).unwrap(), "7:0f");
        std::fs::write(&file, "row 7\n").unwrap();
        assert!(head_in(&file).is_err());
    }
}
