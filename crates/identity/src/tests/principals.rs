//! Principals: who they are, what their keys are worth, who may change them, and that disabling one
//! ends all that it shows.

use super::{NOW, Stage, grants, maker, new_key, root};
use crate::keys::{KeyRefusal, KeyWithText, Maker, NewKey};
use crate::policy::RolePolicy;
use crate::principals::{PrincipalRefusal, SeenPrincipal, mistakes};
use crate::realms::RealmRefusal;
use crate::{IdentityError, Standing, VerifiedCaller};
use kernel::contracts::policy::{Context, Policy, Request, Resource, SessionFacts};
use kernel::identity::grants::{ExceededGrant, Grants, RealmPattern};
use kernel::identity::issuer::IssuerEntry;
use kernel::identity::principal::{Clash, Origin, Principal};
use kernel::identity::roles::{Role, Roles};
use kernel::values::caller::{Act, Caller};
use std::sync::Arc;

fn principal(id: &str, realm: &str, roles: &[Role]) -> Principal {
    Principal::new(id, grants(realm, roles))
}

fn with_identity(principal: Principal, identity: &str) -> Principal {
    let identities = [Arc::<str>::from(identity)].into_iter().collect();
    Principal { identities, ..principal }
}

/// A stage whose file has these.
async fn knowing(principals: Vec<Principal>) -> Stage {
    Stage::knowing(Arc::default(), Arc::default(), Vec::new(), principals).await
}

fn key_of(id: &str, realms: Grants) -> NewKey {
    NewKey { of: Some(id.into()), realms, ..new_key("acme", &[]) }
}

impl Stage {
    async fn put(&self, maker: &Maker, principal: Principal) -> Result<u64, PrincipalRefusal> {
        let seen = self.identity.put_principal(maker, principal, None).await?;
        Ok(seen.version().unwrap())
    }

    async fn key_of(&self, id: &str) -> KeyWithText {
        self.identity.create(&root(), key_of(id, Grants::default())).await.unwrap()
    }

    /// Who changes something with this key.
    fn maker_with(&self, made: &KeyWithText) -> Maker {
        let VerifiedCaller { subject, key, realms, .. } = self.who(made.text.expose()).unwrap();
        Maker { subject, key, grants: Grants::clone(&realms), ..root() }
    }

    fn ids(&self, maker: &Maker) -> Vec<String> {
        let seen = self.identity.list_principals(maker);
        seen.iter().map(|seen| seen.known.principal.id.to_string()).collect()
    }
}

#[tokio::test]
async fn a_principals_key_has_the_principals_current_roles() {
    let stage = knowing(vec![principal("ann", "acme*", &[Role::Member])]).await;
    let made = stage.key_of("ann").await;
    assert_eq!(made.stored.key.realms, grants("acme*", &[]), "it has no roles of its own");
    let verified = stage.who(made.text.expose()).unwrap();
    let expected = ("ann", &grants("acme*", &[Role::Member]));
    assert_eq!((&*verified.subject, &*verified.realms), expected);
    assert_eq!(verified.key, Some(made.stored.key.id.clone()));

    let narrow = key_of("ann", grants("acme-eu", &[]));
    let narrow = stage.identity.create(&root(), narrow).await.unwrap();
    let entered = stage.who(narrow.text.expose()).unwrap().realms;
    assert_eq!(*entered, grants("acme-eu", &[Role::Member]));

    // What the principal loses, its keys lose, and what it gains elsewhere they do not get.
    stage.identity.take_principals(vec![Arc::new(principal("ann", "acme", &[Role::Viewer]))]);
    let realms = |made: &KeyWithText| stage.who(made.text.expose()).unwrap().realms;
    assert_eq!(*realms(&made), grants("acme", &[Role::Viewer]));
    assert_eq!(*realms(&narrow), Grants::default());
    stage.identity.take_principals(vec![Arc::new(principal("ann", "*", &[Role::Admin]))]);
    assert_eq!(*realms(&made), grants("acme*", &[Role::Admin]));

    stage.identity.take_principals(Vec::new());
    let why = "the principal of the key is disabled, or not there any more";
    assert_eq!(stage.why(made.text.expose()), why);
}

