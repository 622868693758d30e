//! Immutable snapshot of all principals and keys: a decision uses one of them, so that it cannot
//! see half of a change.

use crate::identity::grants::{Grants, RealmPattern};
use crate::identity::key::{ApiKey, KeyId, SUBJECT_PREFIX};
use crate::identity::principal::{KnownPrincipal, Roster};
use crate::identity::realm::Realms;
use crate::identity::roles::{Role, Roles};
use crate::values::caller::{Caller, KeyMakers, LOCAL};
use crate::values::ids::RealmId;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

/// The subject of the admin key.
pub const ADMIN: &str = "admin";

/// How many makers of keys are followed.
const MAKERS_MAX: usize = 16;
/// The pattern that every realm fits.
const EVERY_REALM: &str = "*";
/// Makers of keys for everybody, which are not persons.
const MAKERS_OF_ALL: [&str; 2] = [ADMIN, LOCAL];

/// What `local` may do where no principal is `local` too: the runs that a server began before it
/// asked for credentials continue, as those of a member. No credential is `local`, so nothing new
/// begins with it; and such runs are in one realm, so the pattern gives it no other.
static LEFT_BY_LOCAL_MODE: LazyLock<Grants> = LazyLock::new(|| {
    let realm = RealmPattern::parse("*").ok();
    Grants(realm.map(|realm| (realm, Roles::of(&[Role::Member]))).into_iter().collect())
});

/// All principals and keys at one moment.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    /// Grows with every change.
    pub number: u64,
    /// The keys, those that were revoked included.
    pub keys: Arc<HashMap<KeyId, Arc<ApiKey>>>,
    /// The roles of subjects that tokens of issuers name, as their newest tokens claim.
    pub claims: Arc<HashMap<Arc<str>, Arc<Grants>>>,
    pub principals: Arc<Roster>,
    /// The realms, with what is set for each.
    pub realms: Arc<Realms>,
    /// Whether there is an admin key, so that the subject `admin` is someone.
    pub has_admin_key: bool,
}

impl Directory {
    /// The roles of a subject in a realm, as they are now. A key that was revoked has none, and
    /// neither has a principal that is disabled. A key that only expired keeps its roles: what was
    /// begun with it continues.
    pub fn roles(&self, realm: &RealmId, subject: &str) -> Roles {
        if subject == ADMIN && self.has_admin_key {
            return Roles::of(&[Role::Admin]);
        }
        let mut roles = Roles::default();
        for grants in self.grants(subject) {
            roles.add(&grants.roles_in(realm));
        }
        roles
    }

    /// Whether a subject has a built-in role in a realm. The same as its roles say, without a set
    /// of them.
    pub fn has_role(&self, realm: &RealmId, subject: &str, role: Role) -> bool {
        if subject == ADMIN && self.has_admin_key {
            return role == Role::Admin;
        }
        self.grants(subject).any(|grants| {
            let mut held = grants.0.iter().filter(|(pattern, _)| pattern.fits(realm));
            held.any(|(_, roles)| roles.has(role))
        })
    }

    /// The roles of a subject in each realm, as they are now, which add up; none of the admin key,
    /// which has one everywhere. What tokens claim for the identities of a principal is its own.
    pub fn grants<'a>(&'a self, subject: &'a str) -> impl Iterator<Item = &'a Grants> {
        let principal = self.principals.of_subject(subject);
        let enabled = principal.filter(|known| known.disabled.is_none());
        let alone = match principal {
            Some(_) => None,
            None => self.alone(subject),
        };
        let claimed = enabled.into_iter().flat_map(move |known| self.claimed(known));
        enabled.map(|known| &known.principal.realms).into_iter().chain(alone).chain(claimed)
    }

    /// The same as one value.
    pub fn all_grants(&self, subject: &str) -> Grants {
        let mut all = Grants::default();
        for grants in self.grants(subject) {
            all.add(grants);
        }
        all
    }

