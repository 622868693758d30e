//! The hunt: so many inputs out of a seed, each looked at by a target, until one fails; that one is
//! made small and told with all that is needed to see it again. `WAYPOST_FUZZ_SECONDS` hunts for
//! longer, `WAYPOST_FUZZ_SEED` takes other inputs, `WAYPOST_FUZZ_CASE` looks at one of them.

use crate::panics;
use crate::sim::rng::Rng;
use std::io::Write;
use std::time::{Duration, Instant};

/// What making a failing input small may cost.
const TRIES_MAX: u32 = 3_000;
const SHRINK_LIMIT: Duration = Duration::from_secs(20);

/// Something that can be made smaller.
pub trait Input: Clone {
    /// Smaller ones of its kind, the much smaller ones first.
    fn smaller(&self) -> Box<dyn Iterator<Item = Self> + '_>;

    /// As a person reads it.
    fn shown(&self) -> String;
}

/// How many inputs are looked at, and which.
#[derive(Debug, Clone, Copy)]
pub struct Hunt {
    name: &'static str,
    cases: u64,
    seed: u64,
    limit: Option<Duration>,
    only: Option<u64>,
}

impl Hunt {
    /// A hunt of this name through so many inputs, unless the environment says otherwise.
    pub fn new(name: &'static str, cases: u64) -> Self {
        Self {
            name,
            cases,
            seed: number("WAYPOST_FUZZ_SEED").unwrap_or(0),
            limit: number("WAYPOST_FUZZ_SECONDS").map(Duration::from_secs),
            only: number("WAYPOST_FUZZ_CASE"),
        }
    }

    /// Makes inputs and looks at them; ends the test with the first that fails or panics. How many
    /// were looked at.
    pub fn run<I: Input>(
        &self,
        make: impl Fn(&mut Rng) -> I,
        mut check: impl FnMut(&I) -> Result<(), String>,
    ) -> u64 {
        let begun = Instant::now();
        let first = self.only.unwrap_or(0);
        let mut case = first;
        while self.goes_on(case, begun) {
            let input = make(&mut Rng::stream(self.seed, case + 1));
            if let Err(wrong) = look(&mut check, &input) {
                let smallest = shrink(Failing { input, wrong }, &mut check);
                let story = self.story(case, &smallest);
                panic!("{story}");
            }
            case += 1;
        }
        let ran = case - first;
        let took = begun.elapsed().as_millis();
        let line = format!("fuzz: {}: {ran} inputs of seed {} in {took} ms", self.name, self.seed);
        // Past the test runner's capture: which inputs were looked at belongs into every log.
        let _ = writeln!(std::io::stderr(), "{line}");
        ran
    }

    fn goes_on(&self, case: u64, begun: Instant) -> bool {
        match (self.only, self.limit) {
            (Some(only), _) => case == only,
            (None, Some(limit)) => begun.elapsed() < limit,
            (None, None) => case < self.cases,
        }
    }

    fn story<I: Input>(&self, case: u64, failing: &Failing<I>) -> String {
        let Self { name, seed, .. } = self;
        let Failing { input, wrong } = failing;
        format!(
            "{name}: {wrong}\n\
             see it again with WAYPOST_FUZZ_SEED={seed} WAYPOST_FUZZ_CASE={case}; what fails, made \
             small (keep its bytes as a file of crates/testkit/corpus once it is mended):\n{}\n",
            input.shown()
        )
    }
}

/// An input that fails.
struct Failing<I> {
    input: I,
    /// What is wrong with it.
    wrong: String,
}

/// Looks at one input; a panic is a failure, too.
fn look<I>(check: &mut impl FnMut(&I) -> Result<(), String>, input: &I) -> Result<(), String> {
    match panics::during(|| check(input)) {
        (Some(checked), heard) if heard.is_empty() => checked,
        (_, heard) => Err(format!("it panicked: {}", heard.join("; "))),
    }
}

