//! Progress of long work: one moving line on a terminal, for the user who waits. It comes only
//! when the work takes a while, gives way to a steady line when that is done, and to nothing but
//! the failure when it fails. Programs never see it: it is silent with `--json` and `--quiet`, and
//! where standard error is no terminal or a dumb one.

use crate::exit::Result;
use crate::terminal::output::Output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::task::JoinHandle;

/// What is done sooner needs no line.
const QUICK: Duration = Duration::from_millis(400);
/// A start that takes longer is worth a word.
const SLOW: Duration = Duration::from_secs(3);
const TICK: Duration = Duration::from_millis(100);

const SPINNING: &str = "{spinner} {msg} ({elapsed})";
const COUNTING: &str = "{spinner} {msg}: {pos} of {len} ({elapsed})";

/// Whether someone watches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// How steady lines are printed; none where no one watches.
    output: Option<Output>,
}

impl Progress {
    /// Progress for the user of this output.
    pub(crate) fn on(output: Output) -> Self {
        let is_watched = output.talks() && !ProgressDrawTarget::stderr().is_hidden();
        Self { output: is_watched.then_some(output) }
    }

    /// No progress.
    pub(crate) fn silent() -> Self {
        Self { output: None }
    }

    /// Does the work; where it takes a while, a line says what and for how long.
    pub(crate) async fn during<T>(
        self,
        what: impl Into<String>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.along(&Line::spinning(what), work).await
    }

    /// The same with a line that the work itself moves on.
    pub(crate) async fn along<T>(
        self,
        line: &Line,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let Some(output) = self.output else { return work.await };
        let (done, steady) = line.along(ProgressDrawTarget::stderr, QUICK, work).await;
        if let Some(steady) = steady {
            output.talk(&steady);
        }
        done
    }

    /// Does work that writes log lines, which would tear a moving line: where it is slow, we say so
    /// once. From a task of its own, for the work may hold its thread.
    pub(crate) async fn told_if_slow<T>(
        self,
        notice: &'static str,
        work: impl Future<Output = T>,
    ) -> T {
        let Some(output) = self.output else { return work.await };
        let _notice = Notice(tokio::spawn(async move {
            tokio::time::sleep(SLOW).await;
            output.talk(notice);
        }));
        work.await
    }
}

/// A word that is due in a while; taken back when this is dropped.
struct Notice(JoinHandle<()>);

impl Drop for Notice {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A moving line; it is gone when this is dropped, whatever happened.
#[derive(Debug)]
pub(crate) struct Line {
    what: String,
    bar: ProgressBar,
}

impl Line {
    /// Says what is done and for how long.
    pub(crate) fn spinning(what: impl Into<String>) -> Self {
        Self::new(what.into(), None, SPINNING)
    }

    /// Says also how much of it is done.
    pub(crate) fn counting(what: impl Into<String>, total: usize) -> Self {
        Self::new(what.into(), Some(total as u64), COUNTING)
    }

    fn new(what: String, total: Option<u64>, template: &str) -> Self {
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_spinner())
            .tick_chars("-\\|/ ");
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden())
            .with_style(style)
            .with_message(what.clone());
        Self { what, bar }
    }

    /// Says this instead, until it says something else.
    pub(crate) fn says(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// Does the work; the line comes after a while and goes with its end. Beside the outcome of the
    /// work, the steady line that stands for it: only if it was seen and all went well.
    async fn along<T, E>(
        &self,
        target: impl FnOnce() -> ProgressDrawTarget,
        while_hidden: Duration,
        work: impl Future<Output = Result<T, E>>,
    ) -> (Result<T, E>, Option<String>) {
        let mut work = pin!(work);
        if let Ok(done) = tokio::time::timeout(while_hidden, work.as_mut()).await {
            return (done, None);
        }
        self.bar.set_draw_target(target());
        self.bar.tick();
        self.bar.enable_steady_tick(TICK);
        let done = work.await;
        let took = self.bar.elapsed().as_secs_f64();
        self.bar.finish_and_clear();
        let steady = done.is_ok().then(|| format!("{} took {took:.1} s", self.what));
        (done, steady)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Arc, Mutex};

    /// A terminal that remembers what stands on its line, and what ever did.
    #[derive(Debug, Clone, Default)]
    struct Screen(Arc<Mutex<(String, String)>>);

    impl Screen {
        fn now(&self) -> String {
            self.0.lock().unwrap().0.clone()
        }

        fn ever(&self) -> String {
            self.0.lock().unwrap().1.clone()
        }

        fn target(&self) -> ProgressDrawTarget {
            ProgressDrawTarget::term_like(Box::new(self.clone()))
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            let mut written = self.0.lock().unwrap();
            written.0.push_str(text);
            written.1.push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().0.clear();
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Work that is done once its line was seen.
    async fn work(screen: &Screen, result: Result<u8, ()>) -> Result<u8, ()> {
        while screen.ever().is_empty() {
            tokio::task::yield_now().await;
        }
        result
    }

    #[tokio::test]
    async fn a_spinner_is_replaced_by_its_final_line() {
        let screen = Screen::default();
        let line = Line::counting("counting sheep", 3);
        line.step();
        let work = work(&screen, Ok(7));
        let (done, steady) = line.along(|| screen.target(), Duration::ZERO, work).await;
        assert_eq!(done, Ok(7));
        assert!(screen.ever().contains("counting sheep: 1 of 3"), "{}", screen.ever());
        assert_eq!(screen.now().trim(), "");
        assert!(steady.is_some_and(|steady| steady.starts_with("counting sheep took ")));
    }

    #[tokio::test]
    async fn a_failure_clears_the_progress_line() {
        let screen = Screen::default();
        let line = Line::spinning("counting sheep");
        let work = work(&screen, Err(()));
        let (done, steady) = line.along(|| screen.target(), Duration::ZERO, work).await;
        assert_eq!((done, steady), (Err(()), None));
        assert!(screen.ever().contains("counting sheep"), "{}", screen.ever());
        assert_eq!(screen.now().trim(), "");
    }

    #[tokio::test]
    async fn quick_or_unwatched_work_shows_no_progress() {
        let screen = Screen::default();
        let line = Line::spinning("nothing");
        let quick = async { Ok::<u8, ()>(1) };
        let (done, steady) = line.along(|| screen.target(), QUICK, quick).await;
        assert_eq!((done, steady, screen.ever().as_str()), (Ok(1), None, ""));
        let done = Progress::silent().during("nothing", async { Ok(2) }).await;
        assert!(matches!(done, Ok(2)));
        // The tests of a machine have no terminal; if they do, `--json` is silent all the same.
        assert!(Progress::on(Output::new(true)).output.is_none());
    }
}
