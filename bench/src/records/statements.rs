//! Finding and counting in the product's store, in short turns beside the same statements by hand
//! on the same file. Both give rows as JSON values.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::hand::Hand;
use super::ours::Ours;
use super::wire::{STATUS, customer, of_customer};
use crate::Result;
use crate::load::median;
use crate::load::turns::Ratios;

/// How long a turn is.
const TURN: Duration = Duration::from_millis(250);
/// The least requests of a turn, however long they take.
const REQUESTS_MIN: usize = 5;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Page,
    PageWithTotal,
    Count,
}

/// What a request of each took, and how many times as long one of ours.
#[derive(Debug)]
pub struct Compared {
    pub hand: Duration,
    pub ours: Duration,
    pub times: Ratios,
}

/// Both sides, and how many customers there are.
pub struct Sides {
    hand: Hand,
    ours: Ours,
    customers: usize,
}

impl Sides {
    /// Opens both on this folder.
    pub async fn open(data: &Path, customers: usize) -> Result<Self> {
        let ours = Ours::open(data).await?;
        let hand = Hand::open(data)?;
        Ok(Self { hand, ours, customers })
    }

    /// Each for about `span`, in turns.
    pub async fn measure(&self, asked: Asked, span: Duration) -> Result<Compared> {
        self.must_agree(asked).await?;
        let turns = usize::try_from(span.as_millis().div_ceil(TURN.as_millis()))?;
        let mut hands = Vec::new();
        let mut all_ours = Vec::new();
        let mut times = Vec::new();
        for turn in 0..turns {
            // None of the two always comes first.
            let (hand, ours) = if turn % 2 == 0 {
                let hand = self.hand_turn(asked)?;
                (hand, self.our_turn(asked).await?)
            } else {
                let ours = self.our_turn(asked).await?;
                (self.hand_turn(asked)?, ours)
            };
            times.push(ours.as_secs_f64() / hand.as_secs_f64());
            hands.push(hand);
            all_ours.push(ours);
        }
        Ok(Compared { hand: median(hands), ours: median(all_ours), times: Ratios::of(times) })
    }

    /// Closes both.
    pub async fn close(self) -> Result<()> {
        self.ours.close().await
    }

    /// A comparison of two that find different records would say nothing.
    async fn must_agree(&self, asked: Asked) -> Result<()> {
        let ids =
            |rows: &[Value]| -> Vec<Value> { rows.iter().map(|row| row["id"].clone()).collect() };
        let agree = if asked == Asked::Count {
            self.hand.count(STATUS)? == self.ours.count(&of_status()).await?
        } else {
            let with_total = asked == Asked::PageWithTotal;
            let hand = self.hand.find(&customer(0), with_total)?;
            let ours = self.ours.find(&of_customer(0), with_total).await?;
            ids(&hand.rows) == ids(&ours.rows) && hand.total == ours.total
        };
        if agree { Ok(()) } else { Err("the store and the statements by hand disagree".into()) }
    }

    fn hand_turn(&self, asked: Asked) -> Result<Duration> {
        let mut turn = Turn::begin();
        while turn.goes_on() {
            let number = turn.number() % self.customers;
            match asked {
                Asked::Page => self.hand.find(&customer(number), false).map(drop)?,
                Asked::PageWithTotal => self.hand.find(&customer(number), true).map(drop)?,
                Asked::Count => self.hand.count(STATUS).map(drop)?,
            }
            turn.note();
        }
        Ok(median(turn.times))
    }

    async fn our_turn(&self, asked: Asked) -> Result<Duration> {
        let mut turn = Turn::begin();
        while turn.goes_on() {
            let number = turn.number() % self.customers;
            match asked {
                Asked::Page => self.ours.find(&of_customer(number), false).await.map(drop)?,
                Asked::PageWithTotal => {
                    self.ours.find(&of_customer(number), true).await.map(drop)?
                }
                Asked::Count => self.ours.count(&of_status()).await.map(drop)?,
            }
            turn.note();
        }
        Ok(median(turn.times))
    }
}

fn of_status() -> String {
    format!("status:{STATUS}")
}

/// The requests of a turn.
struct Turn {
    begun: Instant,
    before: Instant,
    times: Vec<Duration>,
}

impl Turn {
    fn begin() -> Self {
        let now = Instant::now();
        Self { begun: now, before: now, times: Vec::new() }
    }

    fn goes_on(&self) -> bool {
        self.times.len() < REQUESTS_MIN || self.before - self.begun < TURN
    }

    /// Which one is next. Both sides ask for the same in each turn, spread over the file.
    fn number(&self) -> usize {
        self.times.len() * 7_919
    }

    /// Takes the time of the request that was just answered.
    fn note(&mut self) {
        let now = Instant::now();
        self.times.push(now - self.before);
        self.before = now;
    }
}
