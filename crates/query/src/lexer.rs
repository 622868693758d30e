//! A text as tokens, each with its place. Whatever has no meaning is a token of its own, which ends
//! them: nothing is skipped, so that a query is never used in part.

use crate::dates::{begins_like_moment, read_moment};
use crate::fault::{Place, QueryFault};
use crate::tree::{Piece, Sign};
use jiff::Timestamp;

/// How much of a token a message shows.
const SHOWN_CHARS_MAX: usize = 40;
const ID_DIGITS: usize = 24;

pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) place: Place,
    /// No white space stands before it.
    pub(crate) is_glued: bool,
}

pub(crate) enum TokenKind {
    Mark(Mark),
    Text(Written),
    Whole(i64),
    Decimal(f64),
    Moment(Timestamp),
    Variable(String),
    Reference(String),
    Bad(Box<QueryFault>),
    End,
}

/// Texts, with and without quotes, and wildcards, with nothing between them.
pub(crate) struct Written {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) has_quotes: bool,
}

impl Written {
    /// The text, if there are neither quotes nor wildcards.
    pub(crate) fn bare(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Text(text)] if !self.has_quotes => Some(text),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Sign(Sign),
    In,
    NotIn,
    Exists,
    And,
    Or,
    Not,
    Open,
    Close,
    ListOpen,
    ListClose,
    BraceOpen,
    BraceClose,
    Comma,
    Plus,
    CaseExact,
    CaseFolded,
}

/// All marks; of two that begin alike, the longer one first.
const MARKS: &[(&str, Mark)] = &[
    (":!^", Mark::NotIn),
    (":!", Mark::Sign(Sign::NotEqual)),
    (":<=", Mark::Sign(Sign::LessOrEqual)),
    (":>=", Mark::Sign(Sign::GreaterOrEqual)),
    (":<", Mark::Sign(Sign::Less)),
    (":>", Mark::Sign(Sign::Greater)),
    (":~", Mark::Exists),
    (":^", Mark::In),
    (":", Mark::Sign(Sign::Equal)),
    ("&&", Mark::And),
    ("||", Mark::Or),
    ("!!", Mark::Not),
    ("(", Mark::Open),
    (")", Mark::Close),
    ("[", Mark::ListOpen),
    ("]", Mark::ListClose),
    ("{", Mark::BraceOpen),
    ("}", Mark::BraceClose),
    (",", Mark::Comma),
    ("+", Mark::Plus),
    ("~cs", Mark::CaseExact),
    ("~ci", Mark::CaseFolded),
];

impl Mark {
    /// As it is written.
    pub(crate) fn text(self) -> &'static str {
        MARKS.iter().find(|(_, mark)| *mark == self).map_or("", |(text, _)| *text)
    }
}

impl TokenKind {
    /// What a message calls it.
    pub(crate) fn shown(&self) -> String {
        match self {
            TokenKind::Mark(mark) => format!("`{}`", mark.text()),
            TokenKind::Text(written) => match written.pieces.as_slice() {
                [Piece::Text(text)] => {
                    let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
                    format!("`{shown}`")
                }
                _ => "a pattern".to_owned(),
            },
            TokenKind::Whole(_) | TokenKind::Decimal(_) => "a number".to_owned(),
            TokenKind::Moment(_) => "a date-time".to_owned(),
            TokenKind::Variable(name) => format!("`${{{name}}}`"),
            TokenKind::Reference(_) => "a reference".to_owned(),
            TokenKind::Bad(_) => "a mistake".to_owned(),
            TokenKind::End => "the end of the query".to_owned(),
        }
    }
}

/// Whether a character needs no quotes.
pub(crate) fn is_bare(char: char) -> bool {
    char.is_alphanumeric() || "_./@'-".contains(char)
}