    /// The grants of a subject that is no principal.
    fn alone(&self, subject: &str) -> Option<&Grants> {
        match self.key_of(subject) {
            Some(key) => key.revoked.is_none().then_some(&key.realms),
            None if subject == LOCAL => Some(&*LEFT_BY_LOCAL_MODE),
            None => self.claims.get(subject).map(|grants| &**grants),
        }
    }

    /// Grants claimed by the newest tokens of a principal's identities.
    fn claimed<'a>(&'a self, known: &'a KnownPrincipal) -> impl Iterator<Item = &'a Grants> {
        let principal = &*known.principal;
        let roster = &*self.principals;
        let own = principal.identities.iter();
        let own = own.filter(move |identity| roster.is_identity_of(identity, &principal.id));
        own.filter_map(move |identity| self.claims.get(identity)).map(|grants| &**grants)
    }

    /// The principal that a subject belongs to, or the subject itself.
    pub fn resolve<'a>(&'a self, subject: &'a str) -> &'a str {
        self.principals.of_subject(subject).map_or(subject, |known| &*known.principal.id)
    }

    /// Whose a session with this owner is. What local mode left has none, and belongs to the
    /// principal that is `local` too; a case without one is its pipeline's.
    pub fn owner<'a>(&'a self, owner: Option<&'a str>, is_case: bool) -> Option<&'a str> {
        match owner {
            Some(owner) => Some(self.resolve(owner)),
            None if is_case => None,
            None => self.principals.of_subject(LOCAL).map(|known| &*known.principal.id),
        }
    }

    /// Whether this subject is a principal that is disabled, and may do nothing.
    pub fn is_disabled(&self, subject: &str) -> bool {
        self.principals.of_subject(subject).is_some_and(|known| known.disabled.is_some())
    }

    /// Whether a realm can act as this principal: it is there, may enter, and administers nothing
    /// there.
    pub fn can_run_as(&self, realm: &RealmId, id: &str) -> bool {
        let known = self.principals.get(id).filter(|known| known.disabled.is_none());
        let enters = || self.grants(id).any(|grants| grants.enters(realm));
        known.is_some() && enters() && !self.roles(realm, id).has(Role::Admin)
    }

    /// The realms that act as a principal that cannot be used, with its id: nothing is done there.
    pub fn stuck_realms(&self) -> impl Iterator<Item = (&RealmId, &Arc<str>)> {
        let acting = self.realms.0.iter();
        let acting = acting.filter_map(|(realm, set)| Some((realm, set.run_as.as_ref()?)));
        acting.filter(move |(realm, id)| !self.can_run_as(realm, id))
    }

    /// Whether there is or was such a subject: a key that was revoked is still known.
    pub fn is_known(&self, subject: &str) -> bool {
        (subject == ADMIN && self.has_admin_key)
            || subject == LOCAL
            || self.principals.of_subject(subject).is_some()
            || self.key_of(subject).is_some()
            || self.claims.contains_key(subject)
    }

    /// Whether this subject can still do something: it is known, and neither a principal that is
    /// disabled nor a key that was revoked.
    pub fn is_active(&self, subject: &str) -> bool {
        let is_revoked = self.key_of(subject).is_some_and(|key| key.revoked.is_some());
        self.is_known(subject) && !self.is_disabled(subject) && !is_revoked
    }

    /// Whether this subject is one whom a list of answerers names, as `role:x` or `principal:y`.
    pub fn is_named(&self, realm: &RealmId, subject: &str, answerer: &str) -> bool {
        match answerer.split_once(':') {
            Some(("role", role)) => self.roles(realm, subject).0.contains(role),
            Some(("principal", name)) => self.resolve(name) == self.resolve(subject),
            _ => false,
        }
    }

    /// Whether one is another person than the other: not the same subject, not a key and who made
    /// it, and not two keys of one maker. The admin key is never another: anyone may hold it.
    pub fn is_other(&self, one: &str, than: &str) -> bool {
        one != ADMIN && self.person(one) != self.person(than)
    }

    /// Whether a caller is another person than this subject: neither who acts nor who else could
    /// have its credential is the same person.
    pub fn is_another(&self, caller: &Caller, subject: &str) -> bool {
        caller.people().all(|one| self.is_other(one, subject))
    }

