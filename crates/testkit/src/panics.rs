//! Hears panics of this thread, also those that someone caught on the way: a task that panics
//! under an executor of one thread ends quietly, and its client waits for ever.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

thread_local! {
    /// What was heard; none while no one listens.
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Does some work on this thread: the outcome, unless it panicked, and every panic meanwhile.
/// These are kept instead of printed.
pub fn during<T>(work: impl FnOnce() -> T) -> (Option<T>, Vec<String>) {
    HOOK.call_once(listen);
    let before = HEARD.with(|heard| heard.replace(Some(Vec::new())));
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    let heard = HEARD.with(|heard| heard.replace(before));
    (done, heard.unwrap_or_default())
}

fn listen() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !keep(panic) {
            usual(panic);
        }
    }));
}

fn keep(panic: &PanicHookInfo<'_>) -> bool {
    let kept = HEARD.try_with(|heard| {
        let mut heard = heard.try_borrow_mut().ok()?;
        heard.as_mut()?.push(panic.to_string());
        Some(())
    });
    kept.is_ok_and(|kept| kept.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caught_panics_are_noticed_too() {
        assert_eq!(during(|| 7), (Some(7), Vec::new()));
        let (done, heard) = during(|| {
            let caught = catch_unwind(|| panic!("caught"));
            assert!(caught.is_err());
            panic!("not caught");
        });
        let done: Option<()> = done;
        assert_eq!((done, heard.len()), (None, 2));
        assert!(heard[0].contains("caught") && heard[1].contains("not caught"), "{heard:?}");
    }
}
