//! Changes of stored definitions. Policy knows who stored a definition, so its answer holds only as
//! long as that is so: where someone else stored the definition before the write, policy is asked
//! again. The store compares in the transaction of the write.

use crate::handles::Catalog;
use crate::refusal::{Refusal, Result};
use kernel::contracts::policy::Resource;
use kernel::contracts::{Definition, Precondition, Read, StoreError, StoredBy};
use kernel::tool::call::Caller;
use kernel::values::caller::Act;

impl Catalog<'_> {
    /// Stores the next version of a definition, if what is there is as `against` says. Its owner is
    /// the one that policy was asked about, if it was asked.
    pub async fn store(
        self,
        caller: &Caller,
        definition: Definition,
        against: Precondition,
    ) -> Result<Definition> {
        let definitions = &self.shared.definitions;
        let realm = &caller.realm;
        let put = |against: Precondition| definitions.put(realm, definition.clone(), against);
        self.changed(caller, &definition.kind, &definition.name, against, put).await
    }

    /// Removes a definition; whether it was there. The owner is the one that policy was asked
    /// about, if it was asked.
    pub async fn discard(
        self,
        caller: &Caller,
        kind: &str,
        name: &str,
        owner: Option<StoredBy>,
    ) -> Result<bool> {
        let definitions = &self.shared.definitions;
        let realm = &caller.realm;
        let delete = |against: Precondition| definitions.delete(realm, kind, name, against);
        self.changed(caller, kind, name, Precondition { owner, version: None }, delete).await
    }

    /// Refuses to change a stored definition that this caller may not change. Who stored it, as
    /// policy knows it; none where policy need not be asked.
    pub(crate) async fn may_define(
        self,
        caller: &Caller,
        kind: &str,
        name: &str,
    ) -> Result<Option<StoredBy>> {
        let gate = &self.shared.gate;
        let act = Act::Define;
        if gate.is_free(caller, act) {
            return Ok(None);
        }
        let stored = self.stored_by(caller, kind, name).await?;
        let defined_by = stored.0.as_deref();
        gate.permit(caller, act, Resource::Definition { kind, name, defined_by })?;
        Ok(Some(stored))
    }

    async fn stored_by(self, caller: &Caller, kind: &str, name: &str) -> Result<StoredBy> {
        let stored = self.shared.definitions.get(&caller.realm, kind, name).await?;
        Ok(StoredBy(stored.and_then(|stored| stored.by)))
    }

    /// Makes a change, and asks policy again as often as someone else was faster.
    async fn changed<'a, T>(
        self,
        caller: &Caller,
        kind: &str,
        name: &str,
        mut against: Precondition,
        change: impl Fn(Precondition) -> Read<'a, T>,
    ) -> Result<T> {
        loop {
            let error = match change(against.clone()).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            // It has another version than the client wants, or another owner than was judged.
            let is_conflict = matches!(error, StoreError::Conflict(_));
            let is_as_judged = match against.owner.as_ref().filter(|_| is_conflict) {
                Some(judged) => self.stored_by(caller, kind, name).await? == *judged,
                None => true,
            };
            if is_as_judged {
                return Err(Refusal::not_stored(kind, name, error));
            }
            against.owner = self.may_define(caller, kind, name).await?;
        }
    }
}
