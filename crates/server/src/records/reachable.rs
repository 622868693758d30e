//! Which other types a call on one type touches.

use query::records::reach::RecordAct;
use query::types::{RecordType, TypeSet};
use std::collections::BTreeSet;

/// The types that records of this one lead to by references, over any number of them; what removes
/// records touches those that refer to them, too. The type itself is left out.
pub(super) fn touched<'t>(
    types: &'t TypeSet,
    root: &RecordType,
    act: RecordAct,
) -> Vec<&'t RecordType> {
    let mut seen = BTreeSet::from([root.full_name()]);
    let mut found = Vec::new();
    let mut open = targets(types, root);
    if act == RecordAct::Remove {
        let refers = |known: &&RecordType| {
            let mut to = targets(types, known).into_iter();
            to.any(|to| to.full_name() == root.full_name())
        };
        open.extend(types.all().iter().filter(refers));
    }
    while let Some(next) = open.pop() {
        if seen.insert(next.full_name()) {
            open.extend(targets(types, next));
            found.push(next);
        }
    }
    found
}

fn targets<'t>(types: &'t TypeSet, from: &RecordType) -> Vec<&'t RecordType> {
    from.references().into_iter().filter_map(|(_, to)| types.find(to).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use query::types::{Field, Kind};

    fn record_type(name: &str, to: &[&str]) -> RecordType {
        let field = |to: &&str| Field::new(&format!("to_{to}"), Kind::Reference((*to).to_owned()));
        RecordType::new("", name, name, to.iter().map(field).collect())
    }

    #[test]
    fn references_are_followed_and_referrers_count_for_what_removes() {
        let types = TypeSet::new(vec![
            record_type("Order", &["Customer", "Order"]),
            record_type("Customer", &["Town"]),
            record_type("Town", &["Customer"]),
            record_type("Note", &["Order"]),
            record_type("Other", &[]),
        ]);
        let names = |root: &str, act: RecordAct| {
            let found = touched(&types, types.find(root).unwrap(), act);
            let mut names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
            names.sort_unstable();
            names.join(" ")
        };
        assert_eq!(names("Order", RecordAct::Read), "Customer Town");
        assert_eq!(names("Order", RecordAct::Remove), "Customer Note Town");
        assert_eq!(names("Town", RecordAct::Save), "Customer");
        assert_eq!(names("Other", RecordAct::Remove), "");
    }
}
