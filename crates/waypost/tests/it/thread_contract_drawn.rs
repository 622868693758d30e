//! The same flows with names, days, hours and numbers that are drawn, and that the demo's rules
//! cannot know.

use crate::thread_client::{DemoClient, Event, Meant, ProposedCall, at, creates, with};
use jiff::civil::Date;
use jiff::{ToSpan, Zoned};
use serde_json::Value;
use std::collections::BTreeSet;
use testkit::kill::Rng;

const RULES: &str = include_str!("../../../../examples/calendar/rules/calendar.yaml");
const SEED: u64 = 0x5eed_0001;
const ROUNDS: u64 = 40;
const EVENTS_MAX: u64 = 4;

const SYLLABLES: [&str; 12] =
    ["zor", "vak", "lim", "dru", "pesh", "quo", "tavi", "rund", "olk", "bex", "nym", "gath"];
/// Words that want nothing else instead.
const EXCUSES: [&str; 5] =
    ["I have other plans", "not needed", "that is cancelled", "I am busy then", "no thanks"];
const CORRECTIONS: [&str; 5] = [
    "Wrong time, should be {}",
    "make it {} instead",
    "{} please",
    "no, at {}",
    "it should be at {}",
];
const REQUESTS: [&str; 4] = [
    "create a meeting called {name} {day} at {time}",
    "schedule {name} {day} at {time}",
    "add an event called {name} at {time} {day}",
    "please create an event named {name} {day} at {time}",
];

/// A day as it is said.
#[derive(Debug, Clone, Copy)]
enum Day {
    Tomorrow,
    Weekday(Date),
    In(i64),
    Digits(Date),
    Words(Date),
}

impl Day {
    fn words(self) -> String {
        match self {
            Day::Tomorrow => "tomorrow".to_owned(),
            Day::Weekday(date) => format!("on {}", date.strftime("%A")),
            Day::In(days) => format!("in {days} days"),
            Day::Digits(date) => format!("on {date}"),
            Day::Words(date) => {
                format!("on {} {}, {}", date.strftime("%B"), date.day(), date.year())
            }
        }
    }

    fn date(self, now: &Zoned) -> Date {
        match self {
            Day::Tomorrow => now.date().tomorrow().unwrap(),
            Day::In(days) => now.date() + days.days(),
            Day::Weekday(date) | Day::Digits(date) | Day::Words(date) => date,
        }
    }

    /// Whether an event of this day is found when it is to be moved.
    fn is_near(self) -> bool {
        matches!(self, Day::Tomorrow | Day::Weekday(_))
    }
}

/// An hour and a minute.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Time(i8, i8);

impl Time {
    /// With am or pm; the hour alone where that is all.
    fn words(self) -> String {
        let Time(hour, minute) = self;
        let half = if hour < 12 { "am" } else { "pm" };
        let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
        if minute == 0 { format!("{twelve}{half}") } else { format!("{twelve}:{minute:02}{half}") }
    }
}

/// An event that is wanted.
#[derive(Debug, Clone)]
struct Wanted {
    name: String,
    day: Day,
    time: Time,
    time_words: String,
}

impl Wanted {
    fn arguments(&self, now: &Zoned) -> Value {
        creates(&self.name, &at(self.day.date(now), self.time.0, self.time.1))
    }

    fn said(&self, pattern: &str) -> String {
        let day = self.day.words();
        pattern
            .replace("{name}", &self.name)
            .replace("{day}", &day)
            .replace("{time}", &self.time_words)
    }
}

/// Draws what nobody said before.
struct Drawer {
    rng: Rng,
    names: BTreeSet<String>,
}

