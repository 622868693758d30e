//! Every scene of the folder: played, compared, and cut after each event. `UPDATE_EXPECT=1` writes
//! what came out into the files, to be read before it is committed.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use testkit::scene::Scene;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenes");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_scene_gives_the_expected_journal_wherever_it_is_cut() {
    let bless = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for path in files() {
        let text = fs::read_to_string(&path).unwrap();
        let scene = Scene::parse(&text);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let came = match std::panic::catch_unwind(|| scene.play()) {
            Ok(came) => came,
            Err(_) => {
                wrong.push(format!("{name} does not play to its end"));
                continue;
            }
        };
        if came.trim_end() == scene.expect.trim_end() {
            continue;
        }
        if bless {
            let head = text.split("\n## expect").next().unwrap();
            fs::write(&path, format!("{}\n\n## expect\n{}\n", head.trim_end(), came.trim_end()))
                .unwrap();
        } else {
            wrong.push(format!("{name} came out as:\n{came}\nexpected:\n{}", scene.expect));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
