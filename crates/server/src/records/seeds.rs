//! The first records of realms: files that types name, each loaded once per realm. A crash half way
//! repeats nothing, since each row is one call that is known by its place.

use super::seed_rows::{SeedRow, read};
use futures::future::join_all;
use kernel::contracts::{Clock, Entropy};
use kernel::definition::plan::mistake::{Mistake, Position};
use kernel::identity::directory::ADMIN;
use kernel::identity::principal::DataDomain;
use kernel::values::ids::{CallId, Millis, RealmId};
use project::entities::{EntityTypes, SeedFile};
use query::records::error::RecordError;
use query::records::names::fresh_id;
use query::records::requests::{Access, Author, Save, SaveMode, Write};
use query::records::scope::CallerScope;
use query::records::type_change::RecordStore;
use query::types::{RecordType, TypeSet};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What each call of a seed begins with.
const CALL: &[u8] = b"first record";

/// How many rows are queued at once, so that one commit takes them. They are written in their order:
/// a row can refer to those before it.
const ROWS_TOGETHER: usize = 30;

/// How many bits of the id of a first record are random, below the number of its row.
const ID_RANDOM_BITS: u32 = 24;
const ID_RANDOM: u64 = (1 << ID_RANDOM_BITS) - 1;

/// The files with first records.
pub(crate) struct SeedFiles {
    /// The project's folder.
    pub(crate) folder: PathBuf,
    /// Texts that the project has instead of files, by path.
    pub(crate) texts: BTreeMap<String, String>,
}

/// Loads first records.
pub(crate) struct Seeder {
    pub(crate) store: Arc<dyn RecordStore>,
    pub(crate) files: SeedFiles,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

impl SeedFiles {
    /// The rows of a file, or what is wrong with it.
    fn rows(&self, seed: &SeedFile, types: &TypeSet) -> Result<Vec<SeedRow>, Vec<Mistake>> {
        let record_type = match types.find(&seed.record_type) {
            Ok(found) => found,
            Err(unknown) => return Err(vec![at_type(seed, unknown.to_string())]),
        };
        let text = match self.texts.get(&seed.path) {
            Some(text) => text.clone(),
            None => self.text(seed).map_err(|mistake| vec![mistake])?,
        };
        read(&seed.path, &text, record_type)
    }

    fn text(&self, seed: &SeedFile) -> Result<String, Mistake> {
        fs::read_to_string(self.folder.join(Path::new(&seed.path))).map_err(|why| {
            let what = format!("the first records in `{}` cannot be read: {why}", seed.path);
            at_type(seed, what).hint("write the path of a file below the project's folder")
        })
    }

    /// What is wrong with the files of these types, as far as it can be seen without saving.
    pub(crate) fn check(&self, declared: &EntityTypes) -> Vec<Mistake> {
        let rows = |seed: &SeedFile| self.rows(seed, &declared.types).err();
        declared.seeds.iter().filter_map(rows).flatten().collect()
    }
}

/// A mistake where a type names a file.
fn at_type(seed: &SeedFile, message: String) -> Mistake {
    let place = Position { line: seed.place.line, column: seed.place.column };
    let file = Some(seed.place.file.to_string());
    Mistake { file, ..Mistake::error(message).at(place, "/seed") }
}

impl Seeder {
    /// Loads what this realm has not had yet; how many records. The first row that cannot be saved
    /// ends it.
    pub(crate) async fn load(
        &self,
        realm: &RealmId,
        declared: &EntityTypes,
    ) -> Result<usize, Vec<Mistake>> {
        if declared.seeds.is_empty() {
            return Ok(0);
        }
        let failed = |error: RecordError| vec![Mistake::error(not_loaded(realm, &error))];
        let seeded = self.store.seeded(realm.clone()).await.map_err(failed)?;
        let mut count = 0;
        for seed in in_order(declared) {
            if seeded.contains(&seed.record_type) {
                continue;
            }
            let rows = self.files.rows(seed, &declared.types)?;
            count += rows.len();
            self.save(realm, declared, seed, rows).await?;
            let noting = self.store.note_seeded(realm.clone(), seed.record_type.clone());
            noting.await.map_err(failed)?;
        }
        Ok(count)
    }

    async fn save(
        &self,
        realm: &RealmId,
        declared: &EntityTypes,
        seed: &SeedFile,
        rows: Vec<SeedRow>,
    ) -> Result<(), Vec<Mistake>> {
        let access = Access {
            realm: realm.clone(),
            types: Arc::new(declared.types.clone()),
            scope: Arc::new(CallerScope::unlimited(&declared.types)),
        };
        let at = self.clock.now();
        let mut rows = rows.into_iter().enumerate().peekable();
        while rows.peek().is_some() {
            let together = rows.by_ref().take(ROWS_TOGETHER);
            let saving = together.map(|(number, SeedRow { line, entity })| {
                let saving = self.save_row((realm, at), access.clone(), seed, (number, entity));
                async move { saving.await.map_err(|error| refused(seed, line, realm, &error)) }
            });
            join_all(saving).await.into_iter().collect::<Result<(), _>>()?;
        }
        Ok(())
    }

