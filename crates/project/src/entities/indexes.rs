//! Lists of fields that are unique or indexed together.

use super::fields::Form;
use kernel::definition::plan::mistake::{Mistake, meant};
use kernel::definition::plan::read::Spot;
use query::types::{Field, Kind, RecordType, built_in_fields};

/// How many lists and marked fields a type can have together.
const INDEXES_MAX: usize = 32;
/// How many fields one of them can have.
const INDEX_FIELDS_MAX: usize = 8;

impl Form<'_> {
    /// The lists of this key; those that the type has already are noted.
    pub(super) fn lists(
        &mut self,
        spot: &Spot<'_>,
        key: &str,
        record_type: &RecordType,
    ) -> Vec<Vec<String>> {
        let Some(field) = spot.field(key) else { return Vec::new() };
        let known = [record_type.all_unique(), record_type.all_indexes()].concat();
        let mut lists: Vec<Vec<String>> = Vec::new();
        for item in self.reader.list(&field).unwrap_or_default() {
            let Some(paths) = self.paths(&item, record_type) else { continue };
            if known.contains(&paths) || lists.contains(&paths) {
                let mistake = Mistake::error("these fields are unique or indexed already");
                self.reader.note(&item, mistake.hint("leave it out"));
            }
            lists.push(paths);
        }
        lists
    }

    /// Notes that there are too many of them, lists and marked fields together.
    pub(super) fn check_count(&mut self, spot: &Spot<'_>, record_type: &RecordType) {
        if record_type.all_unique().len() + record_type.all_indexes().len() > INDEXES_MAX {
            let what = format!("the type has more than {INDEXES_MAX} indexes and unique fields");
            let hint = "each makes every save slower; keep those that queries need";
            self.reader.note(spot, Mistake::error(what).hint(hint));
        }
    }

    fn paths(&mut self, spot: &Spot<'_>, record_type: &RecordType) -> Option<Vec<String>> {
        if spot.node.text().is_some() {
            self.reader.wrong(spot, "a list of fields, such as `[status, placed]`");
            return None;
        }
        let items = self.reader.filled(spot)?;
        if items.len() > INDEX_FIELDS_MAX {
            let mistake =
                Mistake::error(format!("there are more than {INDEX_FIELDS_MAX} fields in a list"));
            self.reader.note(spot, mistake.hint("fewer fields find the record as well"));
            return None;
        }
        let before = self.reader.mistakes.len();
        let mut paths: Vec<String> = Vec::new();
        for item in &items {
            let Some(path) = self.reader.text(item) else { continue };
            let is_field = record_type.field(path).is_some_and(|field| is_indexable(&field.kind));
            if !is_field {
                let mistake = Mistake::error(format!("`{path}` cannot be indexed"));
                self.reader.note(item, mistake.hint(instead(path, record_type)));
            } else if paths.iter().any(|known| known == path) {
                let mistake = Mistake::error(format!("`{path}` is in this list twice"));
                self.reader.note(item, mistake.hint("keep one of the two"));
            } else {
                paths.push(path.to_owned());
            }
        }
        (self.reader.mistakes.len() == before).then_some(paths)
    }
}

fn is_indexable(kind: &Kind) -> bool {
    match kind {
        Kind::String
        | Kind::Integer
        | Kind::Number
        | Kind::Boolean
        | Kind::Date
        | Kind::DateTime
        | Kind::Reference(_) => true,
        Kind::Object(_) | Kind::Array(_) | Kind::Json => false,
    }
}

/// What to write instead of a path that leads to nothing of use.
fn instead(path: &str, record_type: &RecordType) -> String {
    if let Some(field) = record_type.field(path) {
        return format!("it is of type {}; a field that is one value can be indexed", field.kind);
    }
    let mut all = Vec::new();
    add_paths(&record_type.fields, "", &mut all);
    add_paths(built_in_fields(), "", &mut all);
    meant(path, all.iter().map(String::as_str)).unwrap_or_else(|| {
        "name a field, or one in an object by its path, such as `address.city`; what is in an \
         array cannot be indexed"
            .to_owned()
    })
}

fn add_paths(fields: &[Field], within: &str, all: &mut Vec<String>) {
    for field in fields {
        let path = format!("{within}{}", field.name);
        if let Kind::Object(inner) = &field.kind {
            add_paths(inner, &format!("{path}."), all);
        }
        if is_indexable(&field.kind) {
            all.push(path);
        }
    }
}
