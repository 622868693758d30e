//! The committed corpus: one message in each file, as a client would send it.

use std::fs;
use std::io;
use std::path::Path;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// Its file's name without the ending: `modern-tools-call`.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The messages of one folder of the corpus, in the order of their names.
pub fn seeds(folder: &str) -> Vec<Seed> {
    let folder = Path::new(FOLDER).join(folder);
    let mut seeds = Vec::new();
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| unreadable(&folder, &error)).flatten()
    {
        let path = entry.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(&path).unwrap_or_else(|error| unreadable(&path, &error));
        seeds.push(Seed { name, bytes });
    }
    assert!(!seeds.is_empty(), "there is nothing in `{}`", folder.display());
    seeds.sort_by(|one, other| one.name.cmp(&other.name));
    seeds
}

fn unreadable(path: &Path, error: &io::Error) -> ! {
    panic!("cannot read `{}`: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_seed_is_a_message() {
        for folder in ["mcp", "rpc"] {
            for Seed { name, bytes } in seeds(folder) {
                let message: Value = serde_json::from_slice(&bytes)
                    .unwrap_or_else(|error| panic!("{folder}/{name}: {error}"));
                let messages = message.as_array().cloned().unwrap_or_else(|| vec![message.clone()]);
                assert!(
                    messages.iter().all(|message| message["jsonrpc"] == "2.0"),
                    "{folder}/{name}"
                );
            }
        }
    }

    #[test]
    fn the_corpus_has_every_method_of_both_eras() {
        let all = seeds("mcp");
        let has = |era: &str, method: &str| {
            all.iter().filter(|seed| seed.name.starts_with(era)).any(|seed| {
                let message: Value = serde_json::from_slice(&seed.bytes).unwrap();
                message["method"] == method
            })
        };
        let both = [
            "tools/list",
            "tools/call",
            "prompts/list",
            "prompts/get",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "completion/complete",
            "notifications/cancelled",
        ];
        for method in both {
            assert!(has("modern", method) && has("legacy", method), "{method}");
        }
        let modern = [
            "server/discover", "subscriptions/listen", "tasks/get", "tasks/update", "tasks/cancel",
        ];
        for method in modern {
            assert!(has("modern", method), "{method}");
        }
        for method in [
            "initialize",
            "notifications/initialized",
            "ping",
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
        ] {
            assert!(has("legacy", method), "{method}");
        }
    }
}
