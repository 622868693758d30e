//! Names of a query as fields of a type: the declared ones, those of every record, and those of
//! records that are embedded.

use super::HiddenFields;
use crate::checked::{FieldPath, Root, Step};
use crate::fault::{FaultKind, Place, QueryFault};
use crate::names::NameSet;
use crate::tree::{Index, Path, Segment};
use crate::types::{Field, Kind, RecordType, TypeSet, reference_fields};
use kernel::definition::plan::mistake::meant;

pub(super) struct Fields<'t> {
    pub(super) types: &'t TypeSet,
    pub(super) hidden: &'t HiddenFields,
}

/// Where a path has led to.
#[derive(Clone)]
pub(super) struct Spot<'t> {
    inside: Inside<'t>,
    /// None where nothing is declared.
    pub(super) kind: Option<&'t Kind>,
    /// What is hidden in it.
    pub(super) hidden: Option<&'t NameSet>,
}

/// What names may follow.
#[derive(Clone, Copy)]
enum Inside<'t> {
    Record(&'t RecordType),
    /// A record of a type whose fields are not for the caller.
    Closed(&'t str),
    Object(&'t str, &'t [Field]),
    /// Any.
    Open,
    /// None.
    Value(&'t str),
}

/// The realm of a record, which every type has and none declares.
static REALM: Kind = Kind::String;

impl<'t> Fields<'t> {
    /// The beginning of paths in records of this type.
    pub(super) fn record(&self, record_type: &'t RecordType) -> Spot<'t> {
        let hidden = self.hidden.of(record_type);
        let inside = match self.hidden.closes(record_type) {
            true => Inside::Closed(&record_type.name),
            false => Inside::Record(record_type),
        };
        Spot { inside, kind: None, hidden }
    }

    /// The field of a path, and what is known of it. References at these paths are embedded
    /// records.
    pub(super) fn find(
        &self,
        from: &Spot<'t>,
        path: &Path,
        embedded: &[String],
    ) -> Result<(FieldPath, Spot<'t>), QueryFault> {
        let mut spot = from.clone();
        let mut root = Root::Record;
        let mut steps: Vec<Step> = Vec::new();
        for segment in &path.segments {
            if steps.is_empty() && segment.name == "realm" && spot.is_record() {
                root = Root::Realm;
            }
            if let Some(Kind::Reference(to)) = spot.kind.map(Kind::element) {
                let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
                if embedded.contains(&names.join(".")) {
                    spot = self.record(self.declared(to, segment.place)?);
                }
            }
            let name = spot.own_name(segment);
            match self.step(&spot, name, segment)? {
                Some(next) => spot = next,
                None => {
                    root = Root::Hidden;
                    spot = Spot { inside: Inside::Open, kind: None, hidden: None };
                }
            }
            steps.push(Step { name: name.to_owned(), index: segment.index });
        }
        let is_time = matches!(spot.kind.map(Kind::element), Some(Kind::Date | Kind::DateTime));
        Ok((FieldPath { root, steps, is_time }, spot))
    }

    /// The type that a path refers to.
    pub(super) fn target(
        &self,
        spot: &Spot<'t>,
        path: &Path,
        place: Place,
    ) -> Result<&'t RecordType, QueryFault> {
        match spot.kind.map(Kind::element) {
            Some(Kind::Reference(to)) => self.declared(to, place),
            None | Some(Kind::Json) => {
                let message = format!("nothing says to which records `{path}` refers");
                Err(QueryFault::at(place, message).kind(FaultKind::UnresolvedCollection))
            }
            Some(_) => Err(QueryFault::at(place, format!("`{path}` is not a reference"))),
        }
    }

    fn declared(&self, to: &str, place: Place) -> Result<&'t RecordType, QueryFault> {
        self.types.find(to).map_err(|error| {
            QueryFault::at(place, format!("the reference leads nowhere: {error}"))
                .kind(FaultKind::UnresolvedCollection)
        })
    }

    /// What the field of this name is; none if it is like one that does not exist.
    fn step(
        &self,
        spot: &Spot<'t>,
        name: &str,
        segment: &Segment,
    ) -> Result<Option<Spot<'t>>, QueryFault> {
        let hidden = spot.hidden.and_then(|hidden| hidden.within(name));
        let is_hidden = hidden.is_some_and(NameSet::is_whole);
        let field = match spot.inside {
            _ if is_hidden => None,
            Inside::Record(_) if name == "realm" => {
                return Ok(Some(Spot {
                    inside: Inside::Value("realm"),
                    kind: Some(&REALM),
                    hidden,
                }));
            }
            Inside::Record(record_type) => {
                record_type.all_fields().find(|field| field.name == name)
            }
            Inside::Object(_, fields) => fields.iter().find(|field| field.name == name),
            Inside::Open | Inside::Value(_) | Inside::Closed(_) => None,
        };
        if let Some(field) = field {
            if matches!(segment.index, Index::At(_)) && !is_list(&field.kind) {
                let message = format!("`{name}` is not a list");
                return Err(QueryFault::at(segment.place, message));
            }
            let kind = Some(&field.kind);
            return Ok(Some(Spot { inside: inside(field), kind, hidden }));
        }
        match spot.inside {
            Inside::Open if is_hidden => Ok(None),
            Inside::Open => Ok(Some(Spot { inside: Inside::Open, kind: None, hidden })),
            Inside::Record(record_type) if record_type.additional_fields => {
                let open = Spot { inside: Inside::Open, kind: None, hidden };
                Ok((!is_hidden).then_some(open))
            }
            Inside::Record(record_type) => {
                let names = record_type.all_fields().map(|field| field.name.as_str());
                Err(unknown(&record_type.name, names, spot, segment))
            }
            Inside::Object(owner, fields) => {
                let names = fields.iter().map(|field| field.name.as_str());
                Err(unknown(owner, names, spot, segment))
            }
            Inside::Closed(owner) => {
                let message = format!("`{owner}` has no field `{name}` for this caller");
                Err(QueryFault::at(segment.place, message))
            }
            Inside::Value(owner) => {
                Err(QueryFault::at(segment.place, format!("`{owner}` has no fields inside")))
            }
        }
    }
}

