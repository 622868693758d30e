//! What differs between two sets of types, and which of it could lose or break the data of records
//! that are stored. Whether there are such records is for the store to count.

use super::{Field, Kind, RecordType, TypeSet, joined};
use std::fmt;

/// All that differs in one type.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeChanges {
    /// Its name with its namespace: a type that gets another is gone, and a new one is there.
    pub record_type: String,
    pub changes: Vec<Change>,
}

/// One difference. Fields are named by their paths: `address.city`, and `lines.sku` for what is in
/// the elements of an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    NewType,
    TypeGone,
    NewCollection {
        before: String,
        after: String,
    },
    NewField(String),
    NewRequiredField(String),
    /// A new field of a type that took fields which it did not declare: records may have it, with
    /// values of any kind.
    DeclaredField(String),
    FieldGone(String),
    NewKind {
        field: String,
        before: Kind,
        after: Kind,
    },
    Required(String),
    Optional(String),
    /// A smaller enum, closer bounds, or another pattern.
    Narrowed(String),
    Widened(String),
    NewDefault(String),
    NewUnique(Vec<String>),
    UniqueGone(Vec<String>),
    NewIndex(Vec<String>),
    IndexGone(Vec<String>),
    ClosedToOthers,
    OpenToOthers,
}

impl TypeChanges {
    /// Whether no record of the type can lose anything or cease to fit it.
    pub fn are_additive(&self) -> bool {
        self.changes.iter().all(Change::is_additive)
    }
}

impl Change {
    /// Whether every record that fitted before fits as it is.
    pub fn is_additive(&self) -> bool {
        match self {
            Change::NewType
            | Change::NewField(_)
            | Change::Optional(_)
            | Change::Widened(_)
            | Change::NewDefault(_)
            | Change::UniqueGone(_)
            | Change::NewIndex(_)
            | Change::IndexGone(_)
            | Change::OpenToOthers => true,
            Change::TypeGone
            | Change::NewCollection { .. }
            | Change::NewRequiredField(_)
            | Change::DeclaredField(_)
            | Change::FieldGone(_)
            | Change::NewKind { .. }
            | Change::Required(_)
            | Change::Narrowed(_)
            | Change::NewUnique(_)
            | Change::ClosedToOthers => false,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::NewType => f.write_str("the type is new"),
            Change::TypeGone => f.write_str("the type is gone"),
            Change::NewCollection { before, after } => {
                write!(f, "the collection was `{before}` and is `{after}`")
            }
            Change::NewField(field) => write!(f, "field `{field}` is new"),
            Change::NewRequiredField(field) => write!(f, "field `{field}` is new and required"),
            Change::DeclaredField(field) => {
                write!(f, "field `{field}` is declared now, and records may have it already")
            }
            Change::FieldGone(field) => write!(f, "field `{field}` is gone"),
            Change::NewKind { field, before, after } => {
                write!(f, "field `{field}` was {before} and is {after}")
            }
            Change::Required(field) => write!(f, "field `{field}` is required now"),
            Change::Optional(field) => write!(f, "field `{field}` is not required any more"),
            Change::Narrowed(field) => write!(f, "field `{field}` takes fewer values than before"),
            Change::Widened(field) => write!(f, "field `{field}` takes more values than before"),
            Change::NewDefault(field) => write!(f, "field `{field}` has another default"),
            Change::NewUnique(paths) => write!(f, "{} must be unique now", listed(paths)),
            Change::UniqueGone(paths) => write!(f, "{} need not be unique any more", listed(paths)),
            Change::NewIndex(paths) => write!(f, "there is an index of {}", listed(paths)),
            Change::IndexGone(paths) => {
                write!(f, "there is no index of {} any more", listed(paths))
            }
            Change::ClosedToOthers => f.write_str("fields that are not declared are refused now"),
            Change::OpenToOthers => f.write_str("fields that are not declared are taken now"),
        }
    }
}

