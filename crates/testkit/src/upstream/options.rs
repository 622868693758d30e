//! The command line of the misbehaving server: where to serve, which eras of MCP, and what to do
//! badly.

use std::collections::BTreeSet;

/// The server's options.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it serves.
    pub(super) way: Way,
    /// Which eras it speaks.
    pub(super) eras: Eras,
    /// What it does badly.
    pub(super) bad: BTreeSet<Bad>,
    /// Whether it ends when its standard input does; over a pipe it always does.
    pub(super) with_parent: bool,
}

/// Where it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Http { port: u16 },
    Stdio,
}

/// Which eras it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eras {
    Both,
    Legacy,
    Modern,
}

/// What can be bad about it, beside its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bad {
    /// Takes requests and answers none.
    Silent,
    /// Answers everything with something that is no JSON.
    Garbage,
    /// Takes seconds for each list.
    SlowLists,
    /// Never answers a list.
    HangingLists,
    /// Has always one more page of its list.
    EndlessPages,
    /// Lists more than anybody can take.
    HugeList,
    /// Gives its tools other names in each list.
    Renames,
    /// Has one more tool after each change, and else the same list each time.
    Grows,
    /// One of its tools has a name of 100,000 characters, and one has none that is a text.
    HugeNames,
    /// Some of its tools have schemas that are none or would never end, and one has a control
    /// character in its name.
    WrongSchemas,
    /// Says without a pause that its list has changed.
    Storm,
    /// Ends as soon as it is started.
    DiesAtStart,
    /// Lists the tools of the hostile corpus, and one for each of its answers.
    Hostile,
}

impl Bad {
    const ALL: [(&'static str, Bad); 13] = [
        ("silent", Bad::Silent),
        ("garbage", Bad::Garbage),
        ("slow-lists", Bad::SlowLists),
        ("hanging-lists", Bad::HangingLists),
        ("endless-pages", Bad::EndlessPages),
        ("huge-list", Bad::HugeList),
        ("renames", Bad::Renames),
        ("grows", Bad::Grows),
        ("huge-names", Bad::HugeNames),
        ("wrong-schemas", Bad::WrongSchemas),
        ("storm", Bad::Storm),
        ("dies-at-start", Bad::DiesAtStart),
        ("hostile", Bad::Hostile),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, bad)| *bad)
    }
}

impl Options {
    /// Reads the words of the command line.
    pub fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            way: Way::Http { port: 0 },
            eras: Eras::Both,
            bad: BTreeSet::new(),
            with_parent: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--port" => {
                    let port = value()?;
                    let port = port.parse().map_err(|_| format!("`{port}` is no port"))?;
                    options.way = Way::Http { port };
                }
                "--stdio" => options.way = Way::Stdio,
                "--with-parent" => options.with_parent = true,
                "--era" => options.eras = eras(&value()?)?,
                "--bad" => {
                    let name = value()?;
                    let bad = Bad::named(&name).ok_or_else(|| unknown_bad(&name))?;
                    options.bad.insert(bad);
                }
                other => {
                    let known = "--port N, --stdio, --with-parent, --era legacy|modern, --bad NAME";
                    return Err(format!("what is `{other}`? known: {known}"));
                }
            }
        }
        Ok(options)
    }

    /// Whether it does this badly.
    pub(super) fn is(&self, bad: Bad) -> bool {
        self.bad.contains(&bad)
    }
}

fn eras(name: &str) -> Result<Eras, String> {
    match name {
        "both" => Ok(Eras::Both),
        "legacy" => Ok(Eras::Legacy),
        "modern" => Ok(Eras::Modern),
        other => Err(format!("`{other}` is no era; known: both, legacy, modern")),
    }
}

fn unknown_bad(name: &str) -> String {
    let known: Vec<&str> = Bad::ALL.iter().map(|(known, _)| *known).collect();
    format!("`{name}` is nothing bad; known: {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        Options::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn the_command_line_is_read() {
        let options = read("--stdio --era legacy --bad storm --bad renames").unwrap();
        assert_eq!((options.way, options.eras), (Way::Stdio, Eras::Legacy));
        assert!(options.is(Bad::Storm) && options.is(Bad::Renames) && !options.is(Bad::Silent));
        assert_eq!(read("--port 7").unwrap().way, Way::Http { port: 7 });
        for (line, told) in [
            ("--port x", "`x` is no port"),
            ("--bad", "`--bad` needs a value"),
            ("--bad good", "`good` is nothing bad"),
            ("--era old", "`old` is no era"),
            ("--what", "what is `--what`?"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.starts_with(told), "{error}");
        }
    }
}