impl Spot<'_> {
    fn is_record(&self) -> bool {
        matches!(self.inside, Inside::Record(_))
    }

    /// The name that a record has for what is written: `_id` is its `id`.
    fn own_name<'n>(&self, segment: &'n Segment) -> &'n str {
        if self.is_record() && segment.name == "_id" { "id" } else { &segment.name }
    }
}

fn is_list(kind: &Kind) -> bool {
    matches!(kind, Kind::Array(_) | Kind::Json)
}

fn inside(field: &Field) -> Inside<'_> {
    match field.kind.element() {
        Kind::Object(fields) => Inside::Object(&field.name, fields),
        Kind::Reference(_) => Inside::Object(&field.name, reference_fields()),
        Kind::Json => Inside::Open,
        Kind::String
        | Kind::Integer
        | Kind::Number
        | Kind::Boolean
        | Kind::Date
        | Kind::DateTime
        | Kind::Array(_) => Inside::Value(&field.name),
    }
}

/// Hidden names are no hints.
fn unknown<'n>(
    owner: &str,
    names: impl Iterator<Item = &'n str>,
    spot: &Spot<'_>,
    segment: &Segment,
) -> QueryFault {
    let hidden = |name: &str| {
        spot.hidden.and_then(|hidden| hidden.within(name)).is_some_and(NameSet::is_whole)
    };
    let names: Vec<&str> = names.filter(|name| !hidden(name)).collect();
    let hint = meant(&segment.name, names.iter().copied())
        .unwrap_or_else(|| format!("its fields are {}", names.join(", ")));
    QueryFault::at(segment.place, format!("`{owner}` has no field `{}`", segment.name)).hint(hint)
}
