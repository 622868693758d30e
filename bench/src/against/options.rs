//! The command line of a comparison: `bench NAME --against BINARY`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Result;
use crate::options::{USAGE, positive};

/// What asks for a comparison.
const AGAINST: &str = "--against";
const SECONDS: u64 = 5;
/// With fewer, the median and the spread are chance.
const PAIRS_MIN: usize = 5;

/// Which of the two binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that is compared against.
    Old,
    /// The one that was just built.
    New,
}

impl Side {
    /// As the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

/// What to compare, and for how long.
#[derive(Debug, PartialEq)]
pub struct Options {
    /// The binary that is compared against.
    pub old: PathBuf,
    /// The binary that was just built.
    pub new: PathBuf,
    /// How many pairs of each load are measured.
    pub pairs: usize,
    /// How long each load lasts, its warm-up not included.
    pub span: Duration,
    /// Where all data goes: the disk that is measured.
    pub dir: PathBuf,
}

/// Whether these arguments of a benchmark ask for a comparison.
pub fn is_asked(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument == AGAINST)
}

impl Options {
    /// Reads the arguments after the benchmark's name; `new` is the server of the environment.
    pub fn parse(arguments: &[String], new: Option<PathBuf>) -> Result<Self> {
        let mut options = Self {
            old: PathBuf::new(),
            new: new.ok_or("set WAYPOST_BIN to the build that is compared")?,
            pairs: PAIRS_MIN,
            span: Duration::from_secs(SECONDS),
            dir: std::env::temp_dir(),
        };
        let mut arguments = arguments.iter();
        while let Some(flag) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            match flag.as_str() {
                AGAINST => options.old = PathBuf::from(value),
                "--pairs" => options.pairs = positive(flag, value)?,
                "--seconds" => {
                    options.span = Duration::from_secs(u64::try_from(positive(flag, value)?)?);
                }
                "--dir" => options.dir = PathBuf::from(value),
                _ => {
                    let told = format!("`{flag}` does not go with `{AGAINST}`\n{USAGE}");
                    return Err(told.into());
                }
            }
        }
        if options.pairs < PAIRS_MIN {
            return Err(format!("`--pairs` takes {PAIRS_MIN} or more").into());
        }
        Ok(options)
    }

    pub fn binary(&self, side: Side) -> &Path {
        match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn parsed(line: &str) -> std::result::Result<Options, String> {
        let new = Some(PathBuf::from("new/waypost"));
        Options::parse(&words(line), new).map_err(|error| error.to_string())
    }

    #[test]
    fn only_against_asks_for_a_comparison() {
        assert!(is_asked(&words("--seconds 3 --against old/waypost")));
        assert!(!is_asked(&words("--seconds 3")));
    }

    #[test]
    fn all_options_are_read() {
        let expected = Options {
            old: PathBuf::from("old/waypost"),
            new: PathBuf::from("new/waypost"),
            pairs: 9,
            span: Duration::from_secs(2),
            dir: PathBuf::from("disk"),
        };
        let line = "--pairs 9 --seconds 2 --dir disk --against old/waypost";
        assert_eq!(parsed(line), Ok(expected));
    }

    #[test]
    fn five_pairs_of_five_seconds_are_the_default() {
        let expected = Options {
            old: PathBuf::from("old/waypost"),
            new: PathBuf::from("new/waypost"),
            pairs: 5,
            span: Duration::from_secs(5),
            dir: std::env::temp_dir(),
        };
        assert_eq!(parsed("--against old/waypost"), Ok(expected));
    }

    #[test]
    fn invalid_options_are_refused() {
        let refused = |line: &str| parsed(line).err().unwrap_or_default();
        assert_eq!(refused("--against"), "`--against` needs a value");
        assert_eq!(refused("--against old --pairs 4"), "`--pairs` takes 5 or more");
        assert_eq!(
            refused("--against old --pairs some"),
            "`--pairs` takes whole numbers above 0, not `some`"
        );
        assert_eq!(
            refused("--against old --tools 7"),
            format!("`--tools` does not go with `--against`\n{USAGE}")
        );
        let unset = Options::parse(&words("--against old"), None);
        let told = unset.err().map(|error| error.to_string());
        assert_eq!(told.as_deref(), Some("set WAYPOST_BIN to the build that is compared"));
    }
}
