//! Principals: people and programs that are known by a name of their own, whatever credential they
//! show. Some come from the project's file, others are stored; one value holds all of them.

use crate::identity::grants::Grants;
use crate::values::caller::LOCAL;
use crate::values::ids::{Millis, RealmId};
use crate::values::named_enum::named;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The project's file of principals.
pub const PRINCIPALS_FILE: &str = "principals.yaml";

/// How many principals there are at most, those of the file included: all are held in memory.
pub const PRINCIPALS_MAX: usize = 50_000;

/// How many characters an id has at most.
const ID_CHARS_MAX: usize = 100;

/// How much of a wrong id is repeated.
const SHOWN_CHARS_MAX: usize = 120;

/// Subjects of another kind.
const RESERVED: [&str; 3] = ["admin", LOCAL, "supervisor"];

named! {
    PrincipalKind {
        /// A person.
        User = "user",
        /// A program.
        Service = "service",
    }
}

/// Someone who is known by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Principal {
    /// The name, which is the subject of its requests.
    pub id: Arc<str>,
    /// Whether it is a person or a program.
    pub kind: PrincipalKind,
    /// Display name; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its roles in each realm. What tokens claim for its identities adds to them.
    #[serde(default)]
    pub realms: Grants,
    /// The realm of its requests that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_realm: Option<RealmId>,
    /// The same for the endpoints of one area.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub realm_overrides: BTreeMap<String, RealmId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_domain: Option<DataDomain>,
    /// Properties for policies: texts, integers, booleans, and lists of texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, Value>,
    /// The subjects that are this principal too: `<issuer>:<sub>`, and `local` for what was begun
    /// before the server asked for credentials.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub identities: BTreeSet<Arc<str>>,
}

/// Data domain that a principal's records are stamped with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DataDomain {
    /// The organisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_ref_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_num: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_segment: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
}

impl Principal {
    /// Someone with these roles, and nothing else that is said.
    pub fn new(id: impl Into<Arc<str>>, realms: Grants) -> Self {
        Self {
            id: id.into(),
            kind: PrincipalKind::User,
            name: String::new(),
            realms,
            default_realm: None,
            realm_overrides: BTreeMap::new(),
            data_domain: None,
            properties: BTreeMap::new(),
            identities: BTreeSet::new(),
        }
    }
}

/// A text that names no principal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPrincipal {
    /// It has characters that no id has, or too many or too few.
    #[error(
        "`{0}` is not the id of a principal; expected 1 to 100 letters, digits, `.`, `_`, `@` and \
         `-` that begin with a letter or a digit"
    )]
    Id(String),
    /// It means something else.
    #[error("`{0}` cannot be the id of a principal, because it has a meaning of its own")]
    Reserved(String),
}

/// Whether a principal can have this id.
pub fn check_id(id: &str) -> Result<(), BadPrincipal> {
    let shown = || id.chars().take(SHOWN_CHARS_MAX).collect();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._@-".contains(&byte);
    let begins = id.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if id.len() > ID_CHARS_MAX || !begins || !id.bytes().all(is_plain) {
        return Err(BadPrincipal::Id(shown()));
    }
    if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(id)) {
        return Err(BadPrincipal::Reserved(shown()));
    }
    Ok(())
}

/// A stored principal: the whole principal, or for one from the file only that it is disabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrincipalRecord {
    pub id: Arc<str>,
    /// Itself; none where it is in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Arc<Principal>>,
    /// When it was disabled, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Millis>,
    /// The subject that changed it last.
    pub by: Arc<str>,
    pub changed: Millis,
}

/// Where a principal is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In the project's file, which alone changes it.
    File,
    Stored,
}

/// A principal, and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPrincipal {
    /// Itself.
    pub principal: Arc<Principal>,
    pub origin: Origin,
    /// When it was disabled, if it is: it may do nothing then.
    pub disabled: Option<Millis>,
}

/// All principals at one moment.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    known: BTreeMap<Arc<str>, Arc<KnownPrincipal>>,
    /// Whose each identity is.
    identities: HashMap<Arc<str>, Arc<str>>,
}

/// Two principals that could be taken for each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Clash {
    /// Their ids differ in upper and lower case only.
    #[error("`{id}` and `{other}` differ in upper and lower case only")]
    Ids {
        /// The one that is left out.
        id: Arc<str>,
        /// The one that stays.
        other: Arc<str>,
    },
    /// Both have the same identity.
    #[error("the identity `{identity}` of `{id}` belongs to `{other}` already")]
    Identity {
        /// The one that does not get it.
        id: Arc<str>,
        /// The one that has it.
        other: Arc<str>,
        identity: Arc<str>,
    },
}

