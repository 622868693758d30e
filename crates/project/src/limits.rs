//! `[limits]`: the limits of the kernel and those of endpoints, which are one table to an operator.

use crate::a2a_limits::A2aLimits;
use kernel::limits::{Limits, OutOfRange};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use std::ops::RangeInclusive;

/// The limit of the kernel behind which those of A2A stand: tasks are runs of contexts.
const BEFORE_A2A: &str = "context_runs_max";
const COUNT: usize = Limits::NAMES.len() + A2aLimits::NAMES.len();

/// All limits that can be set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettableLimits {
    pub kernel: Limits,
    pub a2a: A2aLimits,
}

impl SettableLimits {
    /// The names of all of them, for "did you mean".
    pub const NAMES: &'static [&'static str] = &names();

    /// The value of each of them by its name, in the order of the names.
    pub fn values(&self) -> Vec<(&'static str, u64)> {
        ordered(|| self.kernel.values().chain(self.a2a.values()))
    }

    /// What each of them bounds, by its name, in the order of the names.
    pub fn meanings() -> Vec<(&'static str, &'static str)> {
        ordered(|| Limits::meanings().chain(A2aLimits::meanings()))
    }

    /// The values that a limit can have; any for a name that is no limit's.
    pub fn range(name: &str) -> RangeInclusive<u64> {
        match A2aLimits::NAMES.contains(&name) {
            true => A2aLimits::range(name),
            false => Limits::range(name),
        }
    }

    /// The limits whose values they cannot have, by themselves or beside another limit.
    pub fn check(&self) -> Vec<OutOfRange> {
        let mut found = self.kernel.check();
        found.extend(self.a2a.out_of_range());
        found
    }
}

/// These, in the order of the names.
fn ordered<T, I: Iterator<Item = (&'static str, T)>>(
    all: impl Fn() -> I,
) -> Vec<(&'static str, T)> {
    let find = |name: &&'static str| all().find(|(known, _)| known == name);
    SettableLimits::NAMES.iter().filter_map(find).collect()
}

const fn names() -> [&'static str; COUNT] {
    let mut names = [""; COUNT];
    let mut count = 0;
    let mut kernel = 0;
    while kernel < Limits::NAMES.len() {
        names[count] = Limits::NAMES[kernel];
        count += 1;
        if is_same(Limits::NAMES[kernel], BEFORE_A2A) {
            let mut own = 0;
            while own < A2aLimits::NAMES.len() {
                names[count] = A2aLimits::NAMES[own];
                count += 1;
                own += 1;
            }
        }
        kernel += 1;
    }
    names
}

const fn is_same(one: &str, other: &str) -> bool {
    let one = one.as_bytes();
    let other = other.as_bytes();
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

impl<'de> Deserialize<'de> for SettableLimits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("SettableLimits", Self::NAMES, LimitsTable)
    }
}

/// The table as it is written.
struct LimitsTable;

impl<'de> Visitor<'de> for LimitsTable {
    type Value = SettableLimits;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of limits")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<SettableLimits, A::Error> {
        let mut limits = SettableLimits::default();
        while let Some(name) = values.next_key::<String>()? {
            let is_read =
                limits.kernel.read(&name, &mut values)? || limits.a2a.read(&name, &mut values)?;
            if !is_read {
                return Err(A::Error::unknown_field(&name, SettableLimits::NAMES));
            }
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// What is wrong with the settings where one limit has this value.
    fn mistakes(name: &str, value: u64) -> Vec<String> {
        let read = Config::parse("waypost.toml", &format!("[limits]\n{name} = {value}\n"));
        let mistakes = read.err().unwrap_or_default();
        mistakes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_limit_has_a_name_of_its_own_and_a_default_in_its_range() {
        let limits = SettableLimits::default();
        assert_eq!(limits.check(), Vec::<OutOfRange>::new());
        let names: Vec<&str> = limits.values().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, SettableLimits::NAMES);
        let is_twice = |name: &&str| names.iter().filter(|known| known == &name).count() > 1;
        assert_eq!(names.iter().copied().find(|name| is_twice(name)), None);
        assert_eq!(SettableLimits::meanings().len(), COUNT);
    }

    #[test]
    fn a_limit_of_a2a_is_set_and_kept_to_its_range() {
        let config = Config::parse("waypost.toml", "[limits]\na2a_hops_max = 3\n").unwrap();
        assert_eq!(config.a2a.limits, A2aLimits { a2a_hops_max: 3, ..A2aLimits::default() });
        for name in A2aLimits::NAMES.iter().copied() {
            let (min, max) = SettableLimits::range(name).into_inner();
            assert_eq!((mistakes(name, min), mistakes(name, max)), (Vec::new(), Vec::new()));
            let above = mistakes(name, max + 1).join("; ");
            let told = format!("`{name}` = {} is out of range: it can be {min} to {max}", max + 1);
            assert!(above.contains(&told), "{above}");
            if min > 0 {
                assert_eq!(mistakes(name, min - 1).len(), 1, "{name}");
            }
        }
    }

    #[test]
    fn zero_is_a_value_of_a2a_only_where_the_limit_says_what_it_means() {
        for (name, about) in A2aLimits::meanings() {
            let says = about.contains(" 0 ");
            assert_eq!(*A2aLimits::range(name).start() == 0, says, "{name}: {about}");
        }
    }
}
