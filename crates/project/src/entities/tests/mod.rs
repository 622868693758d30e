//! Holds `cases.txt`: files of types with what they mean, or all that is wrong with them.
//! `UPDATE_EXPECT=1` writes it anew.

use super::*;
use query::types::{Bounds, Field, Kind};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

const TITLE: &str = "==== ";
const FILE: &str = "---- ";
const SAID: &str = ">>>>";

/// Files that are read together. Those in `realms/` are of one realm.
struct Case {
    title: String,
    files: Vec<EntityFile>,
}

impl Case {
    fn read(&self) -> CheckResult<EntityTypes> {
        let limits = Limits::default();
        let (own, common): (Vec<EntityFile>, Vec<EntityFile>) =
            self.files.iter().cloned().partition(|file| file.file.starts_with("realms/"));
        let common = read(&common, &EntityTypes::default(), &limits)?;
        if own.is_empty() { Ok(common) } else { read(&own, &common.0, &limits) }
    }

    fn text(&self) -> String {
        let mut text = format!("{TITLE}{}\n", self.title);
        for file in &self.files {
            text.push_str(&format!("{FILE}{}\n{}", file.file, file.text));
        }
        text.push_str(&format!("{SAID}\n"));
        let (types, mistakes) = match self.read() {
            Ok((types, warnings)) => (types, warnings),
            Err(mistakes) => (EntityTypes::default(), mistakes),
        };
        let lines = described(&types).into_iter();
        for line in lines.chain(mistakes.iter().map(Mistake::to_string)) {
            text.push_str(&format!("{line}\n"));
        }
        text
    }
}

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn file(path: &str) -> EntityFile {
    let name = Path::new(path).file_stem().unwrap().to_str().unwrap().to_owned();
    EntityFile { file: path.to_owned(), name, text: String::new() }
}

fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut is_said = false;
    for line in text.lines() {
        if let Some(title) = line.strip_prefix(TITLE) {
            cases.push(Case { title: title.to_owned(), files: Vec::new() });
            is_said = false;
        } else if let Some(path) = line.strip_prefix(FILE) {
            cases.last_mut().unwrap().files.push(file(path));
        } else if line == SAID {
            is_said = true;
        } else if !is_said {
            let text = &mut cases.last_mut().unwrap().files.last_mut().unwrap().text;
            text.push_str(line);
            text.push('\n');
        }
    }
    cases
}

fn described(types: &EntityTypes) -> Vec<String> {
    let mut lines = Vec::new();
    for known in types.types.all() {
        let others = if known.additional_fields { ", with others" } else { "" };
        lines.push(format!("{} in {}{others}", known.full_name(), known.collection));
        describe(&known.fields, "", &mut lines);
        lines.extend(known.unique.iter().map(|paths| format!("  unique {}", paths.join(", "))));
        lines.extend(known.indexes.iter().map(|paths| format!("  index {}", paths.join(", "))));
        let seeds = types.seeds.iter().filter(|seed| seed.record_type == known.full_name());
        lines.extend(seeds.map(|seed| format!("  seed {} at {}", seed.path, seed.place)));
    }
    lines
}

fn describe(fields: &[Field], within: &str, lines: &mut Vec<String>) {
    for field in fields {
        let path = format!("{within}{}", field.name);
        let mut said = vec![field.kind.to_string()];
        said.extend(field.required.then(|| "required".to_owned()));
        said.extend(field.default.as_ref().map(|default| format!("default {default}")));
        if !field.choices.is_empty() {
            said.push(format!("one of {}", Value::Array(field.choices.clone())));
        }
        let Bounds { min, max } = field.bounds;
        if min.or(max).is_some() {
            let shown = |bound: Option<f64>| bound.map_or(String::new(), |bound| bound.to_string());
            said.push(format!("{}..{}", shown(min), shown(max)));
        }
        said.extend(field.pattern.as_ref().map(|pattern| format!("like {}", pattern.as_str())));
        said.extend(field.indexed.then(|| "indexed".to_owned()));
        said.extend(field.unique.then(|| "unique".to_owned()));
        lines.push(format!("  {path}: {}", said.join(", ")));
        if let Kind::Object(inner) = field.kind.element() {
            describe(inner, &format!("{path}."), lines);
        }
    }
}

fn all_cases() -> (String, Vec<Case>) {
    let kept = fs::read_to_string(page("src/entities/tests/cases.txt")).unwrap();
    let cases = cases(&kept);
    (kept, cases)
}

#[test]
fn every_case_means_what_is_written() {
    let (kept, cases) = all_cases();
    let texts: Vec<String> = cases.iter().map(Case::text).collect();
    let text = texts.join("\n");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(page("src/entities/tests/cases.txt"), text).unwrap();
        return;
    }
    assert_eq!(text, kept, "`UPDATE_EXPECT=1` writes cases.txt anew");
}

