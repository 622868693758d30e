//! Loads beside each other, in short turns over connections that stay open. The machine changes
//! from second to second: what is compared is one turn with the turn of the same round, and of all
//! these ratios the one in the middle counts. A load that is compared with itself says how far the
//! machine alone makes a comparison stray.

use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::load::{Connected, Job, Samples, Summary, WARM_UP};

/// How long a turn is: long enough that a load settles, short enough that little else changes.
const TURN: Duration = Duration::from_millis(250);
/// Each turn runs so long uncounted: what the load before it left to be done is not its own.
const LEAD_IN: Duration = Duration::from_millis(50);

/// A load in all its turns.
#[derive(Debug)]
pub struct Turns {
    /// All of them together.
    pub total: Summary,
    each: Vec<Summary>,
}

/// Ratios of a load's turns to those of another, in order.
#[derive(Debug)]
pub struct Ratios(Vec<f64>);

impl Turns {
    /// The rates of this load's turns, of the rates of the other's.
    pub fn of(&self, other: &Self) -> Ratios {
        let pairs = self.each.iter().zip(&other.each);
        Ratios::of(pairs.map(|(ours, theirs)| ours.rate / theirs.rate).collect())
    }

    /// What a request takes longer at the median than one of the other load.
    pub fn added_to(&self, other: &Self) -> Duration {
        let pairs = self.each.iter().zip(&other.each);
        let added = pairs.map(|(ours, theirs)| ours.p50.as_secs_f64() - theirs.p50.as_secs_f64());
        Duration::try_from_secs_f64(Ratios::of(added.collect()).middle()).unwrap_or_default()
    }
}

impl Ratios {
    /// These ratios.
    pub fn of(mut all: Vec<f64>) -> Self {
        all.sort_by(f64::total_cmp);
        Self(all)
    }

    /// The one in the middle, or between the two that are there.
    pub fn middle(&self) -> f64 {
        let half = self.0.len() / 2;
        (self.lowest_but(self.0.len().saturating_sub(1) / 2) + self.lowest_but(half)) / 2.0
    }

    /// The middle, and between which two half of them lie.
    pub fn spread(&self) -> String {
        let quarter = self.0.len().saturating_sub(1) / 4;
        let upper = self.0.len().saturating_sub(1 + quarter);
        let low = self.lowest_but(quarter);
        let high = self.lowest_but(upper);
        format!("{:.2} ({low:.2} to {high:.2})", self.middle())
    }

    fn lowest_but(&self, count: usize) -> f64 {
        self.0.get(count).copied().unwrap_or(f64::NAN)
    }
}

/// Each load for `span` after a warm-up, in turns. Rounds go forth and back and begin with another
/// load each time, so that each follows each other one as often.
pub async fn measure(jobs: &[&Arc<Job>], clients: usize, span: Duration) -> Result<Vec<Turns>> {
    let mut loads = Vec::with_capacity(jobs.len());
    for job in jobs {
        let mut load = Connected::to(job, clients).await?;
        load.run_for(WARM_UP).await?;
        loads.push((load, Samples::default(), Vec::new()));
    }
    let rounds = usize::try_from(span.as_millis().div_ceil(TURN.as_millis()))?;
    for round in 0..rounds {
        let mut places: Vec<usize> = (0..loads.len()).collect();
        places.rotate_left(round / 2 % loads.len().max(1));
        if round % 2 == 1 {
            places.reverse();
        }
        for place in places {
            let (load, all, each) = &mut loads[place];
            load.run_for(LEAD_IN).await?;
            let samples = load.run_for(TURN).await?;
            each.push(samples.summary());
            all.extend(samples);
        }
    }
    let turns = |(_, all, each): (_, Samples, _)| Turns { total: all.summary(), each };
    Ok(loads.into_iter().map(turns).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(rates: &[f64], p50s: &[u64]) -> Turns {
        let of = |(rate, p50): (&f64, &u64)| {
            let p50 = Duration::from_micros(*p50);
            Summary { answered: 1, rate: *rate, p50, p99: p50 }
        };
        let each: Vec<Summary> = rates.iter().zip(p50s).map(of).collect();
        Turns { total: each[0], each }
    }

    #[test]
    fn turns_are_compared_pairwise() {
        let base = turns(&[100.0, 50.0, 200.0, 100.0, 80.0], &[10, 20, 5, 10, 12]);
        let other = turns(&[90.0, 45.0, 100.0, 95.0, 72.0], &[15, 24, 11, 14, 17]);
        let ratios = other.of(&base);
        assert_eq!(ratios.middle(), 0.9);
        assert_eq!(ratios.spread(), "0.90 (0.90 to 0.90)");
        assert_eq!(other.added_to(&base).as_micros(), 5);
    }

    #[test]
    fn the_median_of_an_even_count_is_the_mean_of_the_middle_two() {
        assert_eq!(Ratios::of(vec![1.25, 0.75]).middle(), 1.0);
        let eight = Ratios::of((1..=8).map(f64::from).collect());
        assert_eq!(eight.spread(), "4.50 (2.00 to 7.00)");
        assert!(Ratios::of(Vec::new()).middle().is_nan());
    }
}
