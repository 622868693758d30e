//! A server that no one named and that did not prove to hold this folder: it may be another
//! project's. Commands read from it and say so once; they change nothing there.

use crate::exit::{Exit, Failure};
use crate::terminal::output::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which server that is, and of which folder it is not known to be.
#[derive(Debug, Clone)]
pub(crate) struct Unproven {
    /// `no server runs for \`/home/ada/shop\`: no server listens at ..`.
    missing: String,
    url: String,
    output: Output,
    is_told: Arc<AtomicBool>,
}

impl Unproven {
    /// The server at this URL, since the one of this folder does not run.
    pub(crate) fn new(folder: &str, why: Option<&str>, url: &str, output: Output) -> Self {
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let missing = format!("no server runs for `{folder}`{why}");
        Self { missing, url: url.to_owned(), output, is_told: Arc::default() }
    }

    /// Says once where it is read from instead.
    pub(super) fn tell(&self) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            let Self { missing, url, output, .. } = self;
            output.talk(&format!("{missing}; reading from {url}, which may be another project's"));
        }
    }

    /// Why nothing is changed there.
    pub(super) fn refused(&self) -> Failure {
        let Self { missing, url, .. } = self;
        let what =
            format!("{missing}; nothing is changed at {url}, which may be another project's");
        Failure::new(Exit::Unreachable, "unreachable", what).hint(format!(
            "start this folder's with `waypost up`, or name the server that you mean: \
             `--server {url}`"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_folder_and_how_to_start_its_server() {
        let output = Output::new(true);
        let url = "http://127.0.0.1:8420";
        let failure = Unproven::new("/shop", Some("nobody listens"), url, output).refused();
        assert_eq!(failure.exit, Exit::Unreachable);
        for part in ["`/shop`: nobody listens", "`waypost up`", "`--server http://127.0.0.1:8420`"]
        {
            assert!(failure.to_string().contains(part), "no `{part}` in {failure}");
        }
    }
}
