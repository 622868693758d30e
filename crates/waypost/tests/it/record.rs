//! `waypost record`, against a server of a project with one type, and on its data at rest.

use crate::process::{Server, waypost, write};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

const ORDER: &str = "\
fields:
  status: {type: string, enum: [open, closed], indexed: true}
  total: {type: number}
";

/// A project with one type.
fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("waypost.toml", ""), ("entities/Order.yaml", ORDER)]);
    folder
}

/// A server of it with two orders.
fn house() -> (Server, TempDir) {
    let folder = project();
    let server = Server::of_project(folder.path());
    for (name, status, total) in [("A-17", "open", "120"), ("A-18", "closed", "80.5")] {
        let fields =
            [format!("refName={name}"), format!("status={status}"), format!("total={total}")];
        let [name, status, total] = fields.each_ref().map(String::as_str);
        let set = ["record", "save", "Order", "--set", name, "--set", status, "--set", total];
        server.run(&set).code(0);
    }
    (server, folder)
}

/// The one JSON line of a failure.
fn failure(stderr: &str) -> Value {
    let line = stderr.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

#[test]
fn types_and_their_schemas_are_shown() {
    let (server, _folder) = house();
    let types = server.run(&["record", "types"]).code(0).stdout;
    assert!(types.lines().any(|line| line.starts_with("Order ")), "{types}");
    let schema = server.run(&["record", "schema", "Order"]).code(0).json();
    assert_eq!(schema["properties"]["total"]["type"], "number", "{schema}");
    let unknown = server.json(&["record", "schema", "Ordre"]).code(2);
    assert_eq!(failure(&unknown.stderr)["code"], "UnknownRootType", "{unknown:#?}");
}

#[test]
fn records_are_found_and_counted() {
    let (server, _folder) = house();
    let found = server.run(&["record", "find", "Order", "--sort", "-total"]).code(0).stdout;
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 3, "{found}");
    assert!(lines[0].starts_with("REFNAME") && lines[0].contains("STATUS"), "{found}");
    assert!(lines[1].starts_with("A-17") && lines[2].starts_with("A-18"), "{found}");
    let chosen = ["record", "find", "Order", "status:closed", "--fields", "total,refName"];
    let chosen = server.run(&chosen).code(0).stdout;
    assert_eq!(chosen, "TOTAL  REFNAME\n80.5   A-18\n");

    let pages = ["record", "find", "Order", "--sort", "refName", "--limit", "1"];
    let first = server.json(&pages).code(0).json();
    let cursor = first["nextCursor"].as_str().unwrap();
    assert_eq!((&first["rowCount"], &first["totalCount"]), (&json!(1), &json!(2)));
    let second = server.json(&[&pages[..], &["--cursor", cursor]].concat()).code(0).json();
    assert_eq!(second["rows"][0]["refName"], "A-18", "{second}");
    let all = server.json(&[&pages[..], &["--all"]].concat()).code(0).json();
    assert_eq!((&all["rowCount"], &all["nextCursor"]), (&json!(2), &Value::Null), "{all}");

    assert_eq!(server.run(&["record", "count", "Order"]).code(0).stdout, "2\n");
    let grouped = ["record", "count", "Order", "--group-by", "status", "--aggregate", "sum(total)"];
    let groups = server.json(&grouped).code(0).json();
    assert_eq!(groups["groups"].as_array().unwrap().len(), 2, "{groups}");
    let table = server.run(&grouped).code(0).stdout;
    assert!(table.starts_with("STATUS") && table.contains("80.5"), "{table}");
}

#[test]
fn a_fault_of_a_query_has_a_caret_under_its_place() {
    let (server, _folder) = house();
    for query in ["status:open &&& total:#1", "(status:open", "stats:open", "total:>#1.5"] {
        let find = ["record", "find", "Order", query];
        let told = server.json(&find).code(2);
        let line = failure(&told.stderr);
        assert_eq!(line["code"], "InvalidQuery", "{line}");
        let position = usize::try_from(line["problem"]["position"].as_u64().unwrap()).unwrap();
        let shown = server.run(&find).code(2).stderr;
        let caret = format!("\n  {query}\n  {}^\n", " ".repeat(position));
        assert!(shown.contains(&caret), "no `{caret}` in {shown}");
        let count = server.run(&["record", "count", "Order", query]).code(2).stderr;
        assert!(count.contains(&caret), "no `{caret}` in {count}");
    }
    let hint = server.run(&["record", "find", "Order", "stats:open"]).code(2);
    hint.says("did you mean `status`?");
}

