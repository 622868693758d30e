//! How a request is read as tasks: it is cut into parts, each part is of the first kind whose
//! pattern fits.
//!
//! A part ends where the next one begins like a task, or, in a list such as "Gym at 7am and lunch
//! at noon", where both sides name a time. Times and quotes are never cut.

use super::dates;
use super::definition::{Kind, TaskRules};
use super::patterns::captures;
use serde_json::{Map, Value};
use std::ops::Range;

/// A part of a request and what it is.
#[derive(Debug)]
pub(super) struct Part {
    /// Its words, without those that say nothing.
    pub(super) text: String,
    /// What stood before the colon of the list that it is an item of.
    pub(super) head: String,
    /// It is of its kind because the part before it is, or the list.
    pub(super) inherited: bool,
    /// An index into the kinds; none where no pattern fits.
    pub(super) kind: Option<usize>,
    pub(super) groups: Map<String, Value>,
}

/// A piece of the text, and whether it begins like a task.
struct Piece<'t> {
    text: &'t str,
    own: bool,
}

/// Where a piece stands: what may begin a task differs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// In the middle of a sentence: a capital letter is that of a name.
    Inside,
    /// Where a sentence begins: "Move it" is a task, "Move Planning" a name.
    Sentence,
    /// Anything that looks like one is a task.
    Anywhere,
}

impl TaskRules {
    /// The parts of a text. Those that begin like no task are of the given kind, if one is given.
    pub(super) fn parts(&self, text: &str, given: Option<usize>) -> Vec<Part> {
        let (head, body) = self.head(text.trim());
        let head_kind = head.and_then(|head| self.classify(self.stripped(head)).0);
        let pieces = self.pieces(body, head, head_kind.or(given));
        let mut parts: Vec<Part> = Vec::new();
        for piece in pieces {
            let before = parts.last().and_then(|part| part.kind);
            let heir = if piece.own { given } else { head_kind.or(before).or(given) };
            let text = piece.text.trim().trim_matches([' ', ',', ';', '.', '?', '!']).trim();
            if text.is_empty() {
                continue;
            }
            let mut part = self.part(text, piece.own, given, heir);
            if !piece.own && part.kind == head_kind {
                head.unwrap_or_default().clone_into(&mut part.head);
            }
            parts.push(part);
        }
        parts
    }

    fn part(&self, text: &str, own: bool, given: Option<usize>, heir: Option<usize>) -> Part {
        let text = if own { self.stripped(text) } else { text };
        let mut part = Part {
            text: text.to_owned(),
            head: String::new(),
            inherited: false,
            kind: None,
            groups: Map::new(),
        };
        if own && self.may_classify(text, given) {
            (part.kind, part.groups) = self.classify(text);
        }
        let bare = heir.and_then(|heir| self.kinds.get(heir)).and_then(|kind| kind.bare.as_ref());
        if part.kind.is_none()
            && let Some(groups) = bare.and_then(|bare| captures(bare, text))
        {
            part.kind = heir;
            part.groups = groups;
            part.inherited = true;
        }
        if part.kind.is_none() {
            (part.kind, part.groups) = self.classify(text);
        }
        part
    }

    /// Whether a part is of the kind that its words say. Where a kind is given, a name that looks
    /// like a task of another kind is a name.
    fn may_classify(&self, text: &str, given: Option<usize>) -> bool {
        given.is_none()
            || self.begins(text, Standing::Sentence)
            || (self.begins(text, Standing::Anywhere) && self.classify(text).0 == given)
    }

