//! Tokens as a tree. What is not understood to its end is a fault with its place, and never a part
//! of a query.

use crate::fault::{Place, QueryFault};
use crate::lexer::{Mark, Token, TokenKind, tokens};
use crate::tree::{
    Comparison, Condition, Direction, Expand, Index, Membership, Path, Projection, Query, Segment,
    Sign,
};

mod values;
mod functions;
mod faults;

/// How long a query may be.
pub const QUERY_BYTES_MAX: usize = 16 * 1024;
/// How deep groups, negations, `{..}` and `expand(..)` may nest together.
pub const DEPTH_MAX: usize = 32;
/// How many conditions a query may have.
pub const CONDITIONS_MAX: usize = 500;
/// How many values a list may have.
pub const LIST_VALUES_MAX: usize = 1_000;

/// What a condition begins with.
const CONDITION: &[&str] = &["a field", "`(`", "`!!`", "a function"];
const FIELD: &[&str] = &["a field"];

/// Reads a query. A blank one takes every record.
pub fn parse(text: &str) -> Result<Query, QueryFault> {
    let mut parser = Parser::new(text)?;
    if matches!(parser.peek().kind, TokenKind::End) {
        return Ok(Query::default());
    }
    let mut query = Query { filter: parser.any()?, ..Query::default() };
    if !matches!(parser.peek().kind, TokenKind::End) {
        return Err(parser.unjoined("the end of the query"));
    }
    query.expands = parser.expands;
    query.fields = parser.fields;
    functions::check_texts(&query)?;
    Ok(query)
}

