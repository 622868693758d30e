//! Claims of subjects in the model store: a map by subject.

use super::ModelStore;
use kernel::contracts::Read;
use kernel::contracts::identity::claims::{Claims, SubjectClaims};
use std::sync::Arc;

impl Claims for ModelStore {
    fn all_claims(&self) -> Read<'_, Vec<SubjectClaims>> {
        Box::pin(self.read(|tables| Ok(tables.claims.values().cloned().collect::<Vec<_>>())))
    }

    fn put_claims<'a>(&'a self, claims: &'a SubjectClaims) -> Read<'a, ()> {
        Box::pin(self.write(move |tables| {
            tables.claims.insert(claims.subject.clone(), claims.clone());
            Ok(())
        }))
    }

    fn remove_claims<'a>(&'a self, subjects: &'a [Arc<str>]) -> Read<'a, ()> {
        Box::pin(self.write(move |tables| {
            for subject in subjects {
                tables.claims.remove(subject);
            }
            Ok(())
        }))
    }
}