    /// Whether a caller is another person than one who came with a key of this maker. Two people
    /// whose keys have one maker are two only where that one makes keys for everybody.
    pub fn is_another_than_maker(&self, caller: &Caller, maker: &str) -> bool {
        let mut makers = caller.makers.subjects();
        caller.hands().all(|one| self.is_other(one, maker))
            && (self.makes_for_all(maker) || makers.all(|one| self.is_other(one, maker)))
    }

    /// Whether a subject administers every realm that there is or may be, or did as long as it
    /// could: as with the admin key, keys that it makes are those of different people.
    fn makes_for_all(&self, maker: &str) -> bool {
        let is_everywhere = |grants: &Grants| {
            let mut held = grants.0.iter();
            held.any(|(realm, roles)| realm.as_str() == EVERY_REALM && roles.has(Role::Admin))
        };
        let key = self.key_of(maker).map(|key| &key.realms);
        let principal = self.principals.of_subject(maker).map(|known| &known.principal.realms);
        let ended = key.into_iter().chain(principal);
        ended.chain(self.grants(maker)).any(is_everywhere)
    }

    /// Who else could have this text of a key, beside who calls with it: who made a principal's
    /// key, and who gave a key a text. Of other keys the subject says who made them.
    pub fn makers(&self, key: &ApiKey, sha256: &str) -> KeyMakers {
        let caller = key.subject();
        let of_key = key.of.is_some().then_some(&key.by);
        let shown = key.secrets.iter().filter(|secret| secret.sha256 == sha256);
        let all = of_key.into_iter().chain(shown.flat_map(|secret| &secret.by));
        let is_another = |maker: &&Arc<str>| {
            !MAKERS_OF_ALL.contains(&&***maker) && self.resolve(maker) != self.resolve(&caller)
        };
        let makers: BTreeSet<&Arc<str>> = all.filter(is_another).collect();
        makers.into_iter().cloned().collect()
    }

    /// Who stands behind a subject: the principal that it is, who made its key, and so on. The keys
    /// that an administrator makes with the admin key, or without a server, are those of different
    /// people.
    fn person<'a>(&'a self, subject: &'a str) -> &'a str {
        let mut person = self.resolve(subject);
        for _ in 0..MAKERS_MAX {
            match self.key_of(person) {
                Some(key) if !MAKERS_OF_ALL.contains(&&*key.by) => person = self.resolve(&key.by),
                _ => return person,
            }
        }
        person
    }

