//! Compares two binaries by measurements taken in turns. Pure: numbers in, verdict out.

use std::f64::consts::PI;

/// Each binary measured twice, next to each other in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The old binary, in the order of its measurements.
    pub old: [f64; 2],
    /// The new binary, in the order of its measurements.
    pub new: [f64; 2],
}

impl Pair {
    /// The new binary against the old one.
    pub fn ratio(&self) -> f64 {
        mean(self.new) / mean(self.old)
    }

    /// Each binary against itself: what differs here is the machine.
    fn against_itself(&self) -> [f64; 2] {
        [self.old, self.new].map(|[first, second]| first / second)
    }

    fn is_measured(&self) -> bool {
        self.old.iter().chain(&self.new).all(|value| value.is_finite() && *value > 0.0)
    }
}

/// Which values of a figure are the good ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Higher,
    Lower,
}

/// The new binary beside the old one, over all pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The old binary's value in the middle pair.
    pub old: f64,
    /// The new binary's value in the middle pair.
    pub new: f64,
    /// The median of the pairs' ratios.
    pub ratio: f64,
    /// The lowest ratio of a pair.
    pub lowest: f64,
    /// The highest ratio of a pair.
    pub highest: f64,
    /// How far the median ratio would stray for one binary against itself, as a logarithm, so
    /// that twice as fast and half as fast are equally far.
    spread: f64,
}

impl Comparison {
    /// Compares; `None` where nothing was measured, or a value is not above 0.
    pub fn of(pairs: &[Pair]) -> Option<Self> {
        let all_measured = pairs.iter().all(Pair::is_measured);
        if pairs.is_empty() || !all_measured {
            return None;
        }
        let ratios: Vec<f64> = pairs.iter().map(Pair::ratio).collect();
        Some(Self {
            old: median(pairs.iter().map(|pair| mean(pair.old)).collect()),
            new: median(pairs.iter().map(|pair| mean(pair.new)).collect()),
            lowest: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            highest: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ratio: median(ratios),
            spread: spread(pairs),
        })
    }

    /// The spread of one binary against itself, as a part of 1.
    pub fn spread(&self) -> f64 {
        self.spread.exp_m1()
    }

    /// What this says of the new binary.
    pub fn verdict(&self, better: Better) -> String {
        if self.ratio.ln().abs() <= self.spread {
            return "no difference".to_owned();
        }
        let is_faster = match better {
            Better::Higher => self.ratio > 1.0,
            Better::Lower => self.ratio < 1.0,
        };
        let percent = (self.ratio - 1.0).abs() * 100.0;
        format!("{} by {percent:.1} %", if is_faster { "faster" } else { "slower" })
    }
}

/// Two standard errors of the median of as many ratios of one binary against itself. Where a
/// single ratio of two single measurements deviates by `s`, the ratio of a pair, which averages two
/// and two, deviates by `s / √2`, and the median of `n` of them by `√(π / 2n)` of that.
fn spread(pairs: &[Pair]) -> f64 {
    let ratios: Vec<f64> = pairs.iter().flat_map(Pair::against_itself).collect();
    let squares: f64 = ratios.iter().map(|ratio| ratio.ln().powi(2)).sum();
    let deviation = (squares / ratios.len() as f64).sqrt();
    deviation * (PI / pairs.len() as f64).sqrt()
}

fn mean([first, second]: [f64; 2]) -> f64 {
    (first + second) / 2.0
}

/// The middle value, or the mean of the two in the middle; 0 for none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle).copied().unwrap_or_default();
    if values.len().is_multiple_of(2) {
        let lower = values.get(middle.wrapping_sub(1)).copied().unwrap_or_default();
        return mean([lower, upper]);
    }
    upper
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs without noise, one for each ratio.
    fn quiet(ratios: &[f64]) -> Vec<Pair> {
        ratios.iter().map(|ratio| Pair { old: [100.0; 2], new: [100.0 * ratio; 2] }).collect()
    }

    /// As many equal pairs, in which the second measurement is a tenth above the first.
    fn noisy(ratio: f64, count: usize) -> Vec<Pair> {
        vec![Pair { old: [100.0, 110.0], new: [100.0 * ratio, 110.0 * ratio] }; count]
    }

    fn verdict(pairs: &[Pair], better: Better) -> String {
        Comparison::of(pairs).map_or_else(|| "none".to_owned(), |found| found.verdict(better))
    }

    #[test]
    fn a_pair_is_read_as_the_ratio_of_its_means() {
        let pair = Pair { old: [90.0, 110.0], new: [120.0, 100.0] };
        assert_eq!(pair.ratio(), 1.1);
        assert_eq!(pair.against_itself(), [90.0 / 110.0, 1.2]);
    }

    #[test]
    fn a_comparison_has_the_median_and_the_range() {
        let found = Comparison::of(&quiet(&[0.5, 0.75, 2.0, 1.5, 1.25]));
        let expected = Comparison {
            old: 100.0,
            new: 125.0,
            ratio: 1.25,
            lowest: 0.5,
            highest: 2.0,
            spread: 0.0,
        };
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(Vec::new()), 0.0);
    }

    #[test]
    fn the_spread_comes_from_one_binary_against_itself_and_shrinks_with_more_pairs() {
        let spread = |count| Comparison::of(&noisy(0.9, count)).map(|found| found.spread);
        let expected = |count: f64| 1.1_f64.ln() * (PI / count).sqrt();
        for count in [5, 20] {
            let off = spread(count).map(|spread| (spread - expected(count as f64)).abs());
            assert!(off.is_some_and(|off| off < 1e-12), "{count} pairs: off by {off:?}");
        }
    }

    #[test]
    fn less_than_the_spread_is_no_difference() {
        // The spread of five such pairs is 7.8 %, that of twenty 3.8 %.
        assert_eq!(verdict(&noisy(0.95, 5), Better::Higher), "no difference");
        assert_eq!(verdict(&noisy(0.95, 20), Better::Higher), "slower by 5.0 %");
        assert_eq!(verdict(&quiet(&[1.0; 5]), Better::Higher), "no difference");
    }

    #[test]
    fn a_higher_rate_is_faster_and_a_higher_latency_is_slower() {
        let more = quiet(&[1.25; 5]);
        let less = quiet(&[0.75; 5]);
        assert_eq!(verdict(&more, Better::Higher), "faster by 25.0 %");
        assert_eq!(verdict(&more, Better::Lower), "slower by 25.0 %");
        assert_eq!(verdict(&less, Better::Higher), "slower by 25.0 %");
        assert_eq!(verdict(&less, Better::Lower), "faster by 25.0 %");
    }

    #[test]
    fn pairs_without_positive_values_are_not_compared() {
        assert_eq!(Comparison::of(&[]), None);
        let mut pairs = quiet(&[1.0; 5]);
        pairs.push(Pair { old: [100.0, 0.0], new: [100.0; 2] });
        assert_eq!(Comparison::of(&pairs), None);
    }
}