impl Drawer {
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.rng.below(of.len() as u64)).unwrap()]
    }

    fn word(&mut self) -> String {
        let word = format!("{}{}", self.one(&SYLLABLES), self.one(&SYLLABLES));
        assert!(!RULES.contains(&word), "{word}");
        let (first, rest) = word.split_at(1);
        format!("{}{rest}", first.to_uppercase())
    }

    fn name(&mut self) -> String {
        loop {
            let mut name = format!("{} {}", self.word(), self.word());
            if self.rng.one_in(3) {
                name = format!("{name} with {}", self.word());
            }
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    fn day(&mut self) -> Day {
        let today = Zoned::now().date();
        let mut ahead = |from: u64, to: u64| {
            let days = from + self.rng.below(to - from);
            i64::try_from(days).unwrap()
        };
        match ahead(0, 5) {
            0 => Day::Tomorrow,
            // Two days at least: it is the next such day, also after midnight.
            1 => Day::Weekday(today + ahead(2, 7).days()),
            2 => Day::In(ahead(2, 30)),
            3 => Day::Digits(today + ahead(20, 300).days()),
            _ => Day::Words(today + ahead(20, 300).days()),
        }
    }

    fn time(&mut self, minutes: &[i8]) -> Time {
        let hour = i8::try_from(6 + self.rng.below(16)).unwrap();
        let minute = usize::try_from(self.rng.below(minutes.len() as u64)).unwrap();
        Time(hour, minutes[minute])
    }

    fn wanted(&mut self) -> Wanted {
        let name = self.name();
        let day = self.day();
        let time = self.time(&[0, 15, 30, 45]);
        let digits = format!("{:02}:{:02}", time.0, time.1);
        let time_words = if self.rng.one_in(3) { digits } else { time.words() };
        Wanted { name, day, time, time_words }
    }

    /// Some events, and the request for them.
    fn request(&mut self) -> (Vec<Wanted>, String) {
        let count = 1 + self.rng.below(EVENTS_MAX);
        let wanted: Vec<Wanted> = (0..count).map(|_| self.wanted()).collect();
        if let [only] = wanted.as_slice() {
            let request = only.said(self.one(&REQUESTS));
            return (wanted, request);
        }
        let item = |wanted: &Wanted| {
            let patterns = ["{name} {day} at {time}", "{name} at {time} {day}"];
            wanted.said(self.one(&patterns))
        };
        let items: Vec<String> = wanted.iter().map(item).collect();
        let (last, others) = items.split_last().unwrap();
        let request = format!("create {count} events: {} and {last}", others.join(", "));
        (wanted, request)
    }
}

/// What is decided about a call.
enum Decision {
    Yes,
    No(&'static str),
    /// It should begin then.
    Other(String, String),
}

impl Decision {
    fn drawn(drawer: &mut Drawer, call: &ProposedCall) -> Self {
        match drawer.rng.below(4) {
            0 => Decision::No(drawer.one(&EXCUSES)),
            1 => {
                // No event was asked for at such minutes.
                let time = drawer.time(&[5, 20, 40]);
                let words = drawer.one(&CORRECTIONS).replace("{}", &time.words());
                let day = call.text("start").split('T').next().unwrap();
                Decision::Other(words, format!("{day}T{:02}:{:02}:00", time.0, time.1))
            }
            _ => Decision::Yes,
        }
    }

    fn words(&self) -> Option<&str> {
        match self {
            Decision::Yes => None,
            Decision::No(words) => Some(words),
            Decision::Other(words, _) => Some(words),
        }
    }
}

/// Asks for some events and decides about each; gives those that are to be there.
fn decided(demo: &mut DemoClient, drawer: &mut Drawer, t: &str) -> Vec<Event> {
    let (wanted, request) = drawer.request();
    println!("{t}: {request}");
    let meant = Meant::from_now();
    let calls = demo.run(t, &request).calls(t);
    let arguments: Vec<Value> = calls.iter().map(|call| call.arguments.clone()).collect();
    meant.is(&arguments, |now| wanted.iter().map(|wanted| wanted.arguments(now)).collect());

    let drawn: Vec<Decision> = calls.iter().map(|call| Decision::drawn(drawer, call)).collect();
    let decisions: Vec<(&ProposedCall, Option<&str>)> =
        calls.iter().zip(&drawn).map(|(call, decision)| (call, decision.words())).collect();
    println!("  {:?}", decisions.iter().map(|(_, words)| words).collect::<Vec<_>>());
    let mut events = Vec::new();
    let mut corrected = Vec::new();
    for (call, decision) in calls.iter().zip(&drawn) {
        match decision {
            Decision::Yes => events.push(call.event()),
            Decision::No(_) => {}
            Decision::Other(_, start) => corrected.push(creates(call.text("name"), start)),
        }
    }
    let mut said = demo.decide(t, &decisions);
    if !corrected.is_empty() {
        let again = said.calls(t);
        let arguments: Vec<Value> = again.iter().map(|call| call.arguments.clone()).collect();
        assert_eq!(arguments, corrected, "{request}: {said:?}");
        events.extend(again.iter().map(ProposedCall::event));
        let yes: Vec<(&ProposedCall, Option<&str>)> =
            again.iter().map(|call| (call, None)).collect();
        said = demo.decide(t, &yes);
    }
    let response = said.success();
    for (_, _, name) in &events {
        assert!(response.contains(&format!("{name} has been created")), "{name}: {response}");
    }
    events
}

/// A question first, and its answer; then an event that is moved beside one that is asked about.
fn asked_and_moved(demo: &mut DemoClient, drawer: &mut Drawer, t: &str) {
    let before = demo.calendar();
    let mut wanted = drawer.wanted();
    while !wanted.day.is_near() {
        wanted.day = drawer.day();
    }
    let pattern = "{name} {day} at {time}";
    println!("{t}: {}", wanted.said(pattern));
    let questions = demo.run(t, "schedule something").questions(t);
    let meant = Meant::from_now();
    let create = demo.answer(t, &questions[0], &wanted.said(pattern)).call(t);
    meant.is(&create.arguments, |now| wanted.arguments(now));
    demo.decide(t, &[(&create, None)]).success();

    let t = format!("{t}-moved");
    let other = drawer.wanted();
    let time = drawer.time(&[5, 20, 40]);
    let request =
        format!("schedule something for me, and move {} to {}", wanted.name, time.words());
    println!("{t}: {request}; {}", other.said(pattern));
    let questions = demo.run(&t, &request).questions(&t);
    assert_eq!(questions.len(), 1, "{questions:?}");
    let meant = Meant::from_now();
    let update = demo.answer(&t, &questions[0], &other.said(pattern)).call(&t);
    let (start, _, name) = create.event();
    let day = start.split('T').next().unwrap();
    let moved = format!("{day}T{:02}:{:02}:00", time.0, time.1);
    assert_eq!((update.tool.as_str(), update.text("start")), ("update_event", moved.as_str()));
    let second = demo.decide(&t, &[(&update, None)]).call(&t);
    meant.is(&second.arguments, |now| other.arguments(now));
    demo.decide(&t, &[(&second, None)]).success();

    let first = ProposedCall { arguments: creates(&name, &moved), ..create };
    assert_eq!(demo.calendar(), with(&before, [first.event(), second.event()]));
}

#[test]
fn drawn_flows_do_what_was_approved() {
    println!("seed {SEED:#x}");
    let folder = tempfile::tempdir().unwrap();
    let mut demo = DemoClient::start(&folder.path().join("data"));
    let mut drawer = Drawer { rng: Rng::new(SEED), names: BTreeSet::new() };
    for round in 0..ROUNDS {
        let before = demo.calendar();
        let events = decided(&mut demo, &mut drawer, &format!("drawn-{round}"));
        assert_eq!(demo.calendar(), with(&before, events));
        if round % 4 == 0 {
            asked_and_moved(&mut demo, &mut drawer, &format!("asked-{round}"));
        }
    }
    demo.stop();
}
