//! The steps of a migration as they are typed: `Order.sum=total`, `Order=Invoice`, `Order.sum`,
//! `Order`. Types are known by their full names, and by their short ones where these are unique.

use crate::exit::{Failure, Result};
use kernel::definition::plan::mistake::meant;
use query::records::type_change::MigrationStep;
use std::collections::BTreeSet;

/// The full names of the types that are declared or have records.
pub(super) type TypeNames = BTreeSet<String>;

/// What a user named.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    /// A type, by its full name.
    Type(String),
    Field {
        record_type: String,
        path: String,
    },
}

/// Reads `--rename`.
pub(super) fn rename(text: &str, names: &TypeNames) -> Result<MigrationStep> {
    let parts = text.split_once('=').map(|(from, to)| (from.trim(), to.trim()));
    let parts = parts.filter(|(from, to)| !from.is_empty() && !to.is_empty());
    let Some((from, to)) = parts else {
        return Err(Failure::usage(format!("`--rename {text}` does not say what becomes of what"))
            .hint("write `--rename Order.sum=total` or `--rename Order=Invoice`"));
    };
    Ok(match named(from, names)? {
        Named::Type(from) => match named(to, names)? {
            Named::Type(to) => MigrationStep::RenameType { from, to },
            Named::Field { .. } => {
                let what = format!("`{to}` is a field, and `{from}` a type");
                return Err(Failure::usage(what).hint("name a type of `entities/`"));
            }
        },
        Named::Field { record_type, path } => {
            MigrationStep::RenameField { record_type, from: path, to: to.to_owned() }
        }
    })
}

/// Reads `--drop`.
pub(super) fn drop_of(text: &str, names: &TypeNames) -> Result<MigrationStep> {
    Ok(match named(text.trim(), names)? {
        Named::Type(record_type) => MigrationStep::DropType { record_type },
        Named::Field { record_type, path } => MigrationStep::DropField { record_type, field: path },
    })
}

/// A step as it is typed.
pub(super) fn typed(step: &MigrationStep) -> String {
    match step {
        MigrationStep::RenameType { from, to } => format!("--rename {from}={to}"),
        MigrationStep::RenameField { record_type, from, to } => {
            format!("--rename {record_type}.{from}={to}")
        }
        MigrationStep::DropType { record_type } => format!("--drop {record_type}"),
        MigrationStep::DropField { record_type, field } => format!("--drop {record_type}.{field}"),
    }
}

/// The type that a text names, or the field of the type that its beginning names.
fn named(text: &str, names: &TypeNames) -> Result<Named> {
    let mut ends: Vec<usize> = text.match_indices('.').map(|(end, _)| end).collect();
    ends.push(text.len());
    for end in ends.into_iter().rev() {
        let (name, rest) = text.split_at(end);
        let Some(full) = full_name(name, names)? else { continue };
        return Ok(match rest.strip_prefix('.') {
            None => Named::Type(full),
            Some(path) => Named::Field { record_type: full, path: path.to_owned() },
        });
    }
    let first = text.split('.').next().unwrap_or_default();
    let all = || {
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        format!("the types are {}", quoted.join(", "))
    };
    let near = meant(first, names.iter().map(|name| short(name)));
    let what = format!("`{text}` names no type that is declared or has records that do not fit");
    Err(Failure::usage(what).hint(near.unwrap_or_else(all)))
}

fn full_name(name: &str, names: &TypeNames) -> Result<Option<String>> {
    if names.contains(name) {
        return Ok(Some(name.to_owned()));
    }
    let found: Vec<&String> = names.iter().filter(|known| short(known) == name).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some((*one).clone())),
        several => {
            let several: Vec<String> = several.iter().map(|name| format!("`{name}`")).collect();
            let what = format!("`{name}` may be {}", several.join(" or "));
            Err(Failure::usage(what).hint("write the type with its namespace"))
        }
    }
}

/// A name without its namespace.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> TypeNames {
        ["shop.Order", "Town", "a.Port", "b.Port"].map(str::to_owned).into()
    }

    fn renamed(text: &str) -> Result<String, String> {
        rename(text, &names()).map(|step| typed(&step)).map_err(|failure| failure.to_string())
    }

    #[test]
    fn types_and_fields_are_told_apart_by_the_types_that_there_are() {
        let expected = "--rename shop.Order.sum=total".to_owned();
        assert_eq!(renamed("Order.sum=total"), Ok(expected.clone()));
        assert_eq!(renamed("shop.Order.sum = total"), Ok(expected));
        let inner = "--rename Town.address.zip=address.code".to_owned();
        assert_eq!(renamed("Town.address.zip=address.code"), Ok(inner));
        assert_eq!(renamed("Town=Order"), Ok("--rename Town=shop.Order".to_owned()));
        let dropped = |text: &str| typed(&drop_of(text, &names()).unwrap());
        assert_eq!(dropped("Order"), "--drop shop.Order");
        assert_eq!(dropped("b.Port.name"), "--drop b.Port.name");
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        let ambiguous = renamed("Port.x=y").unwrap_err();
        assert!(ambiguous.contains("`a.Port` or `b.Port`"), "{ambiguous}");
        assert!(renamed("Ordre.x=y").unwrap_err().contains("did you mean `Order`?"));
        assert!(renamed("Order.x").unwrap_err().contains("becomes of what"));
        assert!(renamed("Town=Order.x").unwrap_err().contains("is a field"));
    }
}
