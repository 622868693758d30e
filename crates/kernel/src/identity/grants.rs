//! Grants: the roles of a subject by realm pattern.

use crate::identity::roles::{Role, Roles};
use crate::values::ids::RealmId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// How many characters the name of a realm has at most.
const REALM_CHARS_MAX: usize = 63;

/// Path segments of endpoints that can also have a realm's name in the same position.
const RESERVED: [&str; 2] = ["v1", "tasks"];

/// How much of a wrong name is repeated.
const SHOWN_CHARS_MAX: usize = 80;

/// The roles in each realm. All that fit a realm add up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Grants(pub BTreeMap<RealmPattern, Roles>);

impl Grants {
    /// These roles in one realm, or in all realms that one pattern fits.
    pub fn one(realm: RealmPattern, roles: Roles) -> Self {
        Self(BTreeMap::from([(realm, roles)]))
    }

    /// The roles in this realm: those of all patterns that fit it.
    pub fn roles_in(&self, realm: &RealmId) -> Roles {
        let mut roles = Roles::default();
        for (pattern, held) in &self.0 {
            if pattern.fits(realm) {
                roles.add(held);
            }
        }
        roles
    }

    /// Whether this realm may be entered, with whatever roles.
    pub fn enters(&self, realm: &RealmId) -> bool {
        self.0.keys().any(|pattern| pattern.fits(realm))
    }

    /// Gives these roles in a realm, beside those that are there.
    pub fn give(&mut self, realm: RealmPattern, roles: &Roles) {
        self.0.entry(realm).or_default().add(roles);
    }

    /// Adds all of another's.
    pub fn add(&mut self, other: &Self) {
        for (realm, roles) in &other.0 {
            self.give(realm.clone(), roles);
        }
    }

    /// The same roles in those realms alone that one of these patterns fits as well.
    #[must_use]
    pub fn limited_to<'p, R>(&self, realms: R) -> Self
    where
        R: Iterator<Item = &'p RealmPattern> + Clone,
    {
        let mut limited = Self::default();
        for (own, roles) in &self.0 {
            for both in realms.clone().filter_map(|realm| own.both(realm)) {
                limited.give(both.clone(), roles);
            }
        }
        limited
    }

    /// The one realm that can be meant, where there is only one.
    pub fn only(&self) -> Option<RealmId> {
        let mut patterns = self.0.keys();
        match (patterns.next(), patterns.next()) {
            (Some(pattern), None) if pattern.is_exact() => Some(pattern.as_str().into()),
            _ => None,
        }
    }

    /// Whether someone with the grants of `maker` may see and end what has these: each of their
    /// realms must be one that `maker` administers.
    pub fn is_within(&self, maker: &Self) -> Result<(), ExceededGrant> {
        let administers = |realm: &RealmPattern| maker.holds(realm, Role::Admin.name());
        match self.0.keys().find(|realm| !administers(realm)) {
            Some(realm) => {
                Err(ExceededGrant { realm: realm.clone(), role: Role::Admin.name().into() })
            }
            None => Ok(()),
        }
    }

    /// Whether someone with the grants of `maker` may give these: it administers their realms, and
    /// has each role there that is not built in. What such a role permits only policies say, so
    /// that it can be more than an administrator may; who administers every realm gives them all.
    pub fn may_be_given_by(&self, maker: &Self) -> Result<(), ExceededGrant> {
        self.is_within(maker)?;
        let is_everywhere = |(own, roles): (&RealmPattern, &Roles)| {
            own.beginning() == Some("") && roles.has(Role::Admin)
        };
        if maker.0.iter().any(is_everywhere) {
            return Ok(());
        }
        for (realm, roles) in &self.0 {
            let mut others = roles.iter().filter(|role| Role::from_name(role).is_none());
            if let Some(role) = others.find(|role| !maker.holds(realm, role)) {
                return Err(ExceededGrant { realm: realm.clone(), role: role.clone() });
            }
        }
        Ok(())
    }