impl Clash {
    /// The principal that stays as it is.
    pub fn winner(&self) -> &Arc<str> {
        match self {
            Self::Ids { other, .. } | Self::Identity { other, .. } => other,
        }
    }
}

impl Roster {
    /// The principals of the file and those that are stored. One that both have is the file's; one
    /// that is disabled in the store is so wherever it is defined. Of two that clash the first
    /// wins, so that nobody is ever two people.
    pub fn combine<'r, R>(file: &[Arc<Principal>], stored: R) -> (Self, Vec<Clash>)
    where
        R: Iterator<Item = &'r PrincipalRecord> + Clone,
    {
        let disabled = stored.clone().filter_map(|record| Some((&*record.id, record.disabled?)));
        let disabled: HashMap<&str, Millis> = disabled.collect();
        let of_file = file.iter().map(|principal| (principal, Origin::File));
        let of_store = stored.filter_map(|record| record.principal.as_ref());
        let of_store = of_store.map(|principal| (principal, Origin::Stored));
        let mut roster = Self::default();
        let mut clashes = Vec::new();
        let mut folded: HashMap<String, Arc<str>> = HashMap::new();
        for (principal, origin) in of_file.chain(of_store) {
            let id = &principal.id;
            if roster.known.contains_key(id) {
                continue;
            }
            let other = folded.entry(id.to_ascii_lowercase()).or_insert_with(|| id.clone());
            if other != id {
                clashes.push(Clash::Ids { id: id.clone(), other: other.clone() });
                continue;
            }
            roster.claim_identities(principal, &mut clashes);
            let disabled = disabled.get(&**id).copied();
            let known = KnownPrincipal { principal: principal.clone(), origin, disabled };
            roster.known.insert(id.clone(), Arc::new(known));
        }
        (roster, clashes)
    }

    fn claim_identities(&mut self, principal: &Principal, clashes: &mut Vec<Clash>) {
        let id = &principal.id;
        for identity in &principal.identities {
            let owner = self.identities.entry(identity.clone()).or_insert_with(|| id.clone());
            if owner != id {
                let other = owner.clone();
                let identity = identity.clone();
                clashes.push(Clash::Identity { id: id.clone(), other, identity });
            }
        }
    }

    pub fn get(&self, id: &str) -> Option<&Arc<KnownPrincipal>> {
        self.known.get(id)
    }

    /// The principal that this subject is: by its id, or by one of its identities.
    pub fn of_subject(&self, subject: &str) -> Option<&Arc<KnownPrincipal>> {
        let id = self.identities.get(subject).map_or(subject, |id| &**id);
        self.known.get(id)
    }

