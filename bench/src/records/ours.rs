//! The product's store of records in this process, on the folder that the server filled.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use engine::system::clock::{SystemClock, TokioSpawn};
use kernel::limits::Limits;
use query::check::{Scope, check};
use query::checked::CheckedQuery;
use query::parser::parse;
use query::records::requests::{Access, Count, Find, Found, Page, RecordLimits};
use query::records::scope::CallerScope;
use query::records::type_change::{RecordStore, TypeChange};
use query::types::{Field, Kind, RealmTypes, RecordType, TypeSet};
use stores::{OpenStore, StoreLocation};

use super::wire::{PAGE, REALM, TYPE};
use crate::Result;

/// The store, and as whom it is asked: one who may see everything.
pub struct Ours {
    records: Arc<dyn RecordStore>,
    access: Access,
    opened: OpenStore,
}

impl Ours {
    /// Opens the folder, which no server may use.
    pub async fn open(data: &Path) -> Result<Self> {
        let parts = stores::Parts {
            spawn: Arc::new(TokioSpawn::new(tokio::runtime::Handle::current())),
            clock: Arc::new(SystemClock),
            limits: Arc::new(Limits::default()),
            fatal: Arc::new(|why| {
                eprintln!("bench: {why}");
                std::process::exit(1);
            }),
            vfs: None,
        };
        let opened = stores::open(&StoreLocation::Folder(data.to_owned()), parts)?;
        let records = opened.records.open(RecordLimits::default())?;
        let types = TypeSet::new(vec![declared()]);
        let change = TypeChange {
            types: Arc::new(RealmTypes::common(types.clone())),
            steps: Vec::new(),
            is_dry_run: false,
        };
        records.change_types(change).await?;
        let scope = Arc::new(CallerScope::unlimited(&types));
        let access = Access { realm: REALM.into(), types: Arc::new(types), scope };
        Ok(Self { records, access, opened })
    }

    /// The page that a query finds, read and checked like every query.
    pub async fn find(&self, query: &str, with_total: bool) -> Result<Found> {
        let find = Find {
            record_type: TYPE.to_owned(),
            query: self.checked(query)?,
            sort: Vec::new(),
            page: Page { after: None, skip: 0, limit: PAGE },
            total: with_total,
        };
        Ok(self.records.find(self.access.clone(), find).await?)
    }

    /// How many records a query finds.
    pub async fn count(&self, query: &str) -> Result<u64> {
        let filter = self.checked(query)?.filter;
        let count = Count { record_type: TYPE.to_owned(), filter, grouping: None };
        Ok(self.records.count(self.access.clone(), count).await?.count)
    }

    fn checked(&self, query: &str) -> Result<CheckedQuery> {
        let Access { types, scope, .. } = &self.access;
        let root = self.access.record_type(TYPE)?;
        let variables = BTreeMap::new();
        let scope = Scope { types, root, variables: &variables, hidden: scope.hidden() };
        let parsed = parse(query).map_err(|fault| fault.message)?;
        Ok(check(&parsed, scope).map_err(|fault| fault.message)?)
    }

    /// Closes the folder.
    pub async fn close(self) -> Result<()> {
        self.records.close().await?;
        self.opened.store.close().await?;
        Ok(())
    }
}

/// The type, as the project's file declares it.
fn declared() -> RecordType {
    let indexed = |name: &str| Field { indexed: true, ..Field::new(name, Kind::String) };
    let fields = vec![
        indexed("customer"),
        indexed("status"),
        Field::new("total", Kind::Number),
        Field::new("note", Kind::String),
    ];
    RecordType::new("", TYPE, TYPE, fields)
}