#[tokio::test]
async fn a_key_needs_an_existing_principal_with_access_to_its_realms() {
    let stage = knowing(vec![principal("ann", "acme", &[Role::Member])]).await;
    for (id, realm) in [("bob", "acme"), ("ann", "other"), ("Ann", "acme")] {
        let refused = stage.identity.create(&root(), key_of(id, grants(realm, &[]))).await;
        assert_eq!(refused.unwrap_err(), KeyRefusal::NoPrincipal, "{id} {realm}");
    }
    // Who administers another realm cannot tell one that is there from one that is not.
    let told = async |id: &str, realms: Grants| {
        stage.identity.create(&maker("other"), key_of(id, realms)).await.unwrap_err()
    };
    for id in ["ann", "zoe"] {
        assert_eq!(told(id, Grants::default()).await, KeyRefusal::NoPrincipal, "{id}");
        assert_eq!(told(id, grants("other", &[])).await, KeyRefusal::NoPrincipal, "{id}");
        let named = told(id, grants("acme", &[])).await;
        assert!(matches!(named, KeyRefusal::Exceeds(_)), "{id}: {named}");
    }
    stage.identity.disable_principal(&root(), "ann").await.unwrap();
    let refused = stage.identity.create(&root(), key_of("ann", Grants::default())).await;
    assert_eq!(refused.unwrap_err(), KeyRefusal::NoPrincipal);
}

#[tokio::test]
async fn disabling_ends_keys_and_runs_at_once_and_survives_a_restart() {
    let stage = knowing(vec![principal("ann", "acme", &[Role::Admin])]).await;
    let made = stage.key_of("ann").await;
    let verified = stage.who(made.text.expose()).unwrap();
    let policy = RolePolicy::new(stage.identity.clone());
    let ann = Caller::new("acme", "ann");
    let runs = || {
        let act = Act::Run;
        let resource = Resource::Plan("a");
        let request = Request { act, subject: &ann, resource, context: Context::default() };
        policy.decide(&request).allows()
    };
    assert!(runs());
    let maker = Maker { subject: "ann".into(), grants: Grants::clone(&verified.realms), ..root() };
    let seen = stage.identity.disable_principal(&root(), "ann").await.unwrap();
    assert_eq!((seen.known.origin, seen.known.disabled), (Origin::File, Some(NOW)));
    assert_eq!(seen.version(), None, "the file has it");
    assert!(!runs() && stage.who(made.text.expose()).is_err());
    assert_eq!(stage.identity.standing(&verified), Standing::Ended);
    let late = stage.identity.create(&maker, new_key("acme", &[Role::Member])).await;
    assert_eq!(late.unwrap_err(), KeyRefusal::MakerRevoked);
    let late = stage.put(&maker, principal("bob", "acme", &[])).await;
    assert_eq!(late, Err(PrincipalRefusal::MakerRevoked));

    let file = vec![principal("ann", "acme", &[Role::Admin])];
    let store = stage.store.clone();
    let clock = stage.clock.clone();
    let again = Stage::knowing(store, clock, Vec::new(), file).await;
    assert!(again.who(made.text.expose()).is_err(), "also after a restart");
    again.identity.enable_principal(&root(), "ann").await.unwrap();
    assert!(again.who(made.text.expose()).is_ok());
}

#[tokio::test]
async fn a_principal_changes_nothing_with_a_key_that_was_revoked() {
    let stage = knowing(vec![principal("ann", "*", &[Role::Admin])]).await;
    let lost = stage.key_of("ann").await;
    let kept = stage.key_of("ann").await;
    let late = stage.maker_with(&lost);
    let ann = stage.maker_with(&kept);
    assert_eq!(late.subject, ann.subject);
    stage.identity.revoke(&root(), &lost.stored.key.id).await.unwrap();
    let made = stage.identity.create(&late, new_key("acme", &[Role::Member])).await;
    assert_eq!(made.unwrap_err(), KeyRefusal::MakerRevoked);
    let put = stage.put(&late, principal("bob", "acme", &[])).await;
    assert_eq!(put, Err(PrincipalRefusal::MakerRevoked));
    let realm = stage.identity.create_realm(&late, "acme").await;
    assert_eq!(realm.unwrap_err(), RealmRefusal::MakerRevoked);
    assert_eq!(stage.put(&ann, principal("bob", "acme", &[Role::Viewer])).await, Ok(1));
}