    async fn save_row(
        &self,
        (realm, at): (&RealmId, Millis),
        access: Access,
        seed: &SeedFile,
        (number, entity): (usize, Value),
    ) -> Result<(), RecordError> {
        // In the order of the rows; a part of the random bits is enough.
        let random = (number as u64) << ID_RANDOM_BITS | self.entropy.bits() as u64 & ID_RANDOM;
        let save = Save {
            record_type: seed.record_type.clone(),
            mode: SaveMode::Insert,
            entity,
            expected: None,
            fresh_id: fresh_id(at, random),
        };
        let call = call_of(realm, &seed.record_type, number);
        let write = Write { author: author(), at, call: Some(call), asked: None };
        self.store.save(access, save, write).await.map(|_| ())
    }
}

/// Rows may say whose they are.
fn author() -> Author {
    Author { subject: ADMIN.into(), domain: DataDomain::default(), administers: true }
}

fn call_of(realm: &RealmId, record_type: &str, number: usize) -> CallId {
    let number = (number as u64).to_be_bytes();
    CallId::of(&[CALL, realm.as_str().as_bytes(), record_type.as_bytes(), &number])
}

fn not_loaded(realm: &RealmId, error: &RecordError) -> String {
    format!("the first records of realm `{realm}` cannot be loaded: {error}")
}

/// Why a row was not saved: each of its fields for itself.
fn refused(seed: &SeedFile, line: u32, realm: &RealmId, error: &RecordError) -> Vec<Mistake> {
    let place = Position { line, column: 1 };
    let told = |message: String| {
        let hint = format!("correct the row; it is a first record of realm `{realm}`");
        let file = Some(seed.path.clone());
        Mistake { file, ..Mistake::error(message).at(place, "").hint(hint) }
    };
    match error {
        RecordError::InvalidEntity(mistakes) => mistakes
            .iter()
            .map(|mistake| match mistake.field.as_str() {
                "" => told(mistake.message.clone()),
                field => told(format!("`{field}` {}", mistake.message)),
            })
            .collect(),
        other => vec![told(other.to_string())],
    }
}

/// The files in an order in which those of types that are referred to come first. Where types refer
/// to each other in a circle, they stay as they are declared.
fn in_order(declared: &EntityTypes) -> Vec<&SeedFile> {
    let mut ordered = Vec::new();
    let mut visited = BTreeSet::new();
    for seed in &declared.seeds {
        visit(declared, &seed.record_type, &mut visited, &mut ordered);
    }
    ordered
}

fn visit<'d>(
    declared: &'d EntityTypes,
    name: &str,
    visited: &mut BTreeSet<String>,
    ordered: &mut Vec<&'d SeedFile>,
) {
    if !visited.insert(name.to_owned()) {
        return;
    }
    let types = &declared.types;
    let references = types.find(name).map(RecordType::references).unwrap_or_default();
    for to in references.iter().filter_map(|(_, to)| types.find(to).ok()) {
        visit(declared, &to.full_name(), visited, ordered);
    }
    ordered.extend(declared.seeds.iter().find(|seed| seed.record_type == name));
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::layer::Location;
    use query::types::{Field, Kind};

    fn seed(record_type: &str) -> SeedFile {
        SeedFile {
            record_type: record_type.to_owned(),
            path: format!("data/{record_type}.csv"),
            place: Location { file: "entities/Order.yaml".into(), line: 3, column: 7 },
        }
    }

    fn declared() -> EntityTypes {
        let to = |name: &str, to: &str| Field::new(name, Kind::Reference(to.to_owned()));
        let types = vec![
            RecordType::new("", "orders", "Order", vec![to("customer", "Customer")]),
            RecordType::new("", "customers", "Customer", vec![to("town", "Town")]),
            RecordType::new("", "towns", "Town", vec![to("next", "Town")]),
        ];
        let seeds = ["Order", "Town", "Customer"].map(seed).to_vec();
        EntityTypes { types: TypeSet::new(types), seeds }
    }

    #[test]
    fn what_is_referred_to_comes_first() {
        let declared = declared();
        let order: Vec<&str> =
            in_order(&declared).iter().map(|seed| seed.record_type.as_str()).collect();
        assert_eq!(order, ["Town", "Customer", "Order"]);
    }

    #[test]
    fn the_same_row_is_the_same_call() {
        let call = |realm: &str, number: usize| call_of(&realm.into(), "Order", number);
        assert_eq!(call("shop", 1), call("shop", 1));
        assert_ne!(call("shop", 1), call("shop", 2));
        assert_ne!(call("shop", 1), call("other", 1));
    }

    #[test]
    fn a_file_that_is_not_there_is_told_at_its_type() {
        let files = SeedFiles {
            folder: PathBuf::from("/nowhere"),
            texts: BTreeMap::from([
                ("data/Town.csv".to_owned(), "refName\nport\n".to_owned()),
                ("data/Customer.csv".to_owned(), "refName\nport,port\n".to_owned()),
            ]),
        };
        let told: Vec<String> = files.check(&declared()).iter().map(Mistake::to_string).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("entities/Order.yaml:3:7: error: the first records"),
            "{told:?}"
        );
        assert!(told[1].starts_with("data/Customer.csv:2:1: error: the row has 2"), "{told:?}");
    }
}