/// The only mistake of this text.
fn refused(text: &str) -> String {
    let order = EntityFile { text: text.to_owned(), ..file("entities/Order.yaml") };
    let found = read(&[order], &EntityTypes::default(), &Limits::default()).unwrap_err();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].to_string()
}

#[test]
fn types_fields_and_depth_have_limits() {
    let many = |count: usize| -> Vec<EntityFile> {
        let named = |at: usize| EntityFile {
            text: "fields: {}\n".to_owned(),
            ..file(&format!("entities/T{at:03}.yaml"))
        };
        (0..count).map(named).collect()
    };
    let limits = Limits::default();
    assert!(read(&many(200), &EntityTypes::default(), &limits).is_ok());
    let found = read(&many(201), &EntityTypes::default(), &limits).unwrap_err();
    assert_eq!(
        found[0].to_string(),
        "entities/T200.yaml:1:1: error: there are 201 types, more than 200; \
         hint: put what is alike into one type"
    );

    let fields = |count: usize| -> String {
        let lines = (0..count).map(|at| format!("  f{at}: {{type: string}}\n"));
        format!("fields:\n{}", lines.collect::<String>())
    };
    assert_eq!(
        refused(&fields(202)),
        "entities/Order.yaml:202:3: error: the type has more than 200 fields; \
         hint: put some of them into another type, or into a field of type `json`"
    );

    let nested = |depth: usize| {
        let open = "{type: array, items: ".repeat(depth);
        format!("fields:\n  a: {open}{{type: json}}{}\n", "}".repeat(depth))
    };
    let order = EntityFile { text: nested(8), ..file("entities/Order.yaml") };
    assert!(read(&[order], &EntityTypes::default(), &limits).is_ok());
    assert_eq!(
        refused(&nested(9)),
        "entities/Order.yaml:2:174: error: objects and arrays stand more than 8 deep in each \
         other; hint: refer to a type of its own, or write `type: json`"
    );

    let choices: Vec<String> = (0..1_001).map(|at| at.to_string()).collect();
    let text = format!("fields:\n  a: {{type: integer, enum: [{}]}}\n", choices.join(", "));
    assert_eq!(
        refused(&text),
        "entities/Order.yaml:2:28: error: `enum` has more than 1000 values; \
         hint: make a type of its own of them, and refer to it"
    );
}

#[test]
fn indexes_have_limits() {
    let listed = |key: &str, list: &str, count: usize| {
        let lines: String = (0..count).map(|at| format!("  f{at}: {{type: string}}\n")).collect();
        let lists: String = (0..count).map(|at| format!("  - [f{at}{list}]\n")).collect();
        format!("fields:\n{lines}{key}:\n{lists}")
    };
    let order = EntityFile { text: listed("indexes", "", 32), ..file("entities/Order.yaml") };
    assert!(read(&[order], &EntityTypes::default(), &Limits::default()).is_ok());
    assert_eq!(
        refused(&listed("unique", "", 33)),
        "entities/Order.yaml:1:1: error: the type has more than 32 indexes and unique fields; \
         hint: each makes every save slower; keep those that queries need"
    );
    assert_eq!(
        refused(&listed("indexes", ", f0".repeat(8).as_str(), 1)),
        "entities/Order.yaml:4:5: error: there are more than 8 fields in a list; \
         hint: fewer fields find the record as well"
    );
}

#[test]
fn the_schema_takes_what_is_read_and_no_other_keys() {
    let schema = schema();
    let described: BTreeSet<&str> =
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(described, KEYS.iter().copied().collect::<BTreeSet<_>>());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let takes = |file: &EntityFile| {
        let node = Node::parse(&file.text, &Limits::default()).unwrap();
        validator.is_valid(&node.to_value())
    };
    let (_, cases) = all_cases();
    let mut counts = (0, 0);
    for case in &cases {
        let mistakes = case.read().err().unwrap_or_default();
        for file in &case.files {
            let of_file = |mistake: &&Mistake| mistake.file.as_ref() == Some(&file.file);
            let is_unknown = |mistake: &Mistake| mistake.message.starts_with("unknown");
            if mistakes.is_empty() {
                assert!(takes(file), "{}: {}", case.title, file.file);
                counts.0 += 1;
            } else if mistakes.iter().filter(of_file).any(is_unknown) {
                assert!(!takes(file), "{}: {}", case.title, file.file);
                counts.1 += 1;
            }
        }
    }
    assert!(counts.0 >= 7 && counts.1 >= 2, "{counts:?}");
}

#[test]
fn the_examples_of_the_reference_can_be_read() {
    let text = fs::read_to_string(page("../../docs/reference/entities.md")).unwrap();
    let blocks = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let named = |block: &str| {
        let path = block.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap();
        EntityFile { text: block.to_owned(), ..file(path) }
    };
    let case = Case { title: "entities.md".to_owned(), files: blocks.map(named).collect() };
    let (types, warnings) = case.read().unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let names: Vec<String> = types.types.all().iter().map(RecordType::full_name).collect();
    assert_eq!(names, ["shop.Customer", "shop.Order"]);
}