    /// Whether this role is held in every realm that fits the pattern.
    fn holds(&self, realm: &RealmPattern, role: &str) -> bool {
        self.0.iter().any(|(own, roles)| own.covers(realm) && roles.0.contains(role))
    }
}

/// Grants that reach further than those of who would give them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this needs the role `{role}` in `{realm}`")]
pub struct ExceededGrant {
    /// The first realm, or realms, where the maker lacks a role.
    pub realm: RealmPattern,
    /// The role: `admin`, or one that it does not have itself.
    pub role: Arc<str>,
}

/// The name of a realm, or the beginning of names and `*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RealmPattern(String);

/// A text that names no realm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRealm {
    /// It has characters that no name has, or too many or too few.
    #[error(
        "`{0}` is not the name of a realm; expected 1 to 63 characters of `a-z`, `0-9`, `.`, `_` \
         and `-` that begin with a letter or a digit"
    )]
    Name(String),
    /// It is a part of paths.
    #[error("`{0}` cannot be the name of a realm, because paths of the API contain it")]
    Reserved(String),
    /// It has a `*` that is not at its end.
    #[error("`{0}` has a `*` that is not at its end; expected a name, `<beginning>*` or `*`")]
    Star(String),
}

impl RealmPattern {
    pub fn parse(text: &str) -> Result<Self, BadRealm> {
        let beginning = text.strip_suffix('*');
        if beginning.unwrap_or(text).contains('*') {
            return Err(BadRealm::Star(shown(text)));
        }
        match beginning {
            None => check_realm(text)?,
            Some("") => {}
            Some(beginning) if begins_names(beginning) => {}
            Some(_) => return Err(BadRealm::Name(shown(text))),
        }
        Ok(Self(text.to_owned()))
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the name of one realm.
    pub fn is_exact(&self) -> bool {
        self.beginning().is_none()
    }

    /// Whether it fits this realm.
    pub fn fits(&self, realm: &RealmId) -> bool {
        match self.beginning() {
            Some(beginning) => realm.as_str().starts_with(beginning),
            None => realm.as_str() == self.0,
        }
    }

    /// Whether every realm that fits `other` fits this one as well.
    pub fn covers(&self, other: &Self) -> bool {
        match self.beginning() {
            Some(beginning) => other.beginning().unwrap_or(&other.0).starts_with(beginning),
            None => self == other,
        }
    }

    /// The realms that fit both; none where no realm does.
    fn both<'a>(&'a self, other: &'a Self) -> Option<&'a Self> {
        match (self.covers(other), other.covers(self)) {
            (true, _) => Some(other),
            (false, true) => Some(self),
            (false, false) => None,
        }
    }

    /// The prefix of names that it matches; `None` for an exact name.
    fn beginning(&self) -> Option<&str> {
        self.0.strip_suffix('*')
    }
}

impl fmt::Display for RealmPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for RealmPattern {
    type Error = BadRealm;