/// Reads the path of a field alone, as it is written for a sort.
pub fn parse_path(text: &str) -> Result<Path, QueryFault> {
    let mut parser = Parser::new(text)?;
    let path = parser.path(FIELD)?;
    match parser.peek().kind {
        TokenKind::End => Ok(path),
        _ => Err(parser.unexpected(&["the end of the path"])),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    conditions: usize,
    expands: Vec<Expand>,
    fields: Option<Projection>,
    /// Where `expand(..)` or `fields:[..]` was found first.
    clause: Option<Place>,
}

impl Parser {
    fn new(text: &str) -> Result<Self, QueryFault> {
        if text.len() > QUERY_BYTES_MAX {
            let message = format!("the query is longer than {QUERY_BYTES_MAX} bytes");
            return Err(QueryFault::at(Place::START, message));
        }
        Ok(Self {
            tokens: tokens(text),
            at: 0,
            depth: 0,
            conditions: 0,
            expands: Vec::new(),
            fields: None,
            clause: None,
        })
    }

    /// The next token. The last one is never taken.
    fn peek(&self) -> &Token {
        &self.tokens[self.at]
    }

    /// The token so many further than the next one.
    fn ahead(&self, further: usize) -> &TokenKind {
        let last = self.tokens.len() - 1;
        &self.tokens[last.min(self.at + further)].kind
    }

    fn place(&self) -> Place {
        self.peek().place
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn is_next(&self, mark: Mark) -> bool {
        is_mark(&self.peek().kind, mark)
    }

    fn eat(&mut self, mark: Mark) -> bool {
        let found = self.is_next(mark);
        if found {
            self.advance();
        }
        found
    }

    fn require(&mut self, mark: Mark) -> Result<(), QueryFault> {
        if self.eat(mark) {
            return Ok(());
        }
        Err(self.unexpected(&[&format!("`{}`", mark.text())]))
    }

    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, QueryFault>,
    ) -> Result<T, QueryFault> {
        if self.depth == DEPTH_MAX {
            let message = format!("conditions nest deeper than {DEPTH_MAX} levels");
            return Err(QueryFault::at(self.place(), message));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Conditions joined by `||`, of which `&&` binds closer. None if there are only clauses.
    fn any(&mut self) -> Result<Option<Condition>, QueryFault> {
        let mut alternatives = Vec::new();
        let mut has_or = false;
        loop {
            alternatives.extend(self.all()?);
            if !self.eat(Mark::Or) {
                break;
            }
            has_or = true;
        }
        match self.clause {
            Some(place) if has_or && self.depth == 0 => Err(misplaced(place)),
            _ => Ok(joined(alternatives, Condition::Any)),
        }
    }

    fn all(&mut self) -> Result<Option<Condition>, QueryFault> {
        let mut parts = Vec::new();
        loop {
            parts.extend(self.unit()?);
            if !self.eat(Mark::And) {
                return Ok(joined(parts, Condition::All));
            }
        }
    }

    /// The conditions inside brackets, which end with this mark.
    fn inner(&mut self, end: Mark) -> Result<Condition, QueryFault> {
        let inner = self.nested(Self::any)?;
        if !self.eat(end) {
            return Err(self.unjoined(&format!("`{}`", end.text())));
        }
        inner.ok_or_else(|| self.unexpected(CONDITION))
    }

    /// One condition; none if it is a clause, which is kept.
    fn unit(&mut self) -> Result<Option<Condition>, QueryFault> {
        let place = self.place();
        if self.eat(Mark::Not) {
            let inner = self.nested(Self::unit)?;
            return Ok(inner.map(|inner| Condition::Not(Box::new(inner))));
        }
        if self.eat(Mark::Open) {
            return self.inner(Mark::Close).map(Some);
        }
        if self.is_function("expand") || self.is_fields() {
            if self.depth > 0 {
                return Err(misplaced(place));
            }
            self.clause = self.clause.or(Some(place));
            self.take_clause()?;
            return Ok(None);
        }
        self.conditions += 1;
        if self.conditions > CONDITIONS_MAX {
            let message = format!("there are more than {CONDITIONS_MAX} conditions");
            return Err(QueryFault::at(place, message));
        }
        if self.is_function("text") {
            return self.text().map(Some);
        }
        for (name, direction) in [
            ("hasEdge", Direction::Outgoing),
            ("hasOutgoingEdge", Direction::Outgoing),
            ("hasIncomingEdge", Direction::Incoming),
        ] {
            if self.is_function(name) {
                return self.edge(direction).map(Some);
            }
        }
        self.field().map(Some)
    }

    /// A field, an operator and what it is compared with.
    fn field(&mut self) -> Result<Condition, QueryFault> {
        let path = self.path(CONDITION)?;
        let TokenKind::Mark(mark) = self.peek().kind else {
            return Err(self.no_operator());
        };
        match mark {
            Mark::Exists => {
                self.advance();
                Ok(Condition::Exists(path))
            }
            Mark::In | Mark::NotIn => {
                self.advance();
                let negated = mark == Mark::NotIn;
                let operands = self.list()?;
                Ok(Condition::OneOf(Membership { path, negated, operands }))
            }
            Mark::Sign(sign) => {
                self.advance();
                if sign == Sign::Equal && self.eat(Mark::BraceOpen) {
                    let inner = self.inner(Mark::BraceClose)?;
                    return Ok(Condition::Element(path, Box::new(inner)));
                }
                let operand = self.operand_of(sign)?;
                let case = self.case_of(&operand)?;
                Ok(Condition::Compare(Comparison { path, sign, operand, case }))
            }
            _ => Err(self.no_operator()),
        }
    }

    /// A path, where one of these is expected.
    fn path(&mut self, expected: &[&str]) -> Result<Path, QueryFault> {
        let place = self.place();
        let text = match &self.peek().kind {
            TokenKind::Text(written) => written.bare().map(str::to_owned),
            _ => None,
        };
        let Some(text) = text else {
            return Err(self.unexpected(expected));
        };
        self.path_after(&text, place)
    }

    /// A path whose beginning, in the next token, is this text at this place.
    fn path_after(&mut self, text: &str, place: Place) -> Result<Path, QueryFault> {
        let mut segments = names(text, place)?;
        self.advance();
        while self.eat(Mark::ListOpen) {
            let index = self.index()?;
            self.require(Mark::ListClose)?;
            if let Some(last) = segments.last_mut() {
                last.index = index;
            }
            let next = self.peek();
            let place = next.place.further(1);
            match &next.kind {
                TokenKind::Text(written) if next.is_glued => {
                    let Some(names_text) = written.bare().and_then(|text| text.strip_prefix('.'))
                    else {
                        return Err(self.unexpected(&["`.`", "an operator"]));
                    };
                    segments.extend(names(names_text, place)?);
                    self.advance();
                }
                _ => break,
            }
        }
        Ok(Path { segments })
    }

    fn index(&mut self) -> Result<Index, QueryFault> {
        let index = match &self.peek().kind {
            TokenKind::Text(written) => match written.bare() {
                Some(digits) => digits.parse().ok().map(Index::At),
                None => values::is_star(written).then_some(Index::Each),
            },
            _ => None,
        };
        let index = index.ok_or_else(|| self.unexpected(&["an index", "`*`"]))?;
        self.advance();
        Ok(index)
    }

    /// Whether a function of this name begins here.
    fn is_function(&self, name: &str) -> bool {
        self.is_word(name) && is_mark(self.ahead(1), Mark::Open)
    }

    /// Whether `fields:[` begins here.
    fn is_fields(&self) -> bool {
        self.is_word("fields")
            && is_mark(self.ahead(1), Mark::Sign(Sign::Equal))
            && is_mark(self.ahead(2), Mark::ListOpen)
    }

    fn is_word(&self, word: &str) -> bool {
        match &self.peek().kind {
            TokenKind::Text(written) => written.bare() == Some(word),
            _ => false,
        }
    }
}

fn is_mark(kind: &TokenKind, mark: Mark) -> bool {
    matches!(kind, TokenKind::Mark(found) if *found == mark)
}

/// The one part, or all of them; parts of the same kind are taken apart.
fn joined(parts: Vec<Condition>, join: fn(Vec<Condition>) -> Condition) -> Option<Condition> {
    let is_all = matches!(join(Vec::new()), Condition::All(_));
    let mut flat = Vec::new();
    for part in parts {
        match part {
            Condition::All(inner) if is_all => flat.extend(inner),
            Condition::Any(inner) if !is_all => flat.extend(inner),
            other => flat.push(other),
        }
    }
    if flat.len() > 1 { Some(join(flat)) } else { flat.pop() }
}

/// `a.b` as segments.
fn names(text: &str, place: Place) -> Result<Vec<Segment>, QueryFault> {
    let mut place = place;
    let mut segments = Vec::new();
    for name in text.split('.') {
        if name.is_empty() {
            return Err(QueryFault::at(place, "a name is missing beside a dot"));
        }
        if let Some((word, after)) = name.split_once(' ') {
            let further = word.chars().count() + after.len() - after.trim_start().len() + 1;
            return Err(faults::spaced(word, after.trim_start(), place, further));
        }
        segments.push(Segment { name: name.to_owned(), index: Index::Unsaid, place });
        place = place.further(name.chars().count() + 1);
    }
    Ok(segments)
}

fn misplaced(place: Place) -> QueryFault {
    let message = "`expand(..)` and `fields:[..]` may stand only beside the whole condition";
    QueryFault::at(place, message).hint("join them by `&&`, with the condition in parentheses")
}