#[test]
fn a_record_is_saved_whole_or_in_part() {
    let (server, folder) = house();
    let merge = ["record", "save", "Order", "--merge", "--set", "refName=A-17"];
    let merged = server.run(&[&merge[..], &["--set", "status=closed"]].concat()).code(0).stdout;
    assert!(
        merged.starts_with("updated    A-17  ") && merged.ends_with("  version 2\n"),
        "{merged}"
    );
    let found = server.json(&["record", "find", "Order", "refName:A-17"]).code(0).json();
    let record = &found["rows"][0];
    assert_eq!((&record["total"], &record["status"]), (&json!(120), &json!("closed")));

    let late = [&merge[..], &["--set", "total=1", "--if-version", "1"]].concat();
    let late = server.json(&late).code(1);
    assert_eq!(failure(&late.stderr)["code"], "VersionConflict", "{late:#?}");

    write(folder.path(), &[("order.json", r#"{"refName": "A-19", "status": "lost"}"#)]);
    let file = folder.path().join("order.json").display().to_string();
    let wrong = server.run(&["record", "save", "Order", &file]).code(2);
    wrong.says("\n  status: ");
    write(folder.path(), &[("order.json", r#"{"refName": "A-19", "status": "open"}"#)]);
    let insert = ["record", "save", "Order", &file, "--insert"];
    let inserted = server.run(&insert).code(0).stdout;
    assert!(inserted.starts_with("created    A-19  "), "{inserted}");
    server.run(&insert).code(1);
    write(folder.path(), &[("order.json", "[1]")]);
    server.run(&["record", "save", "Order", &file]).code(2).says("is not a record");
    server.run(&["record", "save", "Order"]).code(2);
    assert_eq!(server.run(&["record", "count", "Order"]).code(0).stdout, "3\n");
}

#[test]
fn nothing_is_deleted_without_a_person_or_a_word() {
    let (server, _folder) = house();
    let open = ["record", "rm", "Order", "--query", "status:open"];
    let with = |more: &[&'static str]| [&open[..], more].concat();
    server.run(&open).code(2).says("--yes");
    server.run(&["record", "rm", "Order", "--yes"]).code(2);
    let dry = server.run(&with(&["--dry-run"])).code(0).stdout;
    assert_eq!(dry, "1 record would be deleted; nothing was deleted\n");
    let other = server.json(&with(&["--yes", "--expect", "5"])).code(1);
    assert_eq!(failure(&other.stderr)["code"], "ExpectationNotMet", "{other:#?}");
    assert_eq!(server.run(&["record", "count", "Order"]).code(0).stdout, "2\n");

    server.run(&with(&["--yes", "--expect", "1"])).code(0).says("deleted 1 record");
    let found = server.json(&["record", "find", "Order"]).code(0).json();
    let id = found["rows"][0]["id"].as_str().unwrap();
    server.run(&["record", "rm", "Order", id]).code(2).says("--dry-run");
    let dry = server.run(&["record", "rm", "Order", id, "--dry-run"]).code(0).stdout;
    assert!(dry.starts_with("1 record would be deleted"), "{dry}");
    server.run(&["record", "rm", "Order", id, "--yes"]).code(0).says("deleted 1 record");
    server.run(&["record", "rm", "Order", id, "--yes"]).code(1);
    assert_eq!(server.run(&["record", "count", "Order"]).code(0).stdout, "0\n");
}

#[cfg(unix)]
#[test]
fn a_person_is_asked_before_records_are_deleted() {
    let (server, folder) = house();
    let question = "delete 1 record of `Order` for good? [y/N] ";
    let open = ["--server", server.url.as_str(), "record", "rm", "Order", "--query", "status:open"];
    let answered = |answer: &str| {
        let mut terminal = crate::terminal::Terminal::open(folder.path(), &open);
        terminal.shows(question, 1);
        terminal.types(answer);
        terminal.ends()
    };
    for answer in ["\n", "n\n", "\u{1b}[200~y\u{1b}[201~\n"] {
        let (code, shown) = answered(answer);
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("nothing was deleted"), "{shown}");
        assert_eq!(server.run(&["record", "count", "Order"]).code(0).stdout, "2\n");
    }
    let (code, shown) = answered("y\n");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("deleted 1 record"), "{shown}");
    assert_eq!(server.run(&["record", "count", "Order"]).code(0).stdout, "1\n");
}

/// Runs `waypost record migrate` in the project.
fn migrate(folder: &Path, more: &[&str]) -> crate::process::Ended {
    waypost(folder, &[&["record", "migrate"][..], more].concat())
}

#[test]
fn records_are_moved_out_of_the_way_of_their_types() {
    let empty = project();
    migrate(empty.path(), &[]).code(2).says("there are no records");

    let (server, folder) = house();
    let place = folder.path();
    migrate(place, &[]).code(2).says("stop the server");
    assert_eq!(server.stop().0.code, Some(0));
    migrate(place, &[]).code(0).says("stored records fit their types");

    write(place, &[("entities/Order.yaml", ORDER.replace("status:", "state:").as_str())]);
    let refused = migrate(place, &[]).code(1).says("(2 records)");
    let refused = refused.says("`--rename Order.status=state`").says("`--drop Order.status`");
    assert_eq!(refused.stdout, "");
    let rename = ["--rename", "Order.status=state"];
    let dry = migrate(place, &[&rename[..], &["--dry-run"]].concat()).code(0);
    let dry = dry.says("nothing was changed");
    assert!(dry.stdout.contains("--rename Order.status=state: 2 records\n"), "{dry:#?}");
    migrate(place, &[]).code(1);
    migrate(place, &["--drop", "Ordre"]).code(2).says("did you mean `Order`?");
    migrate(place, &rename).code(0).says("the records fit their types now");
    migrate(place, &[]).code(0).says("stored records fit their types");

    let again = Server::of_project(place);
    assert_eq!(again.run(&["record", "count", "Order", "state:open"]).code(0).stdout, "1\n");
}

#[test]
fn the_schema_of_a_type_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let schema = waypost(folder.path(), &["schema", "entity"]).code(0).json();
    assert!(schema["properties"]["fields"].is_object(), "{schema}");
}