    /// Whether this identity is the principal's, and not another's who lists it as well.
    pub fn is_identity_of(&self, identity: &str, id: &str) -> bool {
        self.identities.get(identity).is_some_and(|owner| **owner == *id)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KnownPrincipal>> {
        self.known.values()
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::grants::RealmPattern;
    use crate::identity::roles::{Role, Roles};

    fn principal(id: &str, identities: &[&str]) -> Arc<Principal> {
        let realms = Grants::one(RealmPattern::parse("acme").unwrap(), Roles::of(&[Role::Member]));
        let identities = identities.iter().map(|identity| Arc::<str>::from(*identity)).collect();
        Arc::new(Principal { identities, ..Principal::new(id, realms) })
    }

    fn record(principal: &Arc<Principal>) -> PrincipalRecord {
        PrincipalRecord {
            id: principal.id.clone(),
            principal: Some(principal.clone()),
            disabled: None,
            by: "admin".into(),
            changed: Millis(1),
        }
    }

    #[test]
    fn principal_ids_have_no_colon_and_are_not_reserved_words() {
        let longest = "a".repeat(ID_CHARS_MAX);
        for good in ["a", "7", "ann", "Ann.Lee@acme.com", "agent-service-user", "key", &longest] {
            assert_eq!(check_id(good), Ok(()), "{good}");
        }
        let too_long = "a".repeat(ID_CHARS_MAX + 1);
        for bad in ["", "corp:ann", "key:abcdefghij", "-a", ".", "a b", "a/b", "ä", &too_long] {
            assert!(matches!(check_id(bad), Err(BadPrincipal::Id(_))), "{bad}");
        }
        for reserved in ["admin", "Admin", "local", "LOCAL", "supervisor"] {
            assert_eq!(check_id(reserved), Err(BadPrincipal::Reserved(reserved.to_owned())));
        }
        let BadPrincipal::Id(shown) = check_id(&"ö".repeat(10_000)).unwrap_err() else {
            panic!("an id");
        };
        assert_eq!(shown.chars().count(), SHOWN_CHARS_MAX);
    }

    #[test]
    fn a_principal_is_found_by_its_id_and_by_its_identities() {
        let file = [principal("ann", &["corp:1", "local"])];
        let stored = [record(&principal("bob", &["corp:2"]))];
        let (roster, clashes) = Roster::combine(&file, stored.iter());
        assert_eq!(clashes, []);
        let found = |subject: &str| roster.of_subject(subject).map(|known| &*known.principal.id);
        for subject in ["ann", "corp:1", "local"] {
            assert_eq!(found(subject), Some("ann"), "{subject}");
        }
        assert_eq!((found("corp:2"), found("bob")), (Some("bob"), Some("bob")));
        for nobody in ["", "corp:3", "corp:", "Ann", "1"] {
            assert_eq!(found(nobody), None, "{nobody}");
        }
        let origins: Vec<_> = roster.iter().map(|known| known.origin).collect();
        assert_eq!(origins, [Origin::File, Origin::Stored]);
        assert_eq!((roster.len(), roster.is_empty()), (2, false));
    }

    #[test]
    fn a_principal_of_the_file_can_be_disabled_but_not_changed() {
        let file = [principal("ann", &["corp:1"])];
        let other =
            PrincipalRecord { disabled: Some(Millis(7)), ..record(&principal("ann", &["corp:9"])) };
        let alone = PrincipalRecord { principal: None, ..other.clone() };
        for stored in [other, alone] {
            let (roster, clashes) = Roster::combine(&file, [stored].iter());
            assert_eq!(clashes, []);
            let known = roster.get("ann").unwrap();
            assert_eq!((known.origin, known.disabled), (Origin::File, Some(Millis(7))));
            assert!(roster.of_subject("corp:9").is_none());
        }
        // Once the file has it no more, what was disabled there is nobody.
        let alone = PrincipalRecord { principal: None, ..record(&file[0]) };
        assert!(Roster::combine(&[], [alone].iter()).0.is_empty());
    }

    #[test]
    fn an_identity_belongs_to_at_most_one_principal() {
        let file = [principal("ann", &["corp:1"])];
        let stored = [record(&principal("ANN", &[])), record(&principal("bob", &["corp:1"]))];
        let (roster, clashes) = Roster::combine(&file, stored.iter());
        let identity =
            Clash::Identity { id: "bob".into(), other: "ann".into(), identity: "corp:1".into() };
        assert_eq!(clashes, [Clash::Ids { id: "ANN".into(), other: "ann".into() }, identity]);
        assert_eq!(&**clashes[1].winner(), "ann");
        assert_eq!(&*roster.of_subject("corp:1").unwrap().principal.id, "ann");
        assert!(roster.get("ANN").is_none());
        assert!(roster.is_identity_of("corp:1", "ann") && !roster.is_identity_of("corp:1", "bob"));
    }

    #[test]
    fn principal_records_round_trip_through_json() {
        let text = r#"{"id":"ann","principal":{"id":"ann","kind":"service","name":"Ann",
            "realms":{"acme":["member"]},"defaultRealm":"acme",
            "realmOverrides":{"integration":"acme"},
            "dataDomain":{"tenantId":"acme.com","dataSegment":3},
            "properties":{"floor":7},"identities":["corp:1"]},
            "disabled":5,"by":"admin","changed":4}"#;
        let whole: PrincipalRecord = serde_json::from_str(text).unwrap();
        let written: String = text.split_whitespace().collect();
        assert_eq!(serde_json::to_string(&whole).unwrap(), written);
        let least = r#"{"id":"ann","principal":{"id":"ann","kind":"user"},"by":"x","changed":1}"#;
        let least: PrincipalRecord = serde_json::from_str(least).unwrap();
        let expected = Principal::new("ann", Grants::default());
        assert_eq!(least.principal.as_deref(), Some(&expected));
    }
}