/// The smallest failing input that is found from this one.
fn shrink<I: Input>(
    mut smallest: Failing<I>,
    check: &mut impl FnMut(&I) -> Result<(), String>,
) -> Failing<I> {
    let begun = Instant::now();
    let mut tries = 0;
    loop {
        let mut found = None;
        for smaller in smallest.input.smaller() {
            tries += 1;
            if tries > TRIES_MAX || begun.elapsed() > SHRINK_LIMIT {
                break;
            }
            if let Err(wrong) = look(check, &smaller) {
                found = Some(Failing { input: smaller, wrong });
                break;
            }
        }
        match found {
            Some(smaller) => smallest = smaller,
            None => return smallest,
        }
    }
}

impl Input for Vec<u8> {
    fn smaller(&self) -> Box<dyn Iterator<Item = Self> + '_> {
        Box::new(cuts(self.len()).map(move |(from, to)| [&self[..from], &self[to..]].concat()))
    }

    fn shown(&self) -> String {
        self.escape_ascii().to_string()
    }
}

impl Input for String {
    fn smaller(&self) -> Box<dyn Iterator<Item = Self> + '_> {
        // Characters are cut out whole.
        let begins = self.char_indices().map(|(begin, _)| begin);
        let places: Vec<usize> = begins.chain([self.len()]).collect();
        let cut =
            move |(from, to): (usize, usize)| [&self[..places[from]], &self[places[to]..]].concat();
        Box::new(cuts(self.chars().count()).map(cut))
    }

    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

/// What can be cut out of something so long: its halves, its quarters, .., each single piece.
fn cuts(length: usize) -> impl Iterator<Item = (usize, usize)> {
    let sizes = std::iter::successors(Some(length.div_ceil(2)), |size| {
        (*size > 1).then(|| size.div_ceil(2))
    });
    let at_size = move |size: usize| {
        (0..length).step_by(size.max(1)).map(move |from| (from, (from + size).min(length)))
    };
    sizes.flat_map(at_size)
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|error| panic!("{variable} is a number and not `{text}`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunt(cases: u64) -> Hunt {
        Hunt { name: "it", cases, seed: 3, limit: None, only: None }
    }

    #[test]
    fn failing_inputs_are_shrunk() {
        let make =
            |rng: &mut Rng| (0..rng.below(200)).map(|_| rng.below(256) as u8).collect::<Vec<u8>>();
        let mut looked = 0;
        let (done, heard) = panics::during(|| {
            hunt(10_000).run(make, |bytes| {
                looked += 1;
                if bytes.contains(&b'!') { Err("there is a mark".to_owned()) } else { Ok(()) }
            })
        });
        assert!(done.is_none() && looked > 1);
        let told = heard.join("");
        assert!(told.contains("it: there is a mark"), "{told}");
        assert!(told.contains("WAYPOST_FUZZ_SEED=3 WAYPOST_FUZZ_CASE="), "{told}");
        assert!(told.contains("mended):\n!\n"), "{told}");
    }

    #[test]
    fn a_panic_is_a_failure() {
        let checked = look(&mut |bytes: &Vec<u8>| panic!("at {}", bytes.len()), &vec![1, 2]);
        assert!(checked.is_err_and(|wrong| wrong.contains("at 2")));
    }

    #[test]
    fn a_hunt_without_failures_runs_every_case() {
        assert_eq!(hunt(25).run(|_| String::new(), |_| Ok(())), 25);
        assert_eq!(Hunt { only: Some(7), ..hunt(25) }.run(|_| String::new(), |_| Ok(())), 1);
    }

    #[test]
    fn cuts_reach_every_piece() {
        assert_eq!(cuts(0).count(), 0);
        assert_eq!(cuts(1).collect::<Vec<_>>(), [(0, 1)]);
        let expected = [(0, 2), (2, 3), (0, 1), (1, 2), (2, 3)];
        assert_eq!(cuts(3).collect::<Vec<_>>(), expected);
        let word = "aé".to_owned();
        let smaller: Vec<String> = word.smaller().collect();
        assert!(smaller.contains(&"a".to_owned()) && smaller.contains(&"é".to_owned()));
    }
}
