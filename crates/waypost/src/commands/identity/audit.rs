//! `waypost audit`: lists audit entries, verifies their chain, and exports them with a head that
//! later proves that nothing was cut off.

use crate::commands::{Most, age};
use crate::context::{Context, Listing};
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request, read};
use crate::terminal::output::counted;
use crate::terminal::table::Cell;
use clap::{Args, Subcommand};
use engine::system::clock::SystemClock;
use kernel::contracts::Clock;
use kernel::identity::chain::FLAWS_MAX;
use kernel::values::canonical;
use kernel::values::ids::{ContentHash, Millis};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use wire::rest::{AuditCheck, AuditEntry, AuditHead, Page};

const EXAMPLES: &str = "\
Examples:
  waypost audit tail --since 1h                     # what was decided, newest first
  waypost audit tail --act call --subject ann
  waypost audit export > audit.jsonl                # all of it, and how far it goes
  waypost audit verify --against audit.jsonl        # each entry is still there, and nothing else
  waypost audit verify --of-server                  # the server's own: starts, failed credentials";

/// How many seconds it may take to read a long chain.
const VERIFY_SECONDS: u64 = 3_600;
/// The largest page that a server gives.
const PAGE_ITEMS: usize = 200;

/// What `waypost audit` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum AuditCommand {
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
pub(crate) struct Which {
    /// That of the server itself instead of the realm's
    #[arg(long)]
    of_server: bool,
    /// That of this realm, also of one that was removed
    #[arg(long, value_name = "NAME", conflicts_with = "of_server")]
    of_realm: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TailArgs {
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
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    which: Which,
    /// A head that was kept, `<row>:<64 hexadecimal digits>`
    #[arg(long, conflicts_with = "against")]
    head: Option<String>,
    /// A file that `waypost audit export` wrote
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Rows up to this one may be of a secret key that is lost
    #[arg(long, value_name = "ROW")]
    unchecked_until: Option<u64>,
}

/// The rows of an export, or of a server: the digest of the entries of each. All of them together
/// may be more than memory holds.
#[derive(Debug, Default, PartialEq)]
struct Rows {
    digests: BTreeMap<u64, ContentHash>,
    /// The row that more entries may come of, and their texts.
    open: Option<(u64, String)>,
}

/// What an export says.
struct ExportSummary {
    head: String,
    rows: Rows,
}

/// Runs `waypost audit`.
pub(crate) async fn run(command: AuditCommand, context: &Context) -> Result<Exit> {
    match command {
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
    let mut items = Vec::new();
    let mut cursor = None::<String>;
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
    let VerifyArgs { which, head, against, unchecked_until } = args;
    let kept = against.as_deref().map(exported).transpose()?;
    let head = kept.as_ref().map(|kept| kept.head.clone()).or(head);
    let request = which.request(&["audit", "verify"], context)?.with("head", head);
    let request = request.with("uncheckedUntil", unchecked_until);
    let client = context.client().await?;
    let reading = client.get(request.taking(VERIFY_SECONDS));
    let body = context.progress().during("reading the audit", reading).await?;
    let mut check: AuditCheck = read(&body)?;
    if let Some(kept) = kept {
        let comparing = compared(&client, &which, &kept.rows, context);
        let flaws = context.progress().during("comparing the entries", comparing).await?;
        check.valid &= flaws.is_empty();
        check.flaws += u64::try_from(flaws.len()).unwrap_or(u64::MAX);
        check.found.extend(flaws);
        check.found.truncate(FLAWS_MAX);
    }
    context.output.data(&json!(check), &check_text(&check))?;
    Ok(if check.valid { Exit::Ok } else { Exit::Failed })
}

/// How the entries of a server differ from those that were exported. Rows that are newer than the
/// export are no difference, and neither are old ones that the server removed.
async fn compared(
    client: &Client,
    which: &Which,
    kept: &Rows,
    context: &Context,
) -> Result<Vec<String>> {
    let mut there = Rows::default();
    let adding = |entry: &Value| {
        there.add(entry);
        Ok(())
    };
    each_entry(client, which, context, adding).await?;
    there.close();
    // Read last: what is removed meanwhile is not taken for missing.
    let head = client.get(which.request(&["audit", "head"], context)?).await?;
    let head: AuditHead = read(&head)?;
    let base = head.base.as_deref().and_then(|base| base.split_once(':'));
    let removed = base.and_then(|(row, _)| row.parse().ok()).unwrap_or(0);
    Ok(differences(kept, &there, removed))
}

fn differences(kept: &Rows, there: &Rows, removed: u64) -> Vec<String> {
    let mut flaws = Vec::new();
    for (row, digest) in kept.digests.range(removed.saturating_add(1)..) {
        match there.digests.get(row) {
            Some(other) if other == digest => {}
            Some(_) => flaws.push(format!("row {row} has other entries than the export")),
            None => flaws.push(format!("row {row} of the export is not there any more")),
        }
    }
    let first = kept.digests.first_key_value().map(|(row, _)| *row);
    let last = kept.digests.last_key_value().map(|(row, _)| *row);
    let (Some(first), Some(last)) = (first, last) else { return flaws };
    let added = there.digests.range(first..=last);
    let added = added.filter(|(row, _)| !kept.digests.contains_key(*row));
    flaws.extend(added.map(|(row, _)| format!("row {row} is not in the export: it was added")));
    flaws
}

impl Rows {
    /// The next entry: those of a row follow each other.
    fn add(&mut self, entry: &Value) {
        let row = entry["row"].as_u64().unwrap_or_default();
        if self.open.as_ref().is_some_and(|(open, _)| *open != row) {
            self.close();
        }
        let (_, texts) = self.open.get_or_insert_with(|| (row, String::new()));
        texts.push_str(&canonical::text(entry));
        texts.push('\n');
    }

    fn close(&mut self) {
        if let Some((row, texts)) = self.open.take() {
            self.digests.insert(row, ContentHash::of(texts.as_bytes()));
        }
    }
}

/// The head comes first: what is written meanwhile is then not missed by who compares.
async fn export(which: &Which, context: &Context) -> Result<Exit> {
    let client = context.client().await?;
    let head = client.get(which.request(&["audit", "head"], context)?).await?;
    context.output.document(&head)?;
    each_entry(&client, which, context, |entry| context.output.document(entry)).await?;
    Ok(Exit::Ok)
}

/// Does this with every entry, newest first.
async fn each_entry(
    client: &Client,
    which: &Which,
    context: &Context,
    mut todo: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let request = which.request(&["audit"], context)?.with("limit", Some(PAGE_ITEMS));
    let mut cursor: Option<String> = None;
    loop {
        let page = client.get(request.clone().with("cursor", cursor.as_ref())).await?;
        let page: Page<Value> = read(&page)?;
        page.items.iter().try_for_each(&mut todo)?;
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

impl Which {
    fn request<'a>(&self, path: &[&'a str], context: &Context) -> Result<Request<'a>> {
        let request = Request::to(path).keyed(context.admin_key()?);
        let of_realm = self.of_realm.as_ref().map(|realm| format!("realm:{realm}"));
        Ok(request.with("chain", self.of_server.then(|| "server".to_owned()).or(of_realm)))
    }
}

/// An export: the head is its first line, and each other one an entry.
fn exported(file: &Path) -> Result<ExportSummary> {
    let wrong = |why: String| {
        Failure::usage(format!("`{}` is no export of an audit: {why}", file.display()))
            .hint("`waypost audit export > FILE` writes one")
    };
    let opened = File::open(file).map_err(|error| wrong(error.to_string()))?;
    let mut lines = BufReader::new(opened).lines();
    let first = lines.next().transpose().map_err(|error| wrong(error.to_string()))?;
    let head: AuditHead = serde_json::from_str(&first.unwrap_or_default())
        .map_err(|error| wrong(format!("its first line: {error}")))?;
    let mut rows = Rows::default();
    for (line, number) in lines.zip(2..) {
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let entry: Value = serde_json::from_str(&line)
            .map_err(|error| wrong(format!("its line {number}: {error}")))?;
        rows.add(&entry);
    }
    rows.close();
    Ok(ExportSummary { head: head.head, rows })
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

fn check_text(check: &AuditCheck) -> String {
    let AuditCheck { chain, rows, unchecked, unexpected, flaws, found, .. } = check;
    let whose = if chain == "*" { "the server".to_owned() } else { format!("realm `{chain}`") };
    let all = counted(*rows, "row");
    let told_flaws = counted(*flaws, "flaw");
    let mut lines = Vec::new();
    if *unchecked > 0 {
        lines.push(format!("{unchecked} of {all} could not be checked"));
    }
    lines.push(match (*flaws, *unchecked) {
        (0, 0) => format!("the audit of {whose} is as it was written: {all}"),
        (0, _) if check.valid => {
            let checked = counted(rows.saturating_sub(*unchecked), "row");
            format!(
                "the audit of {whose} is as it was written, as far as it was checked: {checked}"
            )
        }
        (0, _) => format!("the audit of {whose} is NOT proven to be as it was written"),
        _ => format!("the audit of {whose} is NOT as it was written: {told_flaws}"),
    });
    lines.extend(found.iter().map(|flaw| format!("  {flaw}")));
    if *unexpected > 0 {
        lines.push(
            "  they name a secret key that the server does not have, which anyone can write. If \
             the secret was replaced and the old one is lost, name the last row before that with \
             `--unchecked-until ROW`; if not, the database was changed"
                .to_owned(),
        );
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::identity::audit::{ChainName, Entry, Mac, Object};
    use kernel::identity::chain::{ChainKeys, Head, Row, Verifier};
    use kernel::tool::call::Caller;

    #[test]
    fn a_check_prints_what_it_found() {
        let check = |flaws: u64, unchecked: u64| AuditCheck {
            chain: "acme".to_owned(),
            valid: flaws + unchecked == 0,
            rows: 7,
            unchecked,
            unexpected: unchecked,
            flaws,
            found: (0..flaws).map(|_| "row 3 was changed".to_owned()).collect(),
        };
        assert_eq!(
            check_text(&check(0, 0)),
            "the audit of realm `acme` is as it was written: 7 rows"
        );
        let flawed = check_text(&check(1, 2));
        assert!(flawed.starts_with("2 of 7 rows could not be checked\n"), "{flawed}");
        for part in ["NOT", ": 1 flaw\n", "\n  row 3 was changed", "--unchecked-until"] {
            assert!(flawed.contains(part), "{flawed}");
        }
        let unproven = check_text(&check(0, 2));
        assert!(unproven.contains("is NOT proven"), "{unproven}");
        let expected = check_text(&AuditCheck { valid: true, unexpected: 0, ..check(0, 2) });
        let lines: Vec<&str> = expected.lines().collect();
        let [first, second] = lines.as_slice() else { panic!("{expected}") };
        assert_eq!(*first, "2 of 7 rows could not be checked");
        assert!(second.ends_with("as far as it was checked: 5 rows"), "{second}");
        let server = AuditCheck { chain: "*".to_owned(), ..check(0, 0) };
        assert!(check_text(&server).contains("of the server is"), "{server:?}");
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
    fn an_export_has_its_head_in_the_first_line_and_an_entry_in_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        std::fs::write(&file, "{\"chain\":\"acme\",\"head\":\"7:0f\"}\n{\"row\":7}\n").unwrap();
        let kept = exported(&file).unwrap();
        assert_eq!((kept.head.as_str(), kept.rows.digests.len()), ("7:0f", 1));
        for wrong in ["row 7\n", "{\"chain\":\"acme\",\"head\":\"7:0f\"}\nrow 7\n"] {
            std::fs::write(&file, wrong).unwrap();
            assert!(exported(&file).is_err(), "{wrong}");
        }
    }

    #[test]
    fn entries_that_differ_from_an_export_are_found_by_their_rows() {
        let rows = |entries: &[(u64, &str)]| {
            let mut rows = Rows::default();
            for (row, subject) in entries {
                rows.add(&json!({"row": row, "subject": subject}));
            }
            rows.close();
            rows
        };
        let kept = rows(&[(5, "ann"), (5, "bob"), (4, "ann"), (2, "eve")]);
        let found = |there: &[(u64, &str)], removed: u64| {
            let flaws = differences(&kept, &rows(there), removed);
            flaws.iter().map(|flaw| flaw.chars().take(5).collect()).collect::<Vec<String>>()
        };
        let all = [(6, "new"), (5, "ann"), (5, "bob"), (4, "ann"), (2, "eve")];
        assert_eq!(found(&all, 0), [""; 0]);
        assert_eq!(found(&all[..4], 2), [""; 0], "the server removed it");
        assert_eq!(found(&all[..4], 0), ["row 2"]);
        assert_eq!(found(&[all[0], all[1], all[3], all[4]], 0), ["row 5"]);
        assert_eq!(found(&[all[1], all[2], (4, "mallory"), all[4]], 0), ["row 4"]);
        assert_eq!(found(&[all[1], all[2], all[3], (3, "mallory"), all[4]], 0), ["row 3"]);
        assert_eq!(found(&[], 0), ["row 2", "row 4", "row 5"]);
    }

    /// Keys that are good enough for a test: a hash with the key in front.
    struct TestKeys;

    impl ChainKeys for TestKeys {
        fn name(&self) -> &str {
            "k1"
        }

        fn mac(&self, key: &str, parts: &[&[u8]]) -> Option<Mac> {
            let mut bytes = key.as_bytes().to_vec();
            for part in parts {
                bytes.extend((part.len() as u64).to_be_bytes());
                bytes.extend_from_slice(part);
            }
            (key == self.name()).then(|| ContentHash::of(&bytes).as_str().parse().unwrap())
        }

        fn digest(&self, bytes: &[u8]) -> Mac {
            self.mac(self.name(), &[bytes]).unwrap()
        }
    }

    fn chain() -> ChainName {
        ChainName::of(&"acme".into())
    }

    fn last(rows: &[Row]) -> Head {
        rows.last().map(Row::head).unwrap_or_default()
    }

    /// These rows and so many more that the server wrote, with two entries each.
    fn grown(mut rows: Vec<Row>, count: usize) -> Vec<Row> {
        for _ in 0..count {
            let head = last(&rows);
            let caller = Caller::new("acme", "ann");
            let at = Millis(head.seq.try_into().unwrap());
            let entry = Entry::by(at, &caller, "call", Object::new("tool", "math::add"));
            let entries = [entry.clone(), entry];
            rows.push(Row::after(&TestKeys, &chain(), &head, at, &entries).unwrap());
        }
        rows
    }

    /// The entries of these rows as a server shows them, newest first.
    fn shown(rows: &[Row]) -> Rows {
        let mut shown = Rows::default();
        for row in rows.iter().rev() {
            for entry in row.entries().unwrap().iter().rev() {
                let mut entry = json!(entry);
                entry["row"] = json!(row.seq);
                shown.add(&entry);
            }
        }
        shown.close();
        shown
    }

    /// Whether the server finds nothing in these rows, which must still have these heads.
    fn is_valid(rows: &[Row], head: Head, kept: &[Head]) -> bool {
        let mut verifier = Verifier::new(&TestKeys, chain(), None, kept.to_vec());
        for row in rows {
            match row.seq <= head.seq {
                true => verifier.take(row),
                false => verifier.take_beyond(row, &head),
            }
        }
        verifier.end(&head).is_valid()
    }

    /// Numbers that look random and are the same each time.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
            self.0 = next.wrapping_add(1_442_695_040_888_963);
            (self.0 >> 33) as usize % end
        }
    }

    /// Does one thing to rows and to what the database says of their end, without the secret.
    fn forge(rows: &mut Vec<Row>, head: &mut Head, random: &mut Random) {
        let index = random.below(rows.len().max(1));
        match random.below(8) {
            0 if !rows.is_empty() => drop(rows.remove(index)),
            1 => rows.truncate(index),
            2 if !rows.is_empty() => {
                let other = random.below(rows.len());
                let one = rows[index].clone();
                let two = rows[other].clone();
                rows[index] = Row { seq: one.seq, ..two.clone() };
                rows[other] = Row { seq: two.seq, ..one };
            }
            3 if !rows.is_empty() => rows[index].body = rows[index].body.replace("ann", "eve"),
            4 if !rows.is_empty() => {
                rows[index].key = "00000000".to_owned();
                rows[index].body = "[]".to_owned();
            }
            5 => {
                let end = last(rows);
                let key = ["k1", "00000000"][random.below(2)].to_owned();
                let body = "[]".to_owned();
                let mac = Mac([5; 32]);
                rows.push(Row { seq: end.seq + 1, at: Millis(0), key, prev: end.mac, body, mac });
            }
            6 => *head = last(rows),
            _ => {
                // All is numbered and linked anew, as far as that needs no secret.
                let mut before = Head::default();
                for row in rows.iter_mut() {
                    row.seq = before.seq + 1;
                    row.prev = before.mac;
                    before = row.head();
                }
                *head = before;
            }
        }
    }

    /// The same entries as who has the secret writes them: a chain without a flaw.
    fn made_anew(rows: &[Row]) -> Vec<Row> {
        let mut made: Vec<Row> = Vec::new();
        for row in rows {
            let entries = row.entries().unwrap();
            made.push(Row::after(&TestKeys, &chain(), &last(&made), row.at, &entries).unwrap());
        }
        made
    }

    #[test]
    fn forged_exports_are_found_against_the_chain() {
        let exported = grown(Vec::new(), 6);
        let kept = shown(&exported);
        let kept_head = last(&exported);
        let is_exported = |rows: &[Row]| rows.starts_with(&exported);
        let texts = |rows: &[Row]| -> Vec<(u64, String)> {
            let with_entries = |row: &&Row| row.seq <= kept_head.seq && row.body != "[]";
            rows.iter().filter(with_entries).map(|row| (row.seq, row.body.clone())).collect()
        };
        let mut random = Random(7);
        let mut found_by_export_alone = 0;
        for round in 0..2_000 {
            let there = grown(exported.clone(), random.below(3));
            let told = differences(&kept, &shown(&there), 0);
            assert!(told.is_empty() && is_valid(&there, last(&there), &[kept_head]), "{told:?}");

            let mut forged = there.clone();
            let mut head = last(&there);
            for _ in 0..=random.below(4) {
                forge(&mut forged, &mut head, &mut random);
            }
            let has_secret = round % 2 == 0;
            if has_secret {
                forged = made_anew(&forged);
                head = last(&forged);
            }
            let alone = is_valid(&forged, head, &[]);
            let with_head = is_valid(&forged, head, &[kept_head]);
            let is_told = !differences(&kept, &shown(&forged), 0).is_empty();
            let against_export = with_head && !is_told;
            // The entries tell what was changed by themselves, whoever wrote the codes.
            assert_eq!(is_told, texts(&forged) != texts(&exported), "{head}: {forged:?}");
            if has_secret {
                assert!(alone, "who has the secret leaves no flaw: {forged:?}");
                assert_eq!(against_export, is_exported(&forged), "{head}: {forged:?}");
            } else {
                // Only a shorter chain of true rows passes, and with an export none of its rows.
                let is_cut = there.starts_with(&forged) && head == last(&forged);
                assert_eq!(alone, is_cut, "{head}: {forged:?}");
                let is_kept = is_cut && is_exported(&forged);
                assert_eq!(with_head, is_kept, "{head}: {forged:?}");
                assert_eq!(against_export, is_kept, "{head}: {forged:?}");
            }
            found_by_export_alone += usize::from(alone && !against_export);
        }
        assert!(found_by_export_alone > 500, "{found_by_export_alone}");
    }
}