#[tokio::test]
async fn a_pending_revocation_precedes_changes_by_its_key() {
    let stage = knowing(vec![principal("ann", "*", &[Role::Admin])]).await;
    let made = stage.key_of("ann").await;
    let ann = stage.maker_with(&made);
    let root = root();
    stage.store.held.send_replace(true);
    let changes = async {
        let is_written = || stage.store.held.receiver_count() > 0;
        for _ in 0..1_000 {
            if is_written() {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert!(is_written(), "waited 1,000 turns in vain for the revocation to be written");
        futures::join!(
            stage.put(&ann, principal("bob", "acme", &[])),
            stage.identity.create_realm(&ann, "acme"),
            async { stage.store.held.send_replace(false) },
        )
    };
    let revoking = stage.identity.revoke(&root, &made.stored.key.id);
    let (revoked, (put, realm, _)) = futures::join!(revoking, changes);
    assert!(revoked.is_ok(), "{revoked:?}");
    assert_eq!(put, Err(PrincipalRefusal::MakerRevoked));
    assert_eq!(realm.unwrap_err(), RealmRefusal::MakerRevoked);
}

#[tokio::test]
async fn principals_of_the_file_cannot_be_changed_over_the_api() {
    let stage = knowing(vec![principal("ann", "acme", &[Role::Member])]).await;
    let changed = stage.put(&root(), principal("ann", "acme", &[Role::Admin])).await;
    assert_eq!(changed, Err(PrincipalRefusal::InFile));
    assert!(changed.unwrap_err().to_string().contains("principals.yaml"));
    assert_eq!(stage.put(&root(), principal("bob", "acme", &[Role::Viewer])).await, Ok(1));
    assert_eq!(stage.put(&root(), principal("bob", "acme", &[Role::Member])).await, Ok(2));
    assert_eq!(stage.ids(&root()), ["ann", "bob"]);
    let bob = stage.identity.principal(&root(), "bob").unwrap();
    let SeenPrincipal { known, stored } = bob;
    assert_eq!(known.origin, Origin::Stored);
    assert_eq!(known.principal.realms, grants("acme", &[Role::Member]));
    assert_eq!(&*stored.unwrap().record.by, "admin");
}

#[tokio::test]
async fn each_change_is_audited_in_its_realm_or_in_the_server_chain() {
    let stage = knowing(vec![principal("ann", "*", &[Role::Member])]).await;
    let eve = Maker { actor: Some("eve".into()), ..root() };
    stage.put(&eve, principal("bob", "acme", &[Role::Viewer])).await.unwrap();
    stage.put(&root(), principal("bob", "acme", &[Role::Member])).await.unwrap();
    stage.put(&maker("other"), principal("bob", "acme", &[])).await.unwrap_err();
    stage.identity.disable_principal(&root(), "ann").await.unwrap();
    stage.identity.enable_principal(&root(), "ann").await.unwrap();
    let entries = stage.store.entries.lock().unwrap().clone();
    let told: Vec<(&str, &str, Option<&str>)> = entries
        .iter()
        .flat_map(|(chain, row)| row.iter().map(move |entry| (chain, entry)))
        .map(|(chain, entry)| (chain.as_str(), &*entry.act, entry.object.id.as_deref()))
        .collect();
    let expected = [
        ("acme", "principal.create", Some("bob")),
        ("acme", "principal.update", Some("bob")),
        ("*", "principal.disable", Some("ann")),
        ("*", "principal.enable", Some("ann")),
    ];
    assert_eq!(told, expected);
    let first = &entries[0].1[0];
    assert_eq!((&*first.subject, first.actor.as_deref()), ("admin", Some("eve")));
    assert_eq!(first.detail.as_ref().unwrap()["realms"]["acme"][0], "viewer");
}

#[tokio::test]
async fn a_principal_is_stored_against_the_version_that_was_read() {
    let stage = Stage::open().await;
    let put = async |expected: Option<u64>| {
        let principal = principal("ann", "acme", &[]);
        let put = stage.identity.put_principal(&root(), principal, expected).await;
        put.map(|seen| seen.version().unwrap())
    };
    assert_eq!(put(Some(1)).await, Err(PrincipalRefusal::Stale));
    assert_eq!(put(Some(0)).await, Ok(1));
    assert_eq!(put(Some(0)).await, Err(PrincipalRefusal::Stale));
    assert_eq!(put(Some(1)).await, Ok(2));
    assert_eq!(put(None).await, Ok(3));
}

#[tokio::test]
async fn administrators_see_and_change_only_what_they_administer() {
    let issuer = |name: &str, realm: &str| {
        let realms = grants(realm, &[]).0.into_keys().collect();
        IssuerEntry { realms, ..IssuerEntry::new(name, format!("https://{name}.test")) }
    };
    let issuers = vec![issuer("corp", "*"), issuer("shop", "acme")];
    let file = vec![principal("root", "*", &[Role::Admin])];
    let stage = Stage::knowing(Arc::default(), Arc::default(), issuers, file).await;
    let acme = maker("acme");
    let plain = || principal("bob", "acme", &[Role::Admin]);
    assert_eq!(stage.put(&acme, plain()).await, Ok(1));
    for wider in [
        principal("bob", "*", &[]),
        principal("bob", "other", &[Role::Viewer]),
        with_identity(plain(), "corp:1"),
        with_identity(plain(), "local"),
    ] {
        let refused = stage.put(&acme, wider.clone()).await;
        assert!(matches!(refused, Err(PrincipalRefusal::Exceeds(_))), "{wider:?}");
    }
    // An issuer whose tokens enter no other realm is the administrator's own matter.
    assert_eq!(stage.put(&acme, with_identity(plain(), "shop:1")).await, Ok(2));
    assert_eq!(stage.put(&root(), with_identity(plain(), "corp:1")).await, Ok(3));
    assert_eq!(stage.put(&acme, plain()).await, Err(PrincipalRefusal::Taken));
    let taken = stage.put(&acme, principal("root", "acme", &[])).await;
    assert_eq!(taken, Err(PrincipalRefusal::Taken));
    // Nor is it told whom a new one could be taken for.
    let alike = stage.put(&acme, principal("Root", "acme", &[])).await;
    assert_eq!(alike, Err(PrincipalRefusal::Taken));
    let hidden = with_identity(principal("dan", "other", &[]), "shop:2");
    assert_eq!(stage.put(&root(), hidden).await, Ok(1));
    let same = with_identity(principal("eve", "acme", &[]), "shop:2");
    assert_eq!(stage.put(&acme, same.clone()).await, Err(PrincipalRefusal::Taken));
    let told = stage.put(&root(), same).await;
    assert!(matches!(told, Err(PrincipalRefusal::Clash(_))), "{told:?}");
    let unseen = stage.identity.disable_principal(&acme, "root").await;
    assert_eq!(unseen.unwrap_err(), PrincipalRefusal::Unknown);
    assert!(stage.ids(&acme).is_empty() && stage.identity.principal(&acme, "bob").is_none());
    let operator = Maker { grants: grants("acme", &[Role::Operator]), ..root() };
    let refused = stage.put(&operator, principal("cyn", "acme", &[Role::Viewer])).await;
    assert!(matches!(refused, Err(PrincipalRefusal::Exceeds(_))), "{refused:?}");
}

#[tokio::test]
async fn a_policy_role_can_be_given_only_by_its_holders() {
    let roles = |names: &[&str]| -> Roles { names.iter().map(|name| Arc::from(*name)).collect() };
    let acme = || RealmPattern::parse("acme").unwrap();
    let leading = || Principal::new("bob", Grants::one(acme(), roles(&["approver", "lead"])));
    let stage = knowing(Vec::new()).await;
    let admin = maker("acme");
    let lacks = ExceededGrant { realm: acme(), role: "lead".into() };
    let refused = stage.put(&admin, leading()).await;
    assert_eq!(refused, Err(PrincipalRefusal::Exceeds(lacks.clone())));
    let both = Maker { grants: Grants::one(acme(), roles(&["admin", "lead"])), ..root() };
    assert_eq!(stage.put(&both, leading()).await, Ok(1));

    // Nor does it get the role by a text of a key that gives it.
    let key = || key_of("bob", Grants::default());
    let refused = stage.identity.create(&admin, key()).await.unwrap_err();
    assert_eq!(refused, KeyRefusal::Exceeds(lacks.clone()));
    let made = stage.identity.create(&both, key()).await.unwrap();
    let id = &made.stored.key.id;
    let refused = stage.identity.rotate(&admin, id, 0).await.unwrap_err();
    assert_eq!(refused, KeyRefusal::Exceeds(lacks.clone()));
    assert!(stage.is_good(&made.text), "nothing was changed");
    // Nor does it change who has it, which could be to itself; what is in its realm it can end.
    assert_eq!(stage.put(&admin, leading()).await, Err(PrincipalRefusal::Exceeds(lacks)));
    assert!(stage.identity.revoke(&admin, id).await.is_ok());
    assert_eq!(stage.put(&admin, principal("bob", "acme", &[Role::Approver])).await, Ok(2));
    assert!(stage.identity.create(&admin, key()).await.is_ok(), "it has no such role any more");
}

#[tokio::test]
async fn an_identity_belongs_to_at_most_one_principal() {
    let issuers = || vec![IssuerEntry::new("corp", "https://corp.test")];
    let ann = with_identity(principal("ann", "acme", &[]), "corp:1");
    let file = vec![ann.clone()];
    let stage = Stage::knowing(Arc::default(), Arc::default(), issuers(), file).await;
    let taken = stage.put(&root(), with_identity(principal("bob", "acme", &[]), "corp:1")).await;
    let clash = |identity: &str| {
        let id = "bob".into();
        let other = "ann".into();
        Clash::Identity { id, other, identity: identity.into() }
    };
    assert_eq!(taken, Err(PrincipalRefusal::Clash(clash("corp:1"))));
    let alike = stage.put(&root(), principal("ANN", "acme", &[])).await;
    let other = Clash::Ids { id: "ANN".into(), other: "ann".into() };
    assert_eq!(alike, Err(PrincipalRefusal::Clash(other)));

    // A file that comes later is not taken, and at a start it is refused.
    let bob = with_identity(principal("bob", "acme", &[]), "corp:2");
    assert_eq!(stage.put(&root(), bob).await, Ok(1));
    let thief = Arc::new(with_identity(ann, "corp:2"));
    let found = stage.identity.check_principals(std::slice::from_ref(&thief));
    assert_eq!(found.len(), 1);
    let told = found[0].to_string();
    assert!(told.starts_with("principals.yaml: error: at `/principals/ann`"), "{told}");
    assert_eq!(stage.identity.check_principals(&[]), []);
    assert_eq!(found, mistakes(&[clash("corp:2")]));
    let parts = stage.parts(issuers(), vec![thief]);
    let refused = crate::Identity::open(parts).await.err();
    assert!(matches!(refused, Some(IdentityError::Principals(_))));
}

#[tokio::test]
async fn data_of_local_mode_belongs_to_the_principal_named_local() {
    let ann = with_identity(principal("ann", "acme", &[Role::Member]), "local");
    let stage = knowing(vec![ann, principal("bob", "acme", &[Role::Member])]).await;
    let policy = RolePolicy::new(stage.identity.clone());
    let reads = |subject: &str, owner: Option<&str>, pipeline: Option<&str>| {
        let space = "session";
        let plan = None;
        let agent = None;
        let id = None;
        let facts = SessionFacts { owner, space, plan, agent, pipeline, id };
        let caller = Caller::new("acme", subject);
        let resource = Resource::Session(facts);
        let context = Context::default();
        policy.decide(&Request { act: Act::Read, subject: &caller, resource, context }).allows()
    };
    assert!(reads("ann", None, None) && reads("ann", Some("ann"), None));
    assert!(!reads("ann", Some("bob"), None));
    assert!(!reads("bob", None, None));
    assert!(!reads("ann", None, Some("trades")), "a case is its pipeline's");
    let directory = stage.identity.directory();
    assert_eq!(directory.roles(&"acme".into(), "local"), Roles::of(&[Role::Member]));
}
