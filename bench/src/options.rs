//! The command line of `bench durable`.

use std::path::PathBuf;
use std::time::Duration;

use crate::Result;

/// How to call the benchmark.
pub const USAGE: &str =
    "usage: bench mcp [--seconds N] [--clients N] [--tools N] [--calls N] [--dir DIR]
       bench gateway [--seconds N] [--rounds N] [--dir DIR]
       bench agent [--runs N] [--threads N] [--dir DIR]
       bench heal [--runs N] [--dir DIR]
       bench pipeline [--seconds N] [--clients N] [--rounds N] [--dir DIR]
       bench auth [--seconds N] [--clients N] [--tools N] [--rounds N] [--dir DIR]
       bench abuse [--alone N] [--seconds N] [--attacks texts,spin,..] \
    [--fairness-seconds N] [--fairness-only] [--dir DIR]
       bench a2a [--seconds N] [--clients N] [--tasks N] [--dir DIR]
       bench records [--records N] [--seconds N] [--rounds N] [--dir DIR]
       bench counts [--requests N] [--record] [--against BINARY] [--dir DIR]
       bench durable [--seconds N] [--clients 1,64,256] \
    [--only SECTION,..] [--dir DIR] [--paused N]
       bench NAME --against BINARY [--pairs N] [--seconds N] [--dir DIR]
sections: fdatasync, axum, sqlite, read-only, writing, marginal, paused, start
the product's sections start the server named by WAYPOST_BIN (a release build), and
--against measures it beside another build of the server, by turns";

const SECONDS: u64 = 5;
const CLIENTS: [usize; 3] = [1, 64, 256];
const PAUSED: usize = 100_000;

/// One part of the report, which `--only` can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Append and sync, without a database.
    Fdatasync,
    /// An HTTP handler that parses and answers, and stores nothing.
    Axum,
    /// The row mix of a run in a group commit, without a server.
    Sqlite,
    /// Runs of three reading steps.
    ReadOnly,
    /// Runs of three writing steps.
    Writing,
    /// What one more step costs in a short and in a long session.
    Marginal,
    /// Memory with many paused sessions.
    Paused,
    /// Time from spawn to ready.
    Start,
}

impl Section {
    const ALL: [(&str, Self); 8] = [
        ("fdatasync", Self::Fdatasync),
        ("axum", Self::Axum),
        ("sqlite", Self::Sqlite),
        ("read-only", Self::ReadOnly),
        ("writing", Self::Writing),
        ("marginal", Self::Marginal),
        ("paused", Self::Paused),
        ("start", Self::Start),
    ];

    fn named(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        let (_, section) = found.ok_or_else(|| format!("no section `{name}`\n{USAGE}"))?;
        Ok(*section)
    }

    fn needs_server(self) -> bool {
        match self {
            Self::Fdatasync | Self::Axum | Self::Sqlite => false,
            Self::ReadOnly | Self::Writing | Self::Marginal | Self::Paused | Self::Start => true,
        }
    }
}

/// What to measure, and for how long.
#[derive(Debug)]
pub struct Options {
    /// How long each load lasts, its warm-up not included.
    pub span: Duration,
    /// How many clients a load has, one load for each number.
    pub clients: Vec<usize>,
    /// Where all data goes: the disk that is measured.
    pub dir: PathBuf,
    /// How many sessions the paused section makes.
    pub paused: usize,
    /// The server to start; always there when a section needs it.
    pub server: Option<PathBuf>,
    only: Vec<Section>,
}

impl Options {
    /// Reads the arguments after `durable` and the environment; refuses what cannot be measured.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            span: Duration::from_secs(SECONDS),
            clients: CLIENTS.to_vec(),
            dir: std::env::temp_dir(),
            paused: PAUSED,
            server: std::env::var_os("WAYPOST_BIN").map(PathBuf::from),
            only: Vec::new(),
        };
        while let Some(flag) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            options.set(&flag, &value)?;
        }
        if options.wants_product() && options.server.is_none() {
            return Err("set WAYPOST_BIN to a release build of `waypost`, or use --only".into());
        }
        Ok(options)
    }

    /// Whether the report has this section.
    pub fn wants(&self, section: Section) -> bool {
        self.only.is_empty() || self.only.contains(&section)
    }

    /// Whether any section needs the real server.
    pub fn wants_product(&self) -> bool {
        Section::ALL.iter().any(|(_, section)| section.needs_server() && self.wants(*section))
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<()> {
        match flag {
            "--seconds" => self.span = Duration::from_secs(u64::try_from(positive(flag, value)?)?),
            "--clients" => {
                let counts = value.split(',').map(|count| positive(flag, count));
                self.clients = counts.collect::<Result<Vec<usize>>>()?;
            }
            "--only" => {
                let sections = value.split(',').map(Section::named);
                self.only = sections.collect::<Result<Vec<Section>>>()?;
            }
            "--dir" => self.dir = PathBuf::from(value),
            "--paused" => self.paused = positive(flag, value)?,
            _ => return Err(format!("unknown option `{flag}`\n{USAGE}").into()),
        }
        Ok(())
    }
}

pub(crate) fn positive(flag: &str, value: &str) -> Result<usize> {
    match value.parse::<usize>() {
        Ok(0) | Err(_) => {
            Err(format!("`{flag}` takes whole numbers above 0, not `{value}`").into())
        }
        Ok(number) => Ok(number),
    }
}
