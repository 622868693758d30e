//! Child processes: one for all clients, and none without its parent.

use crate::house::{House, LIMIT, Way};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::thread;
use testkit::caller::Era;
use testkit::harness::wait_for;
use testkit::upstream::program;

/// The upstreams that were started for this folder and still run.
pub fn children(folder: &Path) -> Vec<u32> {
    let program = fs::canonicalize(program()).unwrap();
    let mark = format!("WAYPOST_TEST_FOLDER={}", folder.display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let executable = fs::read_link(format!("/proc/{pid}/exe"));
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        executable.is_ok_and(|path| path == program)
            && variables.any(|variable| variable == mark.as_bytes())
    })
    .collect()
}

#[test]
fn all_clients_share_one_child() {
    let _turn = crate::our_turn();
    let house = House::start(Way::Stdio("legacy"), &[]);
    house.wait_for_tool("bad.echo");
    thread::scope(|scope| {
        for number in 0..8 {
            let house = &house;
            scope.spawn(move || {
                let era = if number % 2 == 0 { Era::Modern } else { Era::Legacy };
                let mut caller = house.caller(era).limit(LIMIT);
                for turn in 0..10 {
                    let text = format!("{number}-{turn}");
                    let said = caller.call("bad.echo", json!({"text": text})).unwrap();
                    assert_eq!(said.words(), text);
                }
            });
        }
    });
    assert_eq!(children(house.folder.path()).len(), 1);
}

#[test]
fn a_child_ends_with_its_parent_however_that_ends() {
    let _turn = crate::our_turn();
    for killed in [false, true] {
        let house = House::start(Way::Stdio("legacy"), &[]);
        house.wait_for_tool("bad.echo");
        assert_eq!(children(house.folder.path()).len(), 1);
        let (server, folder) = house.end_upstreams();
        if killed {
            server.kill9();
        } else {
            let ended = server.terminate();
            assert!(ended.status.success(), "not in good order: {ended:?}");
        }
        wait_for("the child to be gone", LIMIT, || {
            children(folder.path()).is_empty().then_some(())
        });
    }
}

#[test]
fn a_child_that_hangs_in_a_call_holds_up_no_stop() {
    let _turn = crate::our_turn();
    // A call that the server gives up might be over before anybody sees it.
    let house = House::patient(Way::Stdio("modern"));
    house.wait_for_tool("bad.hang");
    let address = house.address();
    let hanging = thread::spawn(move || {
        let mut caller = testkit::caller::Caller::new(address, Era::Modern, json!({}));
        caller.call("bad.hang", json!({})).is_ok()
    });
    wait_for("the call to be under way", LIMIT, || {
        let said = house.caller(Era::Modern).call("bad.under_way", json!({})).ok()?;
        (said.words() == "1").then_some(())
    });
    let (server, folder) = house.end_upstreams();
    let ended = server.terminate();
    assert!(ended.status.success(), "not in good order: {ended:?}");
    wait_for("the child to be gone", LIMIT, || children(folder.path()).is_empty().then_some(()));
    // It was told something, or cut off; it does not wait for ever.
    let _ = hanging.join().unwrap();
}