fn listed(paths: &[String]) -> String {
    let quoted: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    quoted.join(", ")
}

/// What differs, type by type, in the order of the new types and then of those that are gone. A
/// type that is the same is left out.
pub fn changes(before: &TypeSet, after: &TypeSet) -> Vec<TypeChanges> {
    let mut all = Vec::new();
    for new in after.all() {
        let name = new.full_name();
        let changes = match before.all().iter().find(|old| old.full_name() == name) {
            Some(old) => of_type(old, new),
            None => vec![Change::NewType],
        };
        if !changes.is_empty() {
            all.push(TypeChanges { record_type: name, changes });
        }
    }
    for old in before.all() {
        let name = old.full_name();
        if after.all().iter().all(|new| new.full_name() != name) {
            all.push(TypeChanges { record_type: name, changes: vec![Change::TypeGone] });
        }
    }
    all
}

fn of_type(before: &RecordType, after: &RecordType) -> Vec<Change> {
    let mut changes = Vec::new();
    if before.collection != after.collection {
        changes.push(Change::NewCollection {
            before: before.collection.clone(),
            after: after.collection.clone(),
        });
    }
    let new = if before.additional_fields { Change::DeclaredField } else { Change::NewField };
    of_fields(&before.fields, &after.fields, "", new, &mut changes);
    match (before.additional_fields, after.additional_fields) {
        (true, false) => changes.push(Change::ClosedToOthers),
        (false, true) => changes.push(Change::OpenToOthers),
        (true, true) | (false, false) => {}
    }
    let unique_before = before.all_unique();
    let unique_after = after.all_unique();
    changes.extend(missing(&unique_after, &unique_before).map(Change::NewUnique));
    changes.extend(missing(&unique_before, &unique_after).map(Change::UniqueGone));
    let indexes_before = before.all_indexes();
    let indexes_after = after.all_indexes();
    changes.extend(missing(&indexes_after, &indexes_before).map(Change::NewIndex));
    changes.extend(missing(&indexes_before, &indexes_after).map(Change::IndexGone));
    changes
}

/// Those that the others lack.
fn missing(these: &[Vec<String>], others: &[Vec<String>]) -> impl Iterator<Item = Vec<String>> {
    these.iter().filter(|paths| !others.contains(*paths)).cloned()
}

/// `new` is what a new field is that need not be there.
fn of_fields(
    before: &[Field],
    after: &[Field],
    within: &str,
    new: fn(String) -> Change,
    changes: &mut Vec<Change>,
) {
    for field in after {
        let path = joined(within, &field.name);
        match before.iter().find(|old| old.name == field.name) {
            Some(old) => of_field(old, field, path, changes),
            None if field.required => changes.push(Change::NewRequiredField(path)),
            None => changes.push(new(path)),
        }
    }
    let gone = before.iter().filter(|old| after.iter().all(|field| field.name != old.name));
    changes.extend(gone.map(|old| Change::FieldGone(joined(within, &old.name))));
}

fn of_field(before: &Field, after: &Field, path: String, changes: &mut Vec<Change>) {
    if let Some((old, new)) = inner(&before.kind, &after.kind) {
        of_fields(old, new, &path, Change::NewField, changes);
    } else if before.kind != after.kind {
        changes.push(Change::NewKind {
            field: path.clone(),
            before: before.kind.clone(),
            after: after.kind.clone(),
        });
    }
    match (before.required, after.required) {
        (false, true) => changes.push(Change::Required(path.clone())),
        (true, false) => changes.push(Change::Optional(path.clone())),
        (true, true) | (false, false) => {}
    }
    if narrows(before, after) {
        changes.push(Change::Narrowed(path.clone()));
    } else if narrows(after, before) {
        changes.push(Change::Widened(path.clone()));
    }
    if before.default != after.default {
        changes.push(Change::NewDefault(path));
    }
}