    pub fn key_of(&self, subject: &str) -> Option<&Arc<ApiKey>> {
        self.keys.get(subject.strip_prefix(SUBJECT_PREFIX)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::key::SecretHash;
    use crate::identity::principal::{Principal, PrincipalRecord};
    use crate::values::ids::Millis;

    const GOOD: &str = "aaaaaaaaaa";
    const EXPIRED: &str = "bbbbbbbbbb";
    const REVOKED: &str = "cccccccccc";

    fn key(id: &str) -> ApiKey {
        let realms = Grants::one(RealmPattern::parse("acme*").unwrap(), Roles::of(&[Role::Member]));
        ApiKey {
            id: KeyId(id.into()),
            name: id.to_owned(),
            of: None,
            realms,
            scopes: None,
            secrets: Vec::new(),
            by: ADMIN.into(),
            created: Millis(1),
            expires: None,
            revoked: None,
        }
    }

    fn directory() -> Directory {
        let keys = [
            key(GOOD),
            ApiKey { expires: Some(Millis(2)), ..key(EXPIRED) },
            ApiKey { revoked: Some(Millis(2)), ..key(REVOKED) },
        ];
        let keys: HashMap<_, _> =
            keys.into_iter().map(|key| (key.id.clone(), Arc::new(key))).collect();
        let viewer = Grants::one(RealmPattern::parse("acme").unwrap(), Roles::of(&[Role::Viewer]));
        let claims: HashMap<Arc<str>, _> = HashMap::from([("corp:ann".into(), Arc::new(viewer))]);
        Directory {
            number: 1,
            keys: keys.into(),
            claims: claims.into(),
            principals: Arc::default(),
            realms: Arc::default(),
            has_admin_key: true,
        }
    }

    /// The same with `ann`, who is `corp:ann` and `local` too, and with `bob`, who is disabled.
    fn with_principals() -> Directory {
        let member = Grants::one(RealmPattern::parse("acme*").unwrap(), Roles::of(&[Role::Member]));
        let identities = ["corp:ann", LOCAL].map(Arc::<str>::from).into_iter().collect();
        let ann = Principal { identities, ..Principal::new("ann", member.clone()) };
        let identities = [Arc::<str>::from("corp:bob")].into_iter().collect();
        let bob = Principal { identities, ..Principal::new("bob", member) };
        let disabled = PrincipalRecord {
            id: "bob".into(),
            principal: None,
            disabled: Some(Millis(3)),
            by: ADMIN.into(),
            changed: Millis(3),
        };
        let file = [Arc::new(ann), Arc::new(bob)];
        let (principals, _) = Roster::combine(&file, [disabled].iter());
        let mut claims = HashMap::clone(&directory().claims);
        let operator = Grants::one(RealmPattern::parse("*").unwrap(), Roles::of(&[Role::Operator]));
        claims.insert("corp:bob".into(), Arc::new(operator));
        Directory { principals: Arc::new(principals), claims: claims.into(), ..directory() }
    }

    #[test]
    fn roles_of_a_subject_are_the_current_ones() {
        let admin = [Role::Admin];
        let member = [Role::Member];
        let viewer = [Role::Viewer];
        let cases: [(&str, &str, &[Role], bool); 18] = [
            (ADMIN, "acme", &admin, true),
            (ADMIN, "default", &admin, true),
            ("key:aaaaaaaaaa", "acme", &member, true),
            ("key:aaaaaaaaaa", "acme-eu", &member, true),
            ("key:aaaaaaaaaa", "default", &[], true),
            ("key:bbbbbbbbbb", "acme", &member, true),
            ("key:cccccccccc", "acme", &[], true),
            ("key:dddddddddd", "acme", &[], false),
            ("key:", "acme", &[], false),
            ("KEY:aaaaaaaaaa", "acme", &[], false),
            ("key:key:aaaaaaaaaa", "acme", &[], false),
            ("corp:ann", "acme", &viewer, true),
            ("corp:ann", "acme-eu", &[], true),
            ("corp:bob", "acme", &[], false),
            ("ann", "acme", &[], false),
            (GOOD, "acme", &[], false),
            (LOCAL, "acme", &member, true),
            ("", "acme", &[], false),
        ];
        let directory = directory();
        for (subject, realm, roles, is_known) in cases {
            let found = directory.roles(&realm.into(), subject);
            assert_eq!(found, Roles::of(roles), "{subject} in {realm}");
            let has = |role: &Role| directory.has_role(&realm.into(), subject, *role);
            assert!(Role::ALL.iter().all(|role| has(role) == roles.contains(role)), "{subject}");
            assert_eq!(directory.is_known(subject), is_known, "{subject}");
        }
    }

    #[test]
    fn a_principal_has_its_own_roles_and_those_that_its_tokens_claim() {
        let directory = with_principals();
        let member = [Role::Member];
        let both = [Role::Member, Role::Viewer];
        let cases: [(&str, &str, &[Role]); 7] = [
            ("ann", "acme", &both),
            ("ann", "acme-eu", &member),
            ("ann", "default", &[]),
            ("corp:ann", "acme-eu", &member),
            (LOCAL, "acme", &both),
            ("bob", "acme", &[]),
            ("corp:bob", "acme", &[]),
        ];
        for (subject, realm, roles) in cases {
            let found = directory.roles(&realm.into(), subject);
            assert_eq!(found, Roles::of(roles), "{subject} in {realm}");
            assert!(directory.is_known(subject));
            assert_eq!(directory.all_grants(subject).roles_in(&realm.into()), Roles::of(roles));
        }
        assert!(directory.is_disabled("bob") && directory.is_disabled("corp:bob"));
        // Who is `local` has no more than the principal has.
        assert_eq!(directory.roles(&"default".into(), LOCAL), Roles::default());
        assert!(!directory.is_disabled("ann") && !directory.is_disabled("key:aaaaaaaaaa"));
        for active in ["ann", "corp:ann", LOCAL, ADMIN, "key:aaaaaaaaaa"] {
            assert!(directory.is_active(active), "{active}");
        }
        for ended in ["bob", "corp:bob", "corp:zoe", "key:cccccccccc"] {
            assert!(!directory.is_active(ended), "{ended}");
        }
        let subjects = ["ann", "corp:ann", LOCAL, "corp:bob", "corp:zoe"];
        let who = subjects.map(|subject| directory.resolve(subject));
        assert_eq!(who, ["ann", "ann", "ann", "bob", "corp:zoe"]);
        assert_eq!(directory.owner(Some("corp:ann"), false), Some("ann"));
        assert_eq!(directory.owner(None, false), Some("ann"), "what local mode left");
        assert_eq!(directory.owner(None, true), None, "a case is its pipeline's");
        assert_eq!(self::directory().owner(None, false), None);
    }

    #[test]
    fn a_realm_acts_only_as_a_principal_that_can_be_used() {
        let directory = with_principals();
        let can = |realm: &str, id: &str| directory.can_run_as(&realm.into(), id);
        assert!(can("acme", "ann") && can("acme-eu", "ann"));
        assert!(!can("default", "ann"), "it may not enter");
        assert!(!can("acme", "bob"), "it is disabled");
        assert!(!can("acme", "zoe") && !can("acme", "corp:ann") && !can("acme", ADMIN));
        let admin = Grants::one(RealmPattern::parse("acme").unwrap(), Roles::of(&[Role::Admin]));
        let file = [Arc::new(Principal::new("root", admin))];
        let stored = std::iter::empty();
        let (principals, _) = Roster::combine(&file, stored);
        let directory = Directory { principals: Arc::new(principals), ..directory };
        assert!(!directory.can_run_as(&"acme".into(), "root"), "it administers");
    }

    #[test]
    fn a_key_is_found_by_the_subject_that_it_gives_its_callers() {
        let directory = directory();
        for (id, key) in directory.keys.iter() {
            assert_eq!(directory.key_of(&key.subject()).map(|found| &found.id), Some(id));
        }
    }

    #[test]
    fn a_key_its_maker_and_the_makers_other_keys_are_one_person() {
        let made = |id: &str, by: &str| ApiKey { by: by.into(), ..key(id) };
        let keys = [made("a", "corp:ann"), made("b", "key:a"), made("c", ADMIN), made("d", LOCAL)];
        let keys: HashMap<_, _> =
            keys.into_iter().map(|key| (key.id.clone(), Arc::new(key))).collect();
        let directory = Directory { keys: keys.into(), ..directory() };
        let people = ["corp:ann", "key:a", "key:b"];
        for one in people {
            assert!(people.iter().all(|other| !directory.is_other(one, other)), "{one}");
            assert!(directory.is_other(one, "key:c") && directory.is_other(one, ADMIN), "{one}");
        }
        assert!(directory.is_other("key:c", "key:d"), "an administrator makes keys for others");
        assert!(!directory.is_other(ADMIN, "corp:ann"), "the admin key is never another");
        let directory = Directory { principals: with_principals().principals, ..directory };
        for one in people {
            assert!(!directory.is_other("ann", one), "{one} is the principal's");
            assert!(directory.is_other("corp:bob", one), "{one}");
        }
        assert!(directory.is_named(&"acme".into(), "ann", "principal:corp:ann"));
    }

    #[test]
    fn who_made_or_rotated_a_key_does_not_count_as_another_person() {
        let text = |sha256: &str, by: &[&str]| {
            let by = by.iter().map(|one| Arc::from(*one)).collect();
            SecretHash { sha256: sha256.to_owned(), until: None, by }
        };
        let of_ann = |by: &str, secrets: Vec<SecretHash>| ApiKey {
            of: Some("ann".into()),
            by: by.into(),
            secrets,
            ..key("e")
        };
        let directory = with_principals();
        let makers = |key: &ApiKey, sha256: &str| -> Vec<String> {
            directory.makers(key, sha256).subjects().map(ToString::to_string).collect()
        };
        assert_eq!(makers(&of_ann("eve", vec![text("a", &[])]), "a"), ["eve"]);
        assert_eq!(makers(&of_ann("eve", vec![text("a", &["zoe"])]), "a"), ["eve", "zoe"]);
        for own in [ADMIN, LOCAL, "ann", "corp:ann"] {
            assert!(makers(&of_ann(own, vec![text("a", &[])]), "a").is_empty(), "{own}");
        }
        // Each text has its own people.
        let rotated = of_ann(ADMIN, vec![text("b", &["eve"]), text("a", &[])]);
        assert_eq!(makers(&rotated, "b"), ["eve"]);
        assert!(makers(&rotated, "a").is_empty());
        // Of a key of its own the subject says who made it.
        let own = ApiKey { by: "eve".into(), secrets: vec![text("a", &[])], ..key("f") };
        assert!(makers(&own, "a").is_empty());

        let with = |subject: &str, makers: &[&str]| Caller {
            makers: makers.iter().map(|maker| Arc::from(*maker)).collect(),
            ..Caller::new("acme", subject)
        };
        let lent = with("ann", &["eve"]);
        let bob = with("bob", &[]);
        assert!(!directory.is_another(&lent, "eve") && !directory.is_another(&lent, "ann"));
        assert!(directory.is_another(&lent, "bob") && directory.is_another(&bob, "eve"));
        assert!(!directory.is_another_than_maker(&with("eve", &[]), "eve"));
        assert!(!directory.is_another_than_maker(&with("bob", &["eve"]), "eve"));
        assert!(directory.is_another_than_maker(&bob, "eve"));
    }

    #[test]
    fn keys_made_by_a_global_administrator_are_different_people() {
        let everywhere = RealmPattern::parse("*").unwrap();
        let realms = Grants::one(everywhere, Roles::of(&[Role::Admin]));
        let root = ApiKey { by: LOCAL.into(), realms, ..key("r") };
        let ended = ApiKey { id: KeyId("s".into()), revoked: Some(Millis(2)), ..root.clone() };
        let keys = [root, ended, key("e")];
        let keys: HashMap<_, _> =
            keys.into_iter().map(|key| (key.id.clone(), Arc::new(key))).collect();
        let directory = Directory { keys: keys.into(), ..directory() };
        let with = |subject: &str, maker: &str| Caller {
            makers: std::iter::once(Arc::from(maker)).collect(),
            ..Caller::new("acme", subject)
        };
        for (maker, makes_for_all) in [("key:r", true), ("key:s", true), ("key:e", false)] {
            let is_other = directory.is_another_than_maker(&with("bob", maker), maker);
            assert_eq!(is_other, makes_for_all, "{maker}");
            // It stays the person who could use such a key itself.
            assert!(!directory.is_another_than_maker(&Caller::new("acme", maker), maker));
            assert!(!directory.is_another(&with("bob", maker), maker), "{maker}");
        }
    }

    #[test]
    fn answerers_are_named_by_role_and_by_principal() {
        let directory = directory();
        let realm = "acme".into();
        let named = |subject: &str, who: &str| directory.is_named(&realm, subject, who);
        assert!(named("corp:ann", "role:viewer") && !named("corp:ann", "role:member"));
        assert!(named("corp:ann", "principal:corp:ann") && !named("corp:ann", "principal:ann"));
        assert!(!named("corp:ann", "owner") && !named("corp:ann", "viewer"));
        assert!(!named("key:cccccccccc", "role:member"), "a revoked key has no role");
    }

    #[test]
    fn without_an_admin_key_the_admin_subject_is_unknown() {
        let directory = Directory { has_admin_key: false, ..directory() };
        assert!(directory.roles(&"acme".into(), ADMIN).is_empty());
        assert!(!directory.is_known(ADMIN));
        assert!(!Directory::default().is_known("key:aaaaaaaaaa"));
    }
}
