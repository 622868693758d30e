//! Work that takes long without waiting for anything, kept off the workers that serve requests.
//!
//! What is heavy is measured beforehand and bounded, but a bounded tenth of a second on each worker
//! is one in which nobody is answered. So a worker that meets such work hands its tasks to another
//! thread first, and only half as many pieces as there are processors are worked on at a time: the
//! others wait their turn.

use super::locks::lock;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use tokio::runtime::{Handle, RuntimeFlavor};

/// How many pieces of heavy work may have left the workers. Each takes a thread of the runtime,
/// which has 512 of them for everything; what comes beyond is done where it is.
const APART_MAX: usize = 64;

/// Up to so many bytes of JSON are read or written in place: most have far fewer.
const LIGHT_BYTES_MAX: usize = 256 * 1024;

/// Reads or writes so many bytes of JSON.
pub(crate) fn sized<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes <= LIGHT_BYTES_MAX { work() } else { Heavy::shared().run(work) }
}

/// The places for heavy work.
#[derive(Debug)]
pub(crate) struct Heavy {
    taken: Mutex<HeavyCounts>,
    freed: Condvar,
    at_once: usize,
}

#[derive(Debug, Default)]
struct HeavyCounts {
    /// How many have left the workers: those that wait and those that are worked on.
    apart: usize,
    working: usize,
}

/// A place of one that has left the workers, given back also by a panic.
struct HeavyPermit<'a>(&'a Heavy);

impl Default for Heavy {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { taken: Mutex::default(), freed: Condvar::new(), at_once: (processors / 2).max(1) }
    }
}

impl Heavy {
    /// The places of this process: everything in it shares its processors.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<Heavy> = LazyLock::new(Heavy::default);
        &SHARED
    }

    /// Does the work, off the workers where there are some.
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        if !matches!(flavor, Ok(RuntimeFlavor::MultiThread)) || !self.leave() {
            return work();
        }
        tokio::task::block_in_place(|| {
            let _permit = self.permit();
            work()
        })
    }

    fn leave(&self) -> bool {
        let mut taken = lock(&self.taken);
        let is_free = taken.apart < APART_MAX;
        taken.apart += usize::from(is_free);
        is_free
    }

    /// Waits for a permit.
    fn permit(&self) -> HeavyPermit<'_> {
        let taken = lock(&self.taken);
        let full = |taken: &mut HeavyCounts| taken.working >= self.at_once;
        let mut taken = self.freed.wait_while(taken, full).unwrap_or_else(PoisonError::into_inner);
        taken.working += 1;
        HeavyPermit(self)
    }
}

impl Drop for HeavyPermit<'_> {
    fn drop(&mut self) {
        let mut taken = lock(&self.0.taken);
        taken.working -= 1;
        taken.apart -= 1;
        drop(taken);
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    const DEADLINE: Duration = Duration::from_secs(120);

    #[test]
    fn workers_stay_free_for_others() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let heavy = Arc::new(Heavy::default());
        let (told, heard) = std::sync::mpsc::channel();
        let work = {
            let heavy = heavy.clone();
            let runtime = runtime.handle().clone();
            runtime.clone().spawn(async move {
                heavy.run(|| {
                    // The only worker would have to do both.
                    runtime.spawn(async move { told.send(()).unwrap() });
                    heard.recv_timeout(DEADLINE).expect("another task ran meanwhile");
                });
            })
        };
        runtime.block_on(work).unwrap();
    }

    #[test]
    fn heavy_work_is_limited_in_parallel_and_all_of_it_completes() {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let heavy = Arc::new(Heavy::default());
        let now = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let works: Vec<_> = (0..APART_MAX)
            .map(|number| {
                let heavy = heavy.clone();
                let now = now.clone();
                let most = most.clone();
                runtime.spawn(async move {
                    heavy.run(|| {
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        (0..100).for_each(|_| std::thread::yield_now());
                        now.fetch_sub(1, Ordering::SeqCst);
                        assert!(number % 8 != 7, "a panic gives its place back");
                    });
                })
            })
            .collect();
        let failed = works.into_iter().filter_map(|work| runtime.block_on(work).err()).count();
        assert_eq!(failed, APART_MAX / 8);
        assert!(most.load(Ordering::SeqCst) <= heavy.at_once, "{most:?} at once");
        let taken = lock(&heavy.taken);
        assert_eq!((taken.apart, taken.working), (0, 0));
    }

    #[test]
    fn without_a_runtime_heavy_work_runs_in_place() {
        assert_eq!(Heavy::default().run(|| 7), 7);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(async { Heavy::default().run(|| 8) }), 8);
    }
}
