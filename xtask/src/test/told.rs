//! What programs with tests say, line by line: which tests failed, and how long each took.

/// How the line of a test ends that must panic, before its outcome.
const SHOULD_PANIC: &str = " - should panic";
/// What stands before each name in the list of failures.
const INDENT: &str = "    ";
/// How much of what a failed test said is repeated at the end: who sees only the end of a log
/// learns why it failed.
const REASON_LINES_MAX: usize = 12;
const REASON_CHARS_MAX: usize = 600;
/// What stands in the line where a test says that it failed.
const PANICKED: &str = " panicked at ";

/// All that was told so far.
#[derive(Debug, Default)]
pub struct Told {
    failed: Vec<String>,
    /// The first lines of what each failed test said.
    reasons: Vec<String>,
    timed: Vec<Timed>,
}

/// A test and its own time, which others may have had a share in: several run at once.
#[derive(Debug, PartialEq)]
struct Timed {
    test: String,
    seconds: f64,
}

impl Told {
    /// Takes in all that a program said, and whether it ended well.
    pub fn hear(&mut self, program: &str, said: &str, passed: bool) {
        let failed_before = self.failed.len();
        self.reasons.extend(reasons(said));
        let mut in_failures = false;
        let mut has_result = false;
        for line in said.lines() {
            let listed = line.strip_prefix(INDENT).filter(|_| in_failures);
            in_failures = line == "failures:" || listed.is_some();
            // A process that a test started may have begun the line.
            has_result |= line.contains("test result: ");
            if let Some(test) = listed {
                self.add_failed(format!("{program} {test}"));
            } else if let Some(Outcome { test, failed, seconds }) = Outcome::read(line) {
                let test = format!("{program} {test}");
                if failed {
                    self.add_failed(test.clone());
                }
                self.timed.extend(seconds.map(|seconds| Timed { test, seconds }));
            }
        }
        if !has_result {
            self.failed.push(format!("{program}: the program ended before its last test"));
        } else if !passed && self.failed.len() == failed_before {
            self.failed.push(format!("{program}: the program failed after its last test"));
        }
    }

    /// What failed: tests, and programs.
    pub fn failed(&self) -> &[String] {
        &self.failed
    }

    /// Why tests failed, as they said it themselves.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// The slowest tests as a table, so many at most.
    pub fn slowest(&self, count: usize) -> String {
        let mut timed: Vec<&Timed> = self.timed.iter().collect();
        timed.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let lines = timed.into_iter().take(count);
        lines.map(|Timed { test, seconds }| format!("   {seconds:>8.1} s  {test}\n")).collect()
    }

    /// A failure may be told twice: when it happens and in the list at the end.
    fn add_failed(&mut self, test: String) {
        if !self.failed.contains(&test) {
            self.failed.push(test);
        }
    }
}

/// The beginning of what each failed test said: `---- NAME stdout ----`, and the lines below it.
fn reasons(said: &str) -> Vec<String> {
    let is_heading = |line: &&str| line.starts_with("---- ") && line.ends_with(" ----");
    let headings = said.lines().enumerate().filter(|(_, line)| is_heading(line));
    let reason = |(place, heading): (usize, &str)| {
        let below = said.lines().skip(place + 1).take_while(|line| {
            !is_heading(line) && *line != "failures:" && *line != "stack backtrace:"
        });
        let below: Vec<&str> = below.filter(|line| !line.is_empty()).collect();
        // What it printed before it failed says less.
        let begin = below.iter().position(|line| line.contains(PANICKED)).unwrap_or_default();
        let lines = [heading].into_iter().chain(below[begin..].iter().copied());
        let lines = lines.take(REASON_LINES_MAX);
        let cut = |line: &str| line.chars().take(REASON_CHARS_MAX).collect::<String>();
        lines.map(|line| format!("   {}\n", cut(line))).collect()
    };
    headings.map(reason).collect()
}

