//! A process that has no descriptor left: a blob is refused, nothing ends, and the next one works.
//! The limit is a process's own, so the test runs itself once more, under a limit.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "the threads here are the test's `Spawn`")]

use futures::executor::block_on;
use futures::future::BoxFuture;
use kernel::contracts::{Clock, Spawn, StoreError};
use kernel::limits::Limits;
use kernel::values::ids::{Millis, RealmId};
use std::fs::File;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use stores::{Parts, StoreLocation};

/// Set where the limit holds.
const LIMITED: &str = "WAYPOST_TEST_FEW_DESCRIPTORS";

struct Threads;

impl Spawn for Threads {
    fn task(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.thread(name, future);
    }

    fn thread(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        std::thread::spawn(move || block_on(future));
    }
}

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Millis {
        Millis(1_000)
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn without_a_descriptor_a_blob_is_refused_and_nothing_ends() {
    if std::env::var_os(LIMITED).is_some() {
        return put_without_descriptors();
    }
    let this = std::env::current_exe().unwrap();
    let limited = "ulimit -n 64 && exec \"$0\" --test-threads=1 --nocapture";
    let ended = Command::new("sh").args(["-c", limited]).arg(this).env(LIMITED, "1").output();
    let ended = ended.unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

fn put_without_descriptors() {
    let folder = tempfile::tempdir().unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let told = ended.clone();
    let parts = Parts {
        spawn: Arc::new(Threads),
        clock: Arc::new(StoppedClock),
        limits: Arc::new(Limits::default()),
        fatal: Arc::new(move |_why: String| told.store(true, Ordering::SeqCst)),
        vfs: None,
    };
    let opened = stores::open(&StoreLocation::Folder(folder.path().join("data")), parts).unwrap();
    let realm = RealmId::from("r");
    let put = || block_on(opened.blobs.put(&realm, b"large".to_vec()));
    let mut all = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        all.push(file);
    }
    assert_eq!(put(), Err(StoreError::Starved));
    drop(all);
    let kept = put().unwrap();
    assert_eq!(block_on(opened.blobs.get(&realm, &kept.hash)), Ok(Some(b"large".to_vec())));
    assert!(!ended.load(Ordering::SeqCst), "a refusal is no failed sync");
    block_on(opened.store.close()).unwrap();
}