    /// What stands before a colon and a list, and the list; all is list where there is no colon.
    fn head<'t>(&self, text: &'t str) -> (Option<&'t str>, &'t str) {
        let Some(list) = &self.list else { return (None, text) };
        for (at, _) in text.match_indices(':') {
            let head = &text[..at];
            let after = &text[at + 1..];
            if !after.starts_with(char::is_whitespace) || !list.is_match(head) {
                continue;
            }
            let kind = self.classify(self.stripped(head)).0.and_then(|kind| self.kinds.get(kind));
            let is_head = kind.is_some_and(|kind| kind.inherits);
            return if is_head { (Some(head), after.trim_start()) } else { (None, text) };
        }
        (None, text)
    }

    fn pieces<'t>(
        &self,
        text: &'t str,
        head: Option<&str>,
        given: Option<usize>,
    ) -> Vec<Piece<'t>> {
        let joints = self.joints(text);
        let mut pieces = Vec::new();
        let mut from = 0;
        let mut own = head.is_none();
        let mut current = given;
        for joint in &joints {
            let left = &text[from..joint.start];
            let right = &text[joint.end..];
            if left.trim().is_empty() {
                continue;
            }
            let sentence = matches!(text[joint.clone()].trim(), "." | "?" | "!" | "");
            let standing = if sentence { Standing::Sentence } else { Standing::Inside };
            if self.begins(self.stripped(right), standing) {
                pieces.push(Piece { text: left, own });
                from = joint.end;
                own = true;
                continue;
            }
            let kind = if own { self.classify(self.stripped(left)).0.or(given) } else { current };
            let inherits =
                kind.and_then(|kind| self.kinds.get(kind)).is_some_and(|kind: &Kind| kind.inherits);
            if inherits && is_timed(left) && is_timed(right) {
                pieces.push(Piece { text: left, own });
                from = joint.end;
                own = false;
                current = kind;
            }
        }
        pieces.push(Piece { text: &text[from..], own });
        match head.and_then(counted) {
            // "2 events: gym, call": the number says that each comma cuts.
            Some(count) if pieces.len() != count && joints.len() + 1 == count => {
                every_piece(text, &joints)
            }
            Some(_) | None => pieces,
        }
    }

    /// Where the text may be cut.
    fn joints(&self, text: &str) -> Vec<Range<usize>> {
        let mut whole = dates::phrases(text);
        whole.extend(self.quotes.find_iter(text).map(|quote| quote.range()));
        let is_inside = |at: usize| whole.iter().any(|range| range.start < at && at < range.end);
        self.joints
            .find_iter(text)
            .map(|joint| joint.range())
            .filter(|joint| joint.start > 0 && joint.end < text.len() && !is_inside(joint.start))
            .collect()
    }

    /// The text without words that say nothing; all of it if it has no others.
    fn stripped<'t>(&self, text: &'t str) -> &'t str {
        let text = text.trim();
        let found = self.strip.as_ref().and_then(|strip| strip.find(text));
        match found {
            Some(found) if found.start() == 0 && !text[found.end()..].trim().is_empty() => {
                text[found.end()..].trim()
            }
            Some(_) | None => text,
        }
    }

    fn classify(&self, text: &str) -> (Option<usize>, Map<String, Value>) {
        for (index, kind) in self.kinds.iter().enumerate() {
            if let Some(groups) = kind.patterns.iter().find_map(|regex| captures(regex, text)) {
                return (Some(index), groups);
            }
        }
        (None, Map::new())
    }

    /// Whether a text begins like a task.
    fn begins(&self, text: &str, standing: Standing) -> bool {
        let Some(found) = self.begins.as_ref().and_then(|begins| begins.find(text)) else {
            return false;
        };
        let after = &text[found.end()..];
        if after.starts_with('-') {
            return false;
        }
        let is_small = text.starts_with(char::is_lowercase);
        let names_follow = after.trim_start().starts_with(char::is_uppercase);
        match standing {
            Standing::Anywhere => true,
            Standing::Inside => is_small,
            Standing::Sentence => is_small || !names_follow,
        }
    }
}

fn is_timed(text: &str) -> bool {
    !dates::moments(text).is_empty()
}

fn every_piece<'t>(text: &'t str, joints: &[Range<usize>]) -> Vec<Piece<'t>> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for joint in joints {
        pieces.push(Piece { text: &text[from..joint.start], own: false });
        from = joint.end;
    }
    pieces.push(Piece { text: &text[from..], own: false });
    pieces
}

/// How many items a list is said to have: "create 3 events".
fn counted(head: &str) -> Option<usize> {
    const WORDS: &[&str] =
        &["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let mut words = head.split(|char: char| !char.is_alphanumeric());
    words.find_map(|word| {
        let lower = word.to_lowercase();
        let in_words = WORDS.iter().position(|known| *known == lower).map(|index| index + 2);
        in_words.or_else(|| lower.parse().ok())
    })
}