/// The line of one test: `test NAME ... ok <0.123s>`.
#[derive(Debug, PartialEq)]
struct Outcome<'a> {
    test: &'a str,
    failed: bool,
    /// Missing where the program was not asked for it.
    seconds: Option<f64>,
}

impl<'a> Outcome<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (test, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let test = test.strip_suffix(SHOULD_PANIC).unwrap_or(test);
        let time = rest.rsplit_once(" <").and_then(|(_, time)| time.strip_suffix("s>"));
        let seconds = time.and_then(|time| time.parse().ok());
        Some(Self { test, failed: rest.starts_with("FAILED"), seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "\nrunning 3 tests\ntest a::b ... ok <0.250s>\n\
        test c ... ignored, takes long\ntest d - should panic ... ok <2.000s>\n\n\
        test result: ok. 2 passed; 0 failed; 1 ignored; finished in 2.00s\n\n";
    const SERVER: &str = "\nrunning 2 tests\n\
        test slow has been running for over 60 seconds\ntest slow ... FAILED <61.500s>\n\
        half a linetest hidden ... FAILED <1.000s>\n\n\
        failures:\n\n---- slow stdout ----\n    no\n\n\n\
        failures:\n    hidden\n    slow\n\ntest result: FAILED. 0 passed; 2 failed\n\n";

    fn told() -> Told {
        let mut told = Told::default();
        told.hear("kernel", KERNEL, true);
        told.hear("server/it", SERVER, false);
        told
    }

    #[test]
    fn failed_tests_are_named_once_and_with_their_program() {
        assert_eq!(told().failed(), ["server/it slow", "server/it hidden"]);
    }

    #[test]
    fn why_tests_failed_is_known_at_the_end() {
        assert_eq!(told().reasons(), ["   ---- slow stdout ----\n       no\n"]);
        let mut told = Told::default();
        let long = "a".repeat(1_000);
        let many = "b\n".repeat(100);
        let last = "d\nthread 'y' panicked at e:1:2:\nc\n";
        let said = format!("---- x stdout ----\n{long}\n{many}---- y stdout ----\n{last}");
        told.hear("kernel", &format!("failures:\n\n{said}stack backtrace:\n0: d\n"), false);
        let [first, second] = told.reasons() else { panic!("{:?}", told.reasons()) };
        assert_eq!((first.lines().count(), first.len() < 800), (REASON_LINES_MAX, true));
        let expected = "   ---- y stdout ----\n   thread 'y' panicked at e:1:2:\n   c\n";
        assert_eq!(second, expected);
    }

    #[test]
    fn a_program_without_a_result_has_failed_and_so_has_one_that_ends_badly() {
        let mut told = Told::default();
        told.hear("kernel", "test a ... ok <0.001s>\n", true);
        told.hear("tools", "", false);
        told.hear("demo", KERNEL, false);
        let expected = [
            "kernel: the program ended before its last test",
            "tools: the program ended before its last test",
            "demo: the program failed after its last test",
        ];
        assert_eq!(told.failed(), expected);
    }

    #[test]
    fn the_slowest_come_first() {
        assert_eq!(told().slowest(2), "       61.5 s  server/it slow\n        2.0 s  kernel d\n");
        let mut untimed = Told::default();
        untimed.hear("kernel", "test a ... ok\n", true);
        assert_eq!(untimed.slowest(2), "");
    }

    #[test]
    fn the_line_of_a_test_is_read() {
        let outcome = |test, failed, seconds| Some(Outcome { test, failed, seconds });
        assert_eq!(Outcome::read("test a::b ... ok <0.250s>"), outcome("a::b", false, Some(0.25)));
        assert_eq!(Outcome::read("test a ... FAILED"), outcome("a", true, None));
        assert_eq!(Outcome::read("test a ... ignored"), outcome("a", false, None));
        assert_eq!(Outcome::read("test result: ok. 2 passed"), None);
        assert_eq!(Outcome::read("running 2 tests"), None);
    }
}
