//! What the output of `cargo test` says, line by line: which tests failed, and how long each took.

/// How the line begins that names the program whose tests come next.
pub const HEADING: &str = "== tests of ";
/// How the line of a test ends that must panic, before its outcome.
const SHOULD_PANIC: &str = " - should panic";
/// What stands before each name in the list of failures.
const INDENT: &str = "    ";

/// All that was told so far.
#[derive(Debug, Default)]
pub struct Told {
    failed: Vec<String>,
    timed: Vec<Timed>,
    /// The program whose tests are being told, until it tells its result.
    program: Option<String>,
    /// Whether the line before was of the list of failures.
    in_failures: bool,
}

/// A test and its own time, which others may have had a share in: several run at once.
#[derive(Debug, PartialEq)]
struct Timed {
    test: String,
    seconds: f64,
}

impl Told {
    /// Takes in the next line.
    pub fn hear(&mut self, line: &str) {
        let listed = line.strip_prefix(INDENT).filter(|_| self.in_failures);
        self.in_failures = line == "failures:" || listed.is_some();
        if let Some(name) = listed {
            self.add_failed(name);
        } else if let Some(program) = line.strip_prefix(HEADING) {
            self.end_program();
            self.program = Some(program.to_owned());
        } else if line.starts_with("test result: ") {
            self.program = None;
        } else if let Some(outcome) = Outcome::read(line) {
            if outcome.failed {
                self.add_failed(outcome.test);
            }
            if let Some(seconds) = outcome.seconds {
                self.timed.push(Timed { test: self.full_name(outcome.test), seconds });
            }
        }
    }

    /// What failed, once all output was read: tests, and programs that ended early.
    pub fn failed(&mut self) -> &[String] {
        self.end_program();
        &self.failed
    }

    /// The slowest tests as a table, so many at most.
    pub fn slowest(&self, count: usize) -> String {
        let mut timed: Vec<&Timed> = self.timed.iter().collect();
        timed.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let lines = timed.into_iter().take(count);
        lines.map(|Timed { test, seconds }| format!("   {seconds:>8.1} s  {test}\n")).collect()
    }

    /// A program that says nothing at its end did not come to it.
    fn end_program(&mut self) {
        if let Some(program) = self.program.take() {
            self.failed.push(format!("{program}: the program ended before its last test"));
        }
    }

    /// A failure may be told twice: when it happens and in the list at the end.
    fn add_failed(&mut self, test: &str) {
        let name = self.full_name(test);
        if !self.failed.contains(&name) {
            self.failed.push(name);
        }
    }

    fn full_name(&self, test: &str) -> String {
        match &self.program {
            Some(program) => format!("{program} {test}"),
            None => test.to_owned(),
        }
    }
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

    const OUTPUT: &str = "   Compiling kernel v0.1.0\n     Running unittests src/lib.rs\n\
        == tests of kernel\n\nrunning 3 tests\ntest a::b ... ok <0.250s>\n\
        test c ... ignored, takes long\ntest d - should panic ... ok <2.000s>\n\n\
        test result: ok. 2 passed; 0 failed; 1 ignored; finished in 2.00s\n\n\
        == tests of server/it\n\nrunning 2 tests\n\
        test slow has been running for over 60 seconds\ntest slow ... FAILED <61.500s>\n\
        half a linetest hidden ... FAILED <1.000s>\n\n\
        failures:\n\n---- slow stdout ----\n    no\n\n\n\
        failures:\n    hidden\n    slow\n\ntest result: FAILED. 0 passed; 2 failed\n\n";

    fn told(output: &str) -> Told {
        let mut told = Told::default();
        output.lines().for_each(|line| told.hear(line));
        told
    }

    #[test]
    fn failed_tests_are_named_once_and_with_their_program() {
        assert_eq!(told(OUTPUT).failed(), ["server/it slow", "server/it hidden"]);
    }

    #[test]
    fn a_program_without_a_result_has_failed() {
        let mut told = told("== tests of kernel\ntest a ... ok <0.001s>\n== tests of tools\n");
        let expected = ["kernel", "tools"]
            .map(|program| format!("{program}: the program ended before its last test"));
        assert_eq!(told.failed(), expected);
    }

    #[test]
    fn the_slowest_come_first() {
        assert_eq!(
            told(OUTPUT).slowest(2),
            "       61.5 s  server/it slow\n        2.0 s  kernel d\n"
        );
        assert_eq!(told("test a ... ok\n").slowest(2), "");
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