/// The fields of both, if both are objects, or arrays of them.
fn inner<'f>(before: &'f Kind, after: &'f Kind) -> Option<(&'f [Field], &'f [Field])> {
    match (before, after) {
        (Kind::Object(before), Kind::Object(after)) => Some((before, after)),
        (Kind::Array(before), Kind::Array(after)) => inner(before, after),
        _ => None,
    }
}

/// Whether a value that fitted the one field may not fit the other.
fn narrows(before: &Field, after: &Field) -> bool {
    let is_raised = |least: f64| before.bounds.min.is_none_or(|before| least > before);
    let is_lowered = |most: f64| before.bounds.max.is_none_or(|before| most < before);
    let is_gone = |choice| !after.choices.contains(choice);
    let has_fewer_choices = !after.choices.is_empty()
        && (before.choices.is_empty() || before.choices.iter().any(is_gone));
    after.bounds.min.is_some_and(is_raised)
        || after.bounds.max.is_some_and(is_lowered)
        || has_fewer_choices
        || (after.pattern.is_some() && after.pattern != before.pattern)
}

#[cfg(test)]
mod tests {
    use super::super::{Bounds, Pattern};
    use super::*;
    use serde_json::json;

    fn of(fields: Vec<Field>) -> RecordType {
        RecordType::new("shop", "orders", "Order", fields)
    }

    /// The additive changes and the others, as texts.
    fn compared(before: RecordType, after: RecordType) -> (Vec<String>, Vec<String>) {
        let all = changes(&TypeSet::new(vec![before]), &TypeSet::new(vec![after]));
        assert!(all.iter().all(|of_type| of_type.record_type == "shop.Order"), "{all:?}");
        let (additive, others): (Vec<Change>, Vec<Change>) =
            all.into_iter().flat_map(|of_type| of_type.changes).partition(Change::is_additive);
        let texts = |changes: Vec<Change>| changes.iter().map(Change::to_string).collect();
        (texts(additive), texts(others))
    }

    fn additive(before: RecordType, after: RecordType, wanted: &[&str]) {
        let (additive, others) = compared(before, after);
        assert_eq!(additive, wanted);
        assert_eq!(others, [""; 0]);
    }

    fn breaking(before: RecordType, after: RecordType, wanted: &[&str]) {
        let (additive, others) = compared(before, after);
        assert_eq!(others, wanted);
        assert_eq!(additive, [""; 0]);
    }

    fn text(name: &str) -> Field {
        Field::new(name, Kind::String)
    }

    fn required(name: &str) -> Field {
        Field { required: true, ..text(name) }
    }

