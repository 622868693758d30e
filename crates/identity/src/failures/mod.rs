//! Rate limit for failed credentials, per address. Only failures count and only failures are
//! refused: a valid credential is accepted from every address, so nobody can be locked out by
//! others.

pub(crate) mod audit;

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// So many addresses are remembered; one more, and the oldest is forgotten.
pub const ADDRESSES_MAX: usize = 4_096;
/// So many failures of one address are answered as what they are, in each minute.
pub const FAILURES_MAX: u32 = 30;
/// The minute: it begins with an address's first failure.
const MINUTE: Duration = Duration::from_secs(60);
/// Of an IPv6 address the first half: the other half is its owner's to choose.
const NETWORK: u128 = !(u64::MAX as u128);

/// Failed attempts per address.
#[derive(Debug, Default)]
pub struct Failures {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    minutes: HashMap<IpAddr, Minute>,
    /// The addresses in the order in which their minutes began: each of the map, once.
    order: VecDeque<IpAddr>,
}

/// Failures of an address within one minute.
#[derive(Debug)]
struct Minute {
    began: Duration,
    failures: u32,
}

impl Failures {
    /// Counts a failure at this moment of `Clock::elapsed`. An address that had too many learns how
    /// long it has to wait.
    pub fn note(&self, from: IpAddr, now: Duration) -> Result<(), Duration> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.forget_past(now);
        let minute = table.minute(counted(from), now);
        if minute.failures >= FAILURES_MAX {
            return Err((minute.began + MINUTE).saturating_sub(now));
        }
        minute.failures += 1;
        Ok(())
    }

    /// How long an address has to wait that had too many failures, without counting another one.
    pub fn check(&self, from: IpAddr, now: Duration) -> Result<(), Duration> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.forget_past(now);
        match table.minutes.get(&counted(from)) {
            Some(minute) if minute.failures >= FAILURES_MAX => {
                Err((minute.began + MINUTE).saturating_sub(now))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Table {
    /// Forgets the addresses whose minute is over.
    fn forget_past(&mut self, now: Duration) {
        while let Some(oldest) = self.order.front() {
            let began = self.minutes.get(oldest).map(|minute| minute.began);
            if began.is_some_and(|began| now < began + MINUTE) {
                return;
            }
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.order.pop_front() {
            self.minutes.remove(&oldest);
        }
    }

    /// The minute of an address; one begins now where there is none.
    fn minute(&mut self, address: IpAddr, now: Duration) -> &mut Minute {
        if !self.minutes.contains_key(&address) {
            if self.order.len() >= ADDRESSES_MAX {
                self.forget_oldest();
            }
            self.order.push_back(address);
        }
        self.minutes.entry(address).or_insert(Minute { began: now, failures: 0 })
    }
}

/// The address under which what strangers do is counted: of IPv6, a whole network.
pub fn counted(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & NETWORK).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(1_000);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Counts as many failures as are answered.
    fn fill(failures: &Failures, from: IpAddr, now: Duration) {
        for _ in 0..FAILURES_MAX {
            assert_eq!(failures.note(from, now), Ok(()));
        }
    }

    #[test]
    fn failures_are_limited_per_address() {
        let failures = Failures::default();
        let ann = address("192.0.2.1");
        fill(&failures, ann, START);
        assert_eq!(failures.note(ann, START), Err(MINUTE));
        let later = START + Duration::from_millis(59_500);
        assert_eq!(failures.note(ann, later), Err(Duration::from_millis(500)));
        assert_eq!(failures.note(address("192.0.2.2"), later), Ok(()));
        assert_eq!(failures.check(ann, later), Err(Duration::from_millis(500)));
        assert_eq!(failures.check(address("192.0.2.3"), later), Ok(()));
        assert_eq!(failures.check(ann, START + MINUTE), Ok(()));
        fill(&failures, ann, START + MINUTE);
        assert!(failures.note(ann, START + MINUTE).is_err());
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let failures = Failures::default();
        fill(&failures, address("2001:db8:0:1::1"), START);
        assert!(failures.note(address("2001:db8:0:1:ffff:ffff:ffff:ffff"), START).is_err());
        assert_eq!(failures.note(address("2001:db8:0:2::1"), START), Ok(()));
        fill(&failures, address("::ffff:192.0.2.1"), START);
        assert!(failures.note(address("192.0.2.1"), START).is_err(), "the same machine");
        assert_eq!(failures.note(address("192.0.2.2"), START), Ok(()));
    }

    #[test]
    fn the_failure_table_is_bounded_and_evicts_the_oldest() {
        let failures = Failures::default();
        let of = |number: usize| IpAddr::from(u32::try_from(number).unwrap().to_be_bytes());
        fill(&failures, of(0), START);
        fill(&failures, of(1), START);
        for number in 2..=ADDRESSES_MAX {
            assert_eq!(failures.note(of(number), START), Ok(()));
        }
        let table = failures.table.lock().unwrap();
        assert_eq!((table.minutes.len(), table.order.len()), (ADDRESSES_MAX, ADDRESSES_MAX));
        drop(table);
        assert!(failures.note(of(1), START).is_err(), "still known");
        assert_eq!(failures.note(of(0), START), Ok(()), "forgotten");
        assert_eq!(failures.note(of(0), START + MINUTE), Ok(()));
        let table = failures.table.lock().unwrap();
        assert_eq!((table.minutes.len(), table.order.len()), (1, 1), "all others are over");
    }
}
