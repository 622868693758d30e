//! Fair queue: of all that waits, the next is of another realm, and within its realm of another
//! caller. So nobody waits for all requests of another one.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Waiting items by realm and then by caller. Empty queues are dropped.
#[derive(Debug)]
pub struct FairQueue<R, C, T> {
    realms: HashMap<R, Realm<C, T>>,
    /// The realms in the order of their turns.
    order: VecDeque<R>,
}

#[derive(Debug)]
struct Realm<C, T> {
    callers: HashMap<C, VecDeque<T>>,
    order: VecDeque<C>,
    count: usize,
}

impl<R, C, T> Default for FairQueue<R, C, T> {
    fn default() -> Self {
        Self { realms: HashMap::new(), order: VecDeque::new() }
    }
}

impl<R: Clone + Eq + Hash, C: Clone + Eq + Hash, T> FairQueue<R, C, T> {
    /// Something that waits from now on, behind what its caller has already.
    pub fn push(&mut self, realm: &R, caller: &C, item: T) {
        if let Some(known) = self.realms.get_mut(realm) {
            return known.push(caller, item);
        }
        let mut new = Realm { callers: HashMap::new(), order: VecDeque::new(), count: 0 };
        new.push(caller, item);
        self.realms.insert(realm.clone(), new);
        self.order.push_back(realm.clone());
    }

    /// The next. Its realm is the last one then, and its caller the last one of the realm.
    pub fn pop(&mut self) -> Option<T> {
        let name = self.order.pop_front()?;
        let realm = self.realms.get_mut(&name)?;
        let next = realm.pop();
        match realm.order.is_empty() {
            true => drop(self.realms.remove(&name)),
            false => self.order.push_back(name),
        }
        next
    }

    /// How much waits of a realm.
    pub fn of_realm(&self, realm: &R) -> usize {
        self.realms.get(realm).map_or(0, |realm| realm.count)
    }

    /// How much of that is a caller's.
    pub fn of_caller(&self, realm: &R, caller: &C) -> usize {
        let line = self.realms.get(realm).and_then(|realm| realm.callers.get(caller));
        line.map_or(0, VecDeque::len)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.realms.is_empty()
    }
}

impl<C: Clone + Eq + Hash, T> Realm<C, T> {
    fn push(&mut self, caller: &C, item: T) {
        self.count += 1;
        if let Some(line) = self.callers.get_mut(caller) {
            return line.push_back(item);
        }
        self.callers.insert(caller.clone(), VecDeque::from([item]));
        self.order.push_back(caller.clone());
    }

    fn pop(&mut self) -> Option<T> {
        let caller = self.order.pop_front()?;
        let line = self.callers.get_mut(&caller)?;
        let next = line.pop_front()?;
        self.count -= 1;
        match line.is_empty() {
            true => drop(self.callers.remove(&caller)),
            false => self.order.push_back(caller),
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fair_queue_alternates_realms_and_then_callers() {
        let mut turns = FairQueue::default();
        for number in 0..3 {
            turns.push(&"red", &"ann", ("ann", number));
        }
        turns.push(&"red", &"bob", ("bob", 0));
        turns.push(&"blue", &"eve", ("eve", 0));
        turns.push(&"blue", &"ann", ("blue ann", 0));
        assert_eq!((turns.of_realm(&"red"), turns.of_realm(&"blue")), (4, 2));
        assert_eq!((turns.of_caller(&"red", &"ann"), turns.of_caller(&"blue", &"ann")), (3, 1));
        let order: Vec<_> = std::iter::from_fn(|| turns.pop()).collect();
        let wanted = [("ann", 0), ("eve", 0), ("bob", 0), ("blue ann", 0), ("ann", 1), ("ann", 2)];
        assert_eq!(order, wanted);
        assert!(turns.is_empty() && turns.of_realm(&"red") == 0);
    }
}
