//! `entities/<Type>.yaml`: the types of records that a project declares, and their JSON Schema for
//! editors. What a type means is in `query::types`; where the files are is the folder's, and what
//! becomes of stored records when a type changes is the store's.

mod fields;
mod fit;
mod indexes;
mod schema;
pub mod built_in;

use crate::layer::{Location, NAME_CHARS_MAX};
use fields::{Form, TypeName};
use kernel::definition::plan::mistake::{CheckResult, Mistake};
use kernel::definition::plan::read::{Origin, Reader, Spot};
use kernel::definition::plan::source::{Node, Subject};
use kernel::limits::Limits;
use query::types::{RecordType, TypeSet};
use std::path::Path;

pub use schema::schema;

/// How many types a realm can have.
const TYPES_MAX: usize = 200;

const KEYS: &[&str] = &[
    "namespace", "collection", "fields", "unique", "indexes", "additionalFields", "seed", "$schema",
];

/// What built-in types have.
const OWN_NAMESPACE: &str = "waypost";
const OWN_COLLECTIONS: &[&str] = &["agents", "tool_provider_configs"];

/// What a file of first records can be.
const SEED_EXTENSIONS: &[&str] = &["csv", "jsonl"];

/// How mistakes of a type's text are reported.
const ENTITY: Subject = Subject {
    noun: "type",
    if_empty: "a type has at least `fields`",
    if_large: "put fields that belong together into a type of their own",
    if_deep: "a type is not that deep",
};

/// The file of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityFile {
    /// Its path in the project, as mistakes name it.
    pub file: String,
    /// The name of the type.
    pub name: String,
    pub text: String,
}

/// All types that a realm has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EntityTypes {
    pub types: TypeSet,
    pub seeds: Vec<SeedFile>,
}

/// A file with the first records of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedFile {
    /// The name of the type, with its namespace.
    pub record_type: String,
    /// Below the project's folder.
    pub path: String,
    /// Where the type names it.
    pub place: Location,
}

/// The types of these files, and those of `common` that have no file of their name here: so one
/// realm has types of its own beside those of all realms, or instead of them.
pub fn read(
    files: &[EntityFile],
    common: &EntityTypes,
    limits: &Limits,
) -> CheckResult<EntityTypes> {
    let mut mistakes = Vec::new();
    let drafts: Vec<Draft> =
        files.iter().filter_map(|file| Draft::read(file, limits, &mut mistakes)).collect();
    let stays =
        |known: &&RecordType| drafts.iter().all(|draft| draft.record_type.name != known.name);
    let kept: Vec<&RecordType> = common.types.all().iter().filter(stays).collect();
    check_names(&drafts, &kept, common, &mut mistakes);
    let own = drafts.iter().map(|draft| &draft.record_type);
    let names: Vec<TypeName> = kept.iter().copied().chain(own).map(TypeName::of).collect();
    let mut types: Vec<RecordType> = kept.iter().map(|known| (*known).clone()).collect();
    let is_kept = |seed: &&SeedFile| kept.iter().any(|known| known.full_name() == seed.record_type);
    let mut seeds: Vec<SeedFile> = common.seeds.iter().filter(is_kept).cloned().collect();
    for draft in &drafts {
        let mut form = Form::new(Reader::new(&draft.origin, limits), &names);
        types.push(form.record_type(&Spot::root(&draft.node), &draft.record_type));
        mistakes.append(&mut form.reader.mistakes);
        seeds.extend(draft.seed(limits, &mut mistakes));
    }
    mistakes.sort_by(|left, right| {
        (&left.file, left.line, left.column).cmp(&(&right.file, right.line, right.column))
    });
    if mistakes.iter().any(Mistake::is_error) {
        return Err(mistakes);
    }
    Ok((EntityTypes { types: TypeSet::new(types), seeds }, mistakes))
}

/// A file of which only the names are read: fields may refer to any type, also to one that comes
/// later.
struct Draft {
    origin: Origin,
    node: Node,
    /// It has no fields yet.
    record_type: RecordType,
}

impl Draft {
    fn read(file: &EntityFile, limits: &Limits, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let origin = Origin { file: Some(file.file.clone()), default_id: None };
        let node = match Node::parse_as(&ENTITY, &file.text, limits) {
            Ok(node) => node,
            Err(found) => {
                mistakes.extend(origin.all_filed(found));
                return None;
            }
        };
        let mut reader = Reader::new(&origin, limits);
        let spot = Spot::root(&node);
        let names = reader.object(&spot, "a type", KEYS).then(|| {
            if !is_identifier(&file.name) {
                let mistake =
                    Mistake::error(format!("`{}` cannot be the name of a type", file.name));
                let hint = format!("call the file otherwise: {}", identifier_hint());
                reader.note(&spot, mistake.hint(hint));
            }
            let namespace = namespace(&mut reader, &spot);
            (namespace, collection(&mut reader, &spot, &file.name))
        });
        mistakes.append(&mut reader.mistakes);
        let (namespace, collection) = names?;
        let record_type = RecordType::new(&namespace, &collection, &file.name, Vec::new());
        Some(Self { origin, node, record_type })
    }