/// The tokens of a text. The last one is `End` or `Bad`.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { rest: text, place: Place::START };
    let mut tokens = Vec::new();
    loop {
        let before = lexer.rest.len();
        lexer.take_while(char::is_whitespace);
        let is_glued = lexer.rest.len() == before;
        let place = lexer.place;
        let kind = lexer.token().unwrap_or_else(|fault| TokenKind::Bad(Box::new(fault)));
        let is_last = matches!(kind, TokenKind::End | TokenKind::Bad(_));
        tokens.push(Token { kind, place, is_glued });
        if is_last {
            return tokens;
        }
    }
}

struct Lexer<'t> {
    rest: &'t str,
    place: Place,
}

impl<'t> Lexer<'t> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes so many bytes, which end between two characters.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        for char in taken.chars() {
            self.place = self.place.further(1);
            if char == '\n' {
                self.place.line += 1;
                self.place.column = 1;
            }
        }
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|char| !fits(char)).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn token(&mut self) -> Result<TokenKind, QueryFault> {
        let Some(char) = self.peek() else {
            return Ok(TokenKind::End);
        };
        match char {
            '#' => self.number(),
            '$' => self.variable(),
            _ if self.rest.starts_with("@@") => self.reference(),
            _ if begins_like_moment(self.rest) => self.moment(),
            '"' | '*' | '?' => self.written(),
            _ if is_bare(char) => self.written(),
            _ => self.mark(char),
        }
    }

    fn mark(&mut self, char: char) -> Result<TokenKind, QueryFault> {
        // An older spelling of `:^[`.
        if self.rest.starts_with(":=[") {
            self.take(":=".len());
            return Ok(TokenKind::Mark(Mark::In));
        }
        let found = MARKS.iter().find(|(text, _)| self.rest.starts_with(text));
        let is_word = |text: &str| text.starts_with('~');
        match found {
            Some((text, _)) if is_word(text) && self.rest[text.len()..].starts_with(is_bare) => {
                Err(self.unknown(char))
            }
            Some((text, mark)) => {
                self.take(text.len());
                Ok(TokenKind::Mark(*mark))
            }
            None => Err(self.unknown(char)),
        }
    }

    fn unknown(&self, char: char) -> QueryFault {
        let hint = match char {
            '&' => "write `&&` between two conditions",
            '|' => "write `||` between two conditions",
            '!' => "write `!!` before a condition that must not hold",
            '<' | '>' | '=' => "operators begin with a colon, such as `:>=`",
            '~' => "after a text, `~cs` tells upper and lower case apart and `~ci` does not",
            _ => "put the text in quotes",
        };
        let message = format!("`{}` has no meaning here", char.escape_debug());
        QueryFault::at(self.place, message).hint(hint)
    }

    fn number(&mut self) -> Result<TokenKind, QueryFault> {
        let place = self.place;
        let marks = self.take_while(|char| char == '#');
        let text = self.take_while(is_bare);
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let has_fraction =
            digits.split_once('.').is_some_and(|(left, right)| is_digits(left) && is_digits(right));
        let fault = QueryFault::at(place, format!("`{marks}{text}` is not a number"));
        match marks {
            "#" if is_digits(digits) => text.parse().map(TokenKind::Whole).map_err(|_| {
                let message = format!("`{marks}{text}` is beyond 64 bits");
                QueryFault::at(place, message).hint(format!("write `##{text}`"))
            }),
            "#" if has_fraction => Err(fault.hint(format!("write `##{text}`"))),
            "##" if has_fraction || is_digits(digits) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(TokenKind::Decimal(number)),
                _ => Err(fault.hint("it is too large for a number")),
            },
            _ => Err(fault.hint("whole numbers are written `#5`, decimals `##5.5`")),
        }
    }

    fn variable(&mut self) -> Result<TokenKind, QueryFault> {
        let place = self.place;
        self.take("$".len());
        if let Some(body) = self.rest.strip_prefix('{') {
            let end = body.find(|char: char| !char.is_ascii_alphanumeric() && char != '_');
            let name = &body[..end.unwrap_or(body.len())];
            if !name.is_empty() && body[name.len()..].starts_with('}') {
                self.take(name.len() + "{}".len());
                return Ok(TokenKind::Variable(name.to_owned()));
            }
        }
        let hint = "a variable is written `${name}`; put any other text with `$` in quotes";
        Err(QueryFault::at(place, "`$` begins no variable").hint(hint))
    }

    fn reference(&mut self) -> Result<TokenKind, QueryFault> {
        let place = self.place;
        self.take("@@".len());
        let id = self.take_while(is_bare);
        if id.len() == ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(TokenKind::Reference(id.to_owned()));
        }
        let message = format!("`@@` is not followed by an id of {ID_DIGITS} hexadecimal digits");
        Err(QueryFault::at(place, message).hint("put a text that begins with `@@` in quotes"))
    }

    fn moment(&mut self) -> Result<TokenKind, QueryFault> {
        let fits = |char: char| char.is_ascii_digit() || ":.+-TZ".contains(char);
        let end = self.rest.find(|char| !fits(char)).unwrap_or(self.rest.len());
        let (text, after) = self.rest.split_at(end);
        if after.starts_with(['*', '?']) {
            return self.written();
        }
        match read_moment(text) {
            Some(moment) => {
                self.take(end);
                Ok(TokenKind::Moment(moment))
            }
            None => Err(QueryFault::at(self.place, format!("`{text}` is not a date-time"))
                .hint("write it as `2024-01-31T09:00:00Z`, or put the text in quotes")),
        }
    }

    fn written(&mut self) -> Result<TokenKind, QueryFault> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut has_quotes = false;
        loop {
            let place = self.place;
            let is_after_wildcard = matches!(pieces.last(), Some(Piece::Any | Piece::One));
            let piece = match self.peek() {
                Some('"') => {
                    has_quotes = true;
                    Piece::Text(self.quoted()?)
                }
                Some('*') => {
                    self.take_while(|char| char == '*');
                    Piece::Any
                }
                Some('?') => {
                    self.take("?".len());
                    Piece::One
                }
                Some(char) if is_bare(char) => Piece::Text(self.bare()),
                Some(' ') if is_after_wildcard && goes_on(self.rest) => Piece::Text(self.bare()),
                _ => break,
            };
            if matches!((pieces.last(), &piece), (Some(Piece::Text(_)), Piece::Text(_))) {
                let message = "a quoted text stands beside another text";
                let hint = "quote all of it; `*` and `?` may stand beside the quotes";
                return Err(QueryFault::at(place, message).hint(hint));
            }
            pieces.push(piece);
        }
        // Empty quotes mean something only where they stand alone.
        if pieces.len() > 1 {
            pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
            pieces.dedup_by(|next, last| *next == Piece::Any && *last == Piece::Any);
        }
        Ok(TokenKind::Text(Written { pieces, has_quotes }))
    }

    fn quoted(&mut self) -> Result<String, QueryFault> {
        let start = self.place;
        let mut text = String::new();
        self.take("\"".len());
        loop {
            text.push_str(self.take_while(|char| char != '"' && char != '\n'));
            if self.peek() != Some('"') {
                let message = "a quoted text has no end in its line";
                return Err(QueryFault::at(start, message)
                    .expected(&["`\"`"])
                    .hint("a quote inside quotes is written twice"));
            }
            self.take("\"".len());
            if self.peek() != Some('"') {
                return Ok(text);
            }
            self.take("\"".len());
            text.push('"');
        }
    }

    /// A text without quotes, up to the next wildcard. Spaces and single `&` belong to it where it
    /// goes on behind them.
    fn bare(&mut self) -> String {
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(is_bare));
            let is_tight = !text.is_empty() && !text.ends_with(' ');
            let more = match self.peek() {
                Some(' ') if goes_on(self.rest) => self.take_while(|char| char == ' '),
                Some('&') if is_tight && self.rest[1..].starts_with(is_bare) => {
                    self.take("&".len())
                }
                _ => return text,
            };
            text.push_str(more);
        }
    }
}

/// Whether a text without quotes goes on behind these spaces.
fn goes_on(rest: &str) -> bool {
    let after = rest.trim_start_matches(' ');
    after.starts_with(|char| is_bare(char) || char == '*' || char == '?')
}