    fn paths(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_type_with_another_namespace_is_another_type() {
        let before = TypeSet::new(vec![of(Vec::new())]);
        let farm = RecordType::new("farm", "orders", "Order", Vec::new());
        let found = changes(&before, &TypeSet::new(vec![farm]));
        let all: Vec<(&str, &[Change])> =
            found.iter().map(|one| (one.record_type.as_str(), one.changes.as_slice())).collect();
        assert_eq!(
            all,
            [("farm.Order", &[Change::NewType][..]), ("shop.Order", &[Change::TypeGone][..])]
        );
        assert!(found[0].are_additive() && !found[1].are_additive());
        assert!(changes(&before, &before).is_empty());
        let moved = RecordType { collection: "o".to_owned(), ..of(Vec::new()) };
        breaking(of(Vec::new()), moved, &["the collection was `orders` and is `o`"]);
    }

    #[test]
    fn new_fields_are_additive_unless_records_lack_them_or_may_have_them() {
        let none = || of(Vec::new());
        additive(none(), of(vec![text("a")]), &["field `a` is new"]);
        breaking(none(), of(vec![required("a")]), &["field `a` is new and required"]);
        breaking(of(vec![text("a")]), none(), &["field `a` is gone"]);
        let open = |fields| RecordType { additional_fields: true, ..of(fields) };
        let declared = "field `a` is declared now, and records may have it already";
        breaking(open(Vec::new()), open(vec![text("a")]), &[declared]);
        additive(none(), open(Vec::new()), &["fields that are not declared are taken now"]);
        breaking(open(Vec::new()), none(), &["fields that are not declared are refused now"]);
    }

    #[test]
    fn fields_in_objects_and_arrays_are_compared_one_by_one() {
        let lines = |fields| of(vec![Field::new("lines", Kind::array(Kind::Object(fields)))]);
        additive(lines(vec![]), lines(vec![text("a")]), &["field `lines.a` is new"]);
        breaking(lines(vec![text("a")]), lines(vec![]), &["field `lines.a` is gone"]);
        let single = of(vec![Field::new("lines", Kind::Object(Vec::new()))]);
        breaking(lines(vec![]), single, &["field `lines` was array of object and is object"]);
    }

    #[test]
    fn what_a_field_takes_may_grow_and_not_shrink() {
        let one = |field: Field| of(vec![field]);
        let fewer = ["field `a` takes fewer values than before"];
        let more = ["field `a` takes more values than before"];
        let chosen = |choices: &[&str]| {
            let choices = choices.iter().map(|choice| json!(choice)).collect();
            one(Field { choices, ..text("a") })
        };
        breaking(chosen(&[]), chosen(&["x"]), &fewer);
        breaking(chosen(&["x", "y"]), chosen(&["y", "z"]), &fewer);
        additive(chosen(&["x"]), chosen(&["y", "x"]), &more);
        additive(chosen(&["x"]), chosen(&[]), &more);
        let bounded = |min, max| one(Field { bounds: Bounds { min, max }, ..text("a") });
        breaking(bounded(None, None), bounded(Some(1.0), None), &fewer);
        breaking(bounded(Some(1.0), Some(5.0)), bounded(Some(0.0), Some(4.0)), &fewer);
        additive(bounded(Some(1.0), Some(5.0)), bounded(Some(1.0), Some(6.0)), &more);
        additive(bounded(Some(1.0), None), bounded(None, None), &more);
        let like = |text_of: &str| one(Field { pattern: Pattern::new(text_of).ok(), ..text("a") });
        breaking(like("x"), like("y"), &fewer);
        additive(like("x"), one(text("a")), &more);
        additive(one(required("a")), one(text("a")), &["field `a` is not required any more"]);
        breaking(one(text("a")), one(required("a")), &["field `a` is required now"]);
        let default = Field { default: Some(json!("x")), ..text("a") };
        additive(one(text("a")), one(default), &["field `a` has another default"]);
        let reference = |to: &str| one(Field::new("a", Kind::Reference(to.to_owned())));
        breaking(
            reference("City"),
            reference("Town"),
            &["field `a` was reference to City and is reference to Town"],
        );
    }

    #[test]
    fn indexes_come_and_go_and_unique_fields_may_be_violated() {
        let fields = || vec![text("a"), text("b")];
        let listed = |unique: &[&str], indexes: &[&str]| {
            let lists = |names: &[&str]| {
                if names.is_empty() { Vec::new() } else { vec![paths(names)] }
            };
            RecordType { unique: lists(unique), indexes: lists(indexes), ..of(fields()) }
        };
        additive(listed(&[], &[]), listed(&[], &["a", "b"]), &["there is an index of `a`, `b`"]);
        additive(listed(&[], &["a"]), listed(&[], &[]), &["there is no index of `a` any more"]);
        breaking(listed(&[], &[]), listed(&["a", "b"], &[]), &["`a`, `b` must be unique now"]);
        additive(listed(&["a"], &[]), listed(&[], &[]), &["`a` need not be unique any more"]);
        let marked = of(vec![Field { unique: true, ..text("a") }, text("b")]);
        additive(listed(&["a"], &[]), marked, &[]);
    }
}