    /// The mistake at what a pointer leads to, or at the type where there is no such thing.
    fn note(&self, pointer: &str, mistake: Mistake) -> Mistake {
        self.origin.filed(mistake.at(self.node.position(pointer), pointer))
    }

    fn seed(&self, limits: &Limits, mistakes: &mut Vec<Mistake>) -> Option<SeedFile> {
        let mut reader = Reader::new(&self.origin, limits);
        let spot = Spot::root(&self.node).field("seed")?;
        let text = reader.text(&spot);
        if let Some(text) = text.filter(|text| !is_seed(text)) {
            let mistake = Mistake::error(format!("`seed` cannot be `{text}`"));
            let hint = "write the path of a `.csv` or `.jsonl` file in the project's folder, such \
                as `data/orders.csv`";
            reader.note(&spot, mistake.hint(hint));
        }
        mistakes.append(&mut reader.mistakes);
        let place = spot.node.begin();
        Some(SeedFile {
            record_type: self.record_type.full_name(),
            path: text?.to_owned(),
            place: Location {
                file: self.origin.file.as_deref().unwrap_or_default().into(),
                line: place.line,
                column: place.column,
            },
        })
    }
}

/// Whether it is a path down into a folder, with slashes on every system.
fn is_seed(path: &str) -> bool {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
    let is_known = extension.is_some_and(|extension| SEED_EXTENSIONS.contains(&extension));
    let is_name = |part: &str| !part.is_empty() && part != "." && part != "..";
    is_known && !path.contains(['\\', ':']) && path.split('/').all(is_name)
}

fn namespace(reader: &mut Reader<'_>, spot: &Spot<'_>) -> String {
    let Some(field) = spot.field("namespace") else { return String::new() };
    let Some(text) = reader.text(&field) else { return String::new() };
    if text.split('.').all(is_identifier) && text != OWN_NAMESPACE {
        return text.to_owned();
    }
    let mistake = Mistake::error(format!("`namespace` cannot be `{text}`"));
    let hint = match text {
        OWN_NAMESPACE => "it is that of built-in types; choose another one".to_owned(),
        _ => format!("write `shop` or `com.example.shop`: {}", identifier_hint()),
    };
    reader.note(&field, mistake.hint(hint));
    String::new()
}

/// Without a collection, the name of the type is that.
fn collection<'n>(reader: &mut Reader<'_>, spot: &Spot<'n>, name: &'n str) -> String {
    let field = spot.field("collection");
    let text = match &field {
        Some(field) => reader.text(field).unwrap_or(name),
        None => name,
    };
    let is_own = OWN_COLLECTIONS.iter().any(|own| same(own, text));
    let hint = if is_own {
        "it is that of a built-in type; choose another one".to_owned()
    } else if field.is_some() && !is_identifier(text) {
        identifier_hint()
    } else {
        return text.to_owned();
    };
    let mistake = Mistake::error(format!("`collection` cannot be `{text}`")).hint(hint);
    reader.note(field.as_ref().unwrap_or(spot), mistake);
    text.to_owned()
}

/// Notes what two types cannot have both. Upper and lower case are the same: stores may not tell
/// them apart.
fn check_names(
    drafts: &[Draft],
    kept: &[&RecordType],
    common: &EntityTypes,
    mistakes: &mut Vec<Mistake>,
) {
    for (index, draft) in drafts.iter().enumerate() {
        let own = &draft.record_type;
        let earlier = drafts.iter().take(index).map(|earlier| &earlier.record_type);
        let others: Vec<&RecordType> = kept.iter().copied().chain(earlier).collect();
        if let Some(other) = others.iter().find(|other| same(&other.name, &own.name)) {
            let what = if other.name == own.name {
                format!("the type `{}` is declared twice", own.name)
            } else {
                format!("the types `{}` and `{}` differ in case only", other.name, own.name)
            };
            mistakes.push(draft.note("", Mistake::error(what).hint("rename one of the two files")));
        } else if let Some(other) =
            others.iter().find(|other| same(&other.collection, &own.collection))
        {
            let what =
                format!("the collection `{}` is that of `{}` too", own.collection, other.name);
            let hint = "give one of the two types another `collection`";
            mistakes.push(draft.note("/collection", Mistake::error(what).hint(hint)));
        }
        let replaced = common.types.all().iter().find(|known| known.name == own.name);
        if let Some(known) = replaced.filter(|known| known.namespace != own.namespace) {
            let what = format!("`{}` is `{}` in other realms", own.name, known.full_name());
            let hint = "give it the same `namespace`, or the file another name";
            mistakes.push(draft.note("/namespace", Mistake::error(what).hint(hint)));
        }
    }
    let count = kept.len() + drafts.len();
    if let Some(last) = drafts.last().filter(|_| count > TYPES_MAX) {
        let mistake = Mistake::error(format!("there are {count} types, more than {TYPES_MAX}"));
        mistakes.push(last.note("", mistake.hint("put what is alike into one type")));
    }
}

fn same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}

/// Whether a text can name a type, a collection or a field.
fn is_identifier(text: &str) -> bool {
    text.len() <= NAME_CHARS_MAX
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn identifier_hint() -> String {
    format!("a name is a letter and up to {} letters, digits and `_`", NAME_CHARS_MAX - 1)
}

#[cfg(test)]
mod tests;
