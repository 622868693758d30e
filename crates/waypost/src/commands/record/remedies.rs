//! What moves stored records out of the way of their types: the options of a migration that help,
//! or what to change in the type or in the records.

use kernel::definition::plan::mistake::did_you_mean;
use query::records::type_change::Obstacle;
use query::types::{Change, RealmTypes, RecordType, TypeSet};

/// What stands for a name that only the user knows.
const NEW: &str = "NEW";

/// What helps against one of these obstacles.
pub(super) fn remedy(obstacle: &Obstacle, all: &[Obstacle], types: &RealmTypes) -> String {
    let name = &obstacle.record_type;
    let declared = match &obstacle.realm {
        Some(realm) => types.of(realm),
        None => &types.common,
    };
    match &obstacle.change {
        Change::TypeGone => {
            let to = alike_type(name, declared).unwrap_or_else(|| NEW.to_owned());
            format!(
                "`--rename {name}={to}` keeps them as another type, `--drop {name}` removes them"
            )
        }
        Change::FieldGone(field) => {
            let to = wanted(obstacle, all).or_else(|| alike_field(name, field, declared));
            let to = to.unwrap_or_else(|| NEW.to_owned());
            format!(
                "`--rename {name}.{field}={to}` keeps the values, `--drop {name}.{field}` removes \
                 them"
            )
        }
        Change::NewRequiredField(field) => match gone(obstacle, all) {
            Some(from) => format!("`--rename {name}.{from}={field}` takes the values of `{from}`"),
            None => "give the field a `default`, or let it be optional".to_owned(),
        },
        Change::DeclaredField(field) | Change::NewKind { field, .. } | Change::Narrowed(field) => {
            let how = "change these records while the type is as before";
            format!("{how}, or `--drop {name}.{field}` removes the values")
        }
        Change::Required(_) => {
            "give these records a value while the type is as before, or let the field be optional"
                .to_owned()
        }
        Change::NewUnique(_) => {
            "change the records that are alike while the type is as before".to_owned()
        }
        Change::NewCollection { before, .. } => format!("write `collection: {before}` again"),
        Change::ClosedToOthers => {
            "declare the fields that these records have, or set `additionalFields: true`".to_owned()
        }
        Change::NewType
        | Change::NewField(_)
        | Change::Optional(_)
        | Change::Widened(_)
        | Change::NewDefault(_)
        | Change::UniqueGone(_)
        | Change::NewIndex(_)
        | Change::IndexGone(_)
        | Change::OpenToOthers => "`waypost config check` checks the types".to_owned(),
    }
}

/// The changes of the same type.
fn beside<'o>(obstacle: &'o Obstacle, all: &'o [Obstacle]) -> impl Iterator<Item = &'o Change> {
    let is_same = |other: &&Obstacle| {
        other.record_type == obstacle.record_type && other.realm == obstacle.realm
    };
    all.iter().filter(is_same).map(|other| &other.change)
}

/// The one field that records of the same type lack.
fn wanted(obstacle: &Obstacle, all: &[Obstacle]) -> Option<String> {
    only(beside(obstacle, all).filter_map(|change| {
        let Change::NewRequiredField(field) = change else { return None };
        Some(field)
    }))
}

/// The one field of the same type that is gone.
fn gone(obstacle: &Obstacle, all: &[Obstacle]) -> Option<String> {
    only(beside(obstacle, all).filter_map(|change| {
        let Change::FieldGone(field) = change else { return None };
        Some(field)
    }))
}

fn only<'f>(mut fields: impl Iterator<Item = &'f String>) -> Option<String> {
    let first = fields.next()?;
    fields.next().is_none().then(|| first.clone())
}

fn alike_type(name: &str, declared: &TypeSet) -> Option<String> {
    let names: Vec<String> = declared.all().iter().map(RecordType::full_name).collect();
    did_you_mean(name, names.iter().map(String::as_str)).map(str::to_owned)
}

fn alike_field(record_type: &str, field: &str, declared: &TypeSet) -> Option<String> {
    let known = declared.find(record_type).ok()?;
    let names = known.fields.iter().map(|known| known.name.as_str());
    did_you_mean(field, names).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use query::types::{Field, Kind};

    fn obstacle(change: Change) -> Obstacle {
        Obstacle { realm: None, record_type: "shop.Order".to_owned(), change, records: 2 }
    }

    fn types() -> RealmTypes {
        let fields = vec![Field::new("status", Kind::String)];
        RealmTypes::common(TypeSet::new(vec![RecordType::new("shop", "orders", "Order", fields)]))
    }

    #[test]
    fn a_gone_field_is_renamed_to_the_one_that_is_wanted() {
        let all = [
            obstacle(Change::FieldGone("sum".to_owned())),
            obstacle(Change::NewRequiredField("total".to_owned())),
        ];
        let told = remedy(&all[0], &all, &types());
        assert!(told.contains("`--rename shop.Order.sum=total`"), "{told}");
        assert!(told.contains("`--drop shop.Order.sum`"), "{told}");
        let told = remedy(&all[1], &all, &types());
        assert!(told.contains("`--rename shop.Order.sum=total`"), "{told}");
        let told = remedy(&all[1], &all[1..], &types());
        assert!(told.contains("`default`"), "{told}");
    }

    #[test]
    fn names_that_are_alike_are_offered() {
        let told = |change| remedy(&obstacle(change), &[], &types());
        let field = told(Change::FieldGone("statsu".to_owned()));
        assert!(field.contains("`--rename shop.Order.statsu=status`"), "{field}");
        let unknown = told(Change::FieldGone("x".to_owned()));
        assert!(unknown.contains("`--rename shop.Order.x=NEW`"), "{unknown}");
        let gone = Obstacle { record_type: "Orders".to_owned(), ..obstacle(Change::TypeGone) };
        let gone = remedy(&gone, &[], &types());
        assert!(gone.contains("`--drop Orders`"), "{gone}");
    }
}