    fn try_from(text: String) -> Result<Self, BadRealm> {
        Self::parse(&text)
    }
}

impl From<RealmPattern> for String {
    fn from(pattern: RealmPattern) -> Self {
        pattern.0
    }
}

/// Whether a realm can have this name.
pub fn check_realm(name: &str) -> Result<(), BadRealm> {
    if !begins_names(name) {
        return Err(BadRealm::Name(shown(name)));
    }
    if RESERVED.contains(&name) {
        return Err(BadRealm::Reserved(shown(name)));
    }
    Ok(())
}

/// Whether names of realms can begin with this text, which is not empty.
fn begins_names(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= REALM_CHARS_MAX
        && text.bytes().next().is_some_and(is_plain)
        && text.bytes().all(|byte| is_plain(byte) || b"._-".contains(&byte))
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> RealmPattern {
        RealmPattern::parse(text).unwrap()
    }

    fn grants(entries: &[(&str, &[Role])]) -> Grants {
        Grants(entries.iter().map(|(realm, roles)| (pattern(realm), Roles::of(roles))).collect())
    }

    #[test]
    fn realm_names_are_short_lower_case_and_not_reserved_path_segments() {
        let longest = "a".repeat(REALM_CHARS_MAX);
        for good in ["a", "0", "default", "acme-eu", "a.b_c-", "v2", "v1.0", "task", &longest] {
            assert_eq!(check_realm(good), Ok(()), "{good}");
            assert_eq!(pattern(good).to_string(), good);
            assert!(pattern(good).is_exact());
        }
        let too_long = "a".repeat(REALM_CHARS_MAX + 1);
        for bad in ["", "Acme", "-a", ".a", "_a", "a b", "a/b", "a:b", "ä", "a\n", &too_long] {
            assert_eq!(check_realm(bad), Err(BadRealm::Name(bad.to_owned())));
            assert_eq!(RealmPattern::parse(bad), Err(BadRealm::Name(bad.to_owned())));
        }
        for reserved in ["v1", "tasks"] {
            assert_eq!(check_realm(reserved), Err(BadRealm::Reserved(reserved.to_owned())));
            assert!(RealmPattern::parse(reserved).is_err());
        }
    }

    #[test]
    fn a_star_stands_only_at_the_end() {
        let longest = format!("{}*", "a".repeat(REALM_CHARS_MAX));
        for good in ["*", "a*", "acme-*", "v1*", "tasks*", &longest] {
            assert_eq!(pattern(good).as_str(), good);
            assert!(!pattern(good).is_exact());
        }
        for bad in ["**", "a**", "*a", "a*b", "*-*", "a*b*"] {
            assert_eq!(RealmPattern::parse(bad), Err(BadRealm::Star(bad.to_owned())));
        }
        let too_long = format!("{}*", "a".repeat(REALM_CHARS_MAX + 1));
        for bad in ["-*", "A*", "a *", &too_long] {
            assert_eq!(RealmPattern::parse(bad), Err(BadRealm::Name(bad.to_owned())));
        }
        assert!(matches!(check_realm("*"), Err(BadRealm::Name(_))));
    }

    #[test]
    fn a_long_wrong_name_is_not_repeated_as_a_whole() {
        let given = "ö".repeat(10_000);
        assert_eq!(check_realm(&given), Err(BadRealm::Name("ö".repeat(SHOWN_CHARS_MAX))));
    }

    #[test]
    fn a_pattern_fits_the_names_that_begin_with_it() {
        let cases = [
            ("acme", "acme", true),
            ("acme", "acme-eu", false),
            ("acme", "acm", false),
            ("acme*", "acme", true),
            ("acme*", "acme-eu", true),
            ("acme-*", "acme", false),
            ("acme-*", "acme-eu", true),
            ("acme-*", "acmeeu", false),
            ("acme-*", "x-acme-eu", false),
            ("*", "default", true),
        ];
        for (text, realm, expected) in cases {
            assert_eq!(pattern(text).fits(&realm.into()), expected, "{text} {realm}");
        }
    }

    #[test]
    fn a_pattern_covers_what_fits_no_more_than_it() {
        let cases = [
            ("acme", "acme", true),
            ("acme", "acme*", false),
            ("acme", "*", false),
            ("acme", "other", false),
            ("acme*", "acme", true),
            ("acme*", "acme*", true),
            ("acme*", "acme-eu*", true),
            ("acme-*", "acme", false),
            ("acme-*", "acme*", false),
            ("acme-*", "*", false),
            ("*", "*", true),
            ("*", "acme-*", true),
            ("*", "acme", true),
        ];
        for (text, other, expected) in cases {
            assert_eq!(pattern(text).covers(&pattern(other)), expected, "{text} {other}");
        }
    }

    #[test]
    fn roles_of_all_matching_patterns_add_up() {
        let held = grants(&[
            ("acme", &[Role::Operator]),
            ("acme*", &[Role::Viewer]),
            ("other", &[Role::Admin]),
            ("empty", &[]),
        ]);
        let cases: [(&str, &[Role]); 5] = [
            ("acme", &[Role::Operator, Role::Viewer]),
            ("acme-eu", &[Role::Viewer]),
            ("other", &[Role::Admin]),
            ("empty", &[]),
            ("default", &[]),
        ];
        for (realm, roles) in cases {
            assert_eq!(held.roles_in(&realm.into()), Roles::of(roles), "{realm}");
        }
        // A realm without a role can be entered, where policies may permit something.
        assert!(held.enters(&"empty".into()));
        assert!(!held.enters(&"default".into()));
        assert!(!Grants::default().enters(&"default".into()));
    }

    #[test]
    fn a_single_exact_grant_selects_the_only_realm() {
        let only = |entries: &[(&str, &[Role])]| grants(entries).only();
        assert_eq!(only(&[("acme", &[Role::Viewer])]), Some("acme".into()));
        assert_eq!(only(&[("acme*", &[Role::Viewer])]), None);
        assert_eq!(only(&[("*", &[Role::Admin])]), None);
        assert_eq!(only(&[("acme", &[]), ("other", &[])]), None);
        assert_eq!(Grants::default().only(), None);
        let one = Grants::one(pattern("acme"), Roles::of(&[Role::Viewer]));
        assert_eq!(one, grants(&[("acme", &[Role::Viewer])]));
    }

    #[test]
    fn limiting_grants_keeps_realms_that_match_both() {
        let held = grants(&[("acme", &[Role::Operator]), ("acme-*", &[Role::Viewer])]);
        let limited = |realms: &[&str]| {
            let realms: Vec<_> = realms.iter().map(|realm| pattern(realm)).collect();
            held.limited_to(realms.iter())
        };
        assert_eq!(limited(&["*"]), held);
        let fewer = grants(&[("acme", &[Role::Operator]), ("acme-eu", &[Role::Viewer])]);
        assert_eq!(limited(&["acme", "acme-eu"]), fewer);
        assert_eq!(limited(&["acme-eu*"]), grants(&[("acme-eu*", &[Role::Viewer])]));
        assert_eq!(limited(&["other", "acm"]), Grants::default());
        assert_eq!(limited(&[]), Grants::default());
        let mut both = grants(&[("acme", &[Role::Viewer]), ("other", &[])]);
        both.add(&held);
        let roles = both.roles_in(&"acme".into());
        assert_eq!(roles, Roles::of(&[Role::Operator, Role::Viewer]));
        assert!(both.enters(&"other".into()) && both.enters(&"acme-eu".into()));
    }

    #[test]
    fn grants_are_within_what_their_maker_administers() {
        let within = |given: &[(&str, &[Role])], maker: &[(&str, &[Role])]| {
            grants(given).is_within(&grants(maker)).map_err(|exceeds| exceeds.realm.to_string())
        };
        let beyond = |realm: &str| -> Result<(), String> { Err(realm.to_owned()) };
        let acme: &[(&str, &[Role])] = &[("acme", &[Role::Admin])];
        assert_eq!(within(&[("acme", &[Role::Admin])], acme), Ok(()));
        assert_eq!(within(&[("acme", &[Role::Viewer, Role::Operator])], acme), Ok(()));
        assert_eq!(within(&[("acme", &[])], acme), Ok(()));
        assert_eq!(within(&[], acme), Ok(()));
        assert_eq!(within(&[("acme*", &[Role::Viewer])], acme), beyond("acme*"));
        assert_eq!(within(&[("*", &[])], acme), beyond("*"));
        assert_eq!(within(&[("acme", &[]), ("other", &[])], acme), beyond("other"));

        let family: &[(&str, &[Role])] = &[("acme-*", &[Role::Admin])];
        assert_eq!(within(&[("acme-eu", &[]), ("acme-us*", &[])], family), Ok(()));
        assert_eq!(within(&[("acme", &[])], family), beyond("acme"));
        assert_eq!(within(&[("acme*", &[])], family), beyond("acme*"));

        let server: &[(&str, &[Role])] = &[("*", &[Role::Admin])];
        assert_eq!(within(&[("*", &[Role::Admin]), ("acme", &[])], server), Ok(()));

        // Administration of one realm says nothing of those where another pattern gives a role.
        let mixed: &[(&str, &[Role])] = &[("*", &[Role::Viewer]), ("acme", &[Role::Admin])];
        assert_eq!(within(&[("acme", &[Role::Viewer])], mixed), Ok(()));
        assert_eq!(within(&[("other", &[Role::Viewer])], mixed), beyond("other"));
    }

    #[test]
    fn only_administrators_can_give_roles() {
        for role in [Role::Viewer, Role::Member, Role::Approver, Role::Operator] {
            let own = grants(&[("acme", &[role])]);
            let exceeds = own.is_within(&own).unwrap_err();
            assert_eq!(exceeds, ExceededGrant { realm: pattern("acme"), role: "admin".into() });
            assert_eq!(exceeds.to_string(), "this needs the role `admin` in `acme`");
        }
        let unknown: Roles = [Arc::<str>::from("owner")].into_iter().collect();
        let own = Grants::one(pattern("acme"), unknown);
        assert!(own.is_within(&own).is_err());
        assert!(own.is_within(&Grants::default()).is_err());
    }

    #[test]
    fn a_role_that_only_policies_know_is_given_by_who_has_it_there() {
        let read = |text: &str| -> Grants { serde_json::from_str(text).unwrap() };
        let given = |maker: &str, given: &str| {
            read(given).may_be_given_by(&read(maker)).map_err(|exceeds| exceeds.to_string())
        };
        let lacks = |role: &str, realm: &str| -> Result<(), String> {
            Err(format!("this needs the role `{role}` in `{realm}`"))
        };
        let support = r#"{"acme": ["member", "support"]}"#;
        assert_eq!(given(r#"{"acme": ["admin"]}"#, support), lacks("support", "acme"));
        assert_eq!(given(r#"{"acme": ["support"]}"#, support), lacks("admin", "acme"));
        assert_eq!(given(r#"{"acme": ["admin", "support"]}"#, support), Ok(()));
        assert_eq!(given(r#"{"acme": ["admin"], "ac*": ["support"]}"#, support), Ok(()));
        assert_eq!(given(r#"{"*": ["admin"]}"#, support), Ok(()));
        let elsewhere = r#"{"acme": ["admin"], "other": ["support"]}"#;
        assert_eq!(given(elsewhere, support), lacks("support", "acme"));
        let family = r#"{"acme*": ["admin"], "acme": ["support"]}"#;
        assert_eq!(given(family, r#"{"acme-eu": ["support"]}"#), lacks("support", "acme-eu"));
        // Whoever administers a realm gives every role that is built in.
        let all = r#"{"acme": ["admin", "approver", "member", "operator", "viewer"]}"#;
        assert_eq!(given(r#"{"acme": ["admin"]}"#, all), Ok(()));
        assert!(read(support).is_within(&read(r#"{"acme": ["admin"]}"#)).is_ok(), "it is seen");
    }

    #[test]
    fn grants_round_trip_and_their_patterns_are_validated() {
        let text = r#"{"acme":["auditor","operator"],"acme-*":["viewer"]}"#;
        let held: Grants = serde_json::from_str(text).unwrap();
        assert!(held.roles_in(&"acme".into()).has(Role::Operator));
        assert_eq!(serde_json::to_string(&held).unwrap(), text);
        for bad in [r#"{"Acme":[]}"#, r#"{"a*b":[]}"#, r#"{"v1":[]}"#, r#"{"":[]}"#, "[]"] {
            assert!(serde_json::from_str::<Grants>(bad).is_err(), "{bad}");
        }
    }
}
