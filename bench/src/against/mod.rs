//! `bench NAME --against BINARY`: the build at hand beside another one, by turns on the same
//! machine, and how much one binary differs from itself there: less than that is no difference.

mod options;
mod ratios;
mod loads;

pub use options::is_asked;

use std::path::PathBuf;

use crate::Result;
use crate::report::{self, Table};
use loads::{Bench, Load};
use options::{Options, Side};
use ratios::{Comparison, Pair};

/// How the table of verdicts is read.
const NOTE: &str = "A pair measures each binary twice, in the order old, new, new, old, every \
    second pair in the order new, old, old, new; each measurement starts a server on a new data \
    folder. `new / old` is the median of the pairs' ratios. `itself` is how far that median would \
    stray for one binary against itself: two standard errors, from the two measurements that each \
    pair has of each binary. Less than that is no difference.";

/// Compares what the benchmark of this name has to compare.
pub async fn measure(name: &str, arguments: &[String]) -> Result<()> {
    let bench = Bench::named(name)?;
    let new = std::env::var_os("WAYPOST_BIN").map(PathBuf::from);
    let options = Options::parse(arguments, new)?;
    report::header(&format!("{}: a build against another", bench.title), &options.dir)?;
    println!("Old: `{}`. New: `{}`.\n", options.old.display(), options.new.display());
    if !bench.note.is_empty() {
        println!("{}\n", bench.note);
    }
    let head = ["figure", "old", "new", "new / old", "lowest to highest", "itself", "verdict"];
    let mut verdicts = Table::new(&head);
    for load in bench.loads {
        compare(*load, &options, &mut verdicts).await?;
    }
    report::section("Verdicts", NOTE, &verdicts);
    Ok(())
}

/// All pairs of one load, reported one by one, and a verdict on each of its figures.
async fn compare(load: Load, options: &Options, verdicts: &mut Table) -> Result<()> {
    let mut pairs: Vec<Vec<Pair>> = load.figures().iter().map(|_| Vec::new()).collect();
    for number in 1..=options.pairs {
        let measured = pair(load, options, number).await?;
        for (pairs, pair) in pairs.iter_mut().zip(measured) {
            pairs.push(pair);
        }
    }
    for (figure, pairs) in load.figures().iter().zip(&pairs) {
        let title = format!("{}: {}", load.title(), figure.name);
        report::section(&title, "", &pair_table(pairs));
        verdicts.row(match Comparison::of(pairs) {
            Some(found) => vec![
                title,
                shown(found.old),
                shown(found.new),
                format!("{:.3}", found.ratio),
                format!("{:.3} to {:.3}", found.lowest, found.highest),
                format!("± {:.1} %", found.spread() * 100.0),
                found.verdict(figure.better),
            ],
            None => {
                let dash = || "-".to_owned();
                let lost = "lost in noise: a value is not above 0".to_owned();
                vec![title, dash(), dash(), dash(), dash(), dash(), lost]
            }
        });
    }
    Ok(())
}

/// The pair of this number for each figure of a load. Every second one goes the other way, so that
/// whatever drifts on the machine favours neither binary.
async fn pair(load: Load, options: &Options, number: usize) -> Result<Vec<Pair>> {
    let is_reversed = number.is_multiple_of(2);
    let (outer, inner) = if is_reversed { (Side::New, Side::Old) } else { (Side::Old, Side::New) };
    let mut old = Vec::new();
    let mut new = Vec::new();
    for side in [outer, inner, inner, outer] {
        let title = load.title();
        let all = options.pairs;
        let name = side.name();
        report::progress(&format!("{title}: pair {number} of {all}, {name}"));
        let values = load.measure(options.binary(side), options).await?;
        match side {
            Side::Old => old.push(values),
            Side::New => new.push(values),
        }
    }
    let both = |values: &[Vec<f64>], at: usize| [values[0][at], values[1][at]];
    let figures = 0..load.figures().len();
    Ok(figures.map(|at| Pair { old: both(&old, at), new: both(&new, at) }).collect())
}

/// Every measurement, so that one sees how much they differ.
fn pair_table(pairs: &[Pair]) -> Table {
    let mut table = Table::new(&["pair", "old", "old again", "new", "new again", "new / old"]);
    for (index, pair) in pairs.iter().enumerate() {
        let values = pair.old.iter().chain(&pair.new).map(|value| shown(*value));
        let mut cells = vec![(index + 1).to_string()];
        cells.extend(values);
        cells.push(format!("{:.3}", pair.ratio()));
        table.row(cells);
    }
    table
}

/// Rates as whole numbers, latencies with their thousandths.
fn shown(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}
