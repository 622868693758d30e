//! JSONPath as RFC 9535 writes it, from the text to a query. The parser reads from left to right
//! and never goes back over more than spaces, so its time is linear in the length of the text.

use super::syntax::{
    Comparison, Matching, NESTING_MAX, Operand, Part, Query, Segment, Selector, Sign, Slice,
    TEXT_BYTES_MAX, Test,
};
use serde_json::{Number, Value};

/// The largest index of RFC 9535: whole numbers up to here are the same in every JSON reader.
const INDEX_MAX: u64 = (1 << 53) - 1;
/// The longer signs stand first.
const SIGNS: [(&str, Sign); 6] = [
    ("==", Sign::Equal),
    ("!=", Sign::Unequal),
    ("<=", Sign::LessOrEqual),
    (">=", Sign::GreaterOrEqual),
    ("<", Sign::Less),
    (">", Sign::Greater),
];

/// The query that this text writes. The error says what is wrong and where.
pub(super) fn parse(text: &str) -> Result<Query, String> {
    if text.len() > TEXT_BYTES_MAX {
        let bytes = text.len();
        return Err(format!("it has {bytes} bytes, more than {TEXT_BYTES_MAX}"));
    }
    let mut parser = Parser { text, at: 0, depth: 0 };
    if !parser.eat("$") {
        return Err("it does not begin with `$`".to_owned());
    }
    let mut parts = parser.context_key();
    parts.extend(parser.parts()?);
    if parser.peek().is_some() {
        return Err(parser.expected("`.`, `[` or the end"));
    }
    Ok(Query { parts })
}

struct Parser<'t> {
    text: &'t str,
    /// The byte that is read next.
    at: usize,
    /// How many filters, parentheses and functions are open.
    depth: usize,
}

/// What stands in a filter, before it is known what it is used for.
enum Term {
    /// A test if it stands alone, an operand if it is compared.
    Query(Query),
    /// Always one side of a comparison.
    Operand(Operand),
    /// Never one side of a comparison.
    Test(Test),
}

impl Term {
    fn operand(self) -> Result<Operand, String> {
        match self {
            Term::Query(query) => query.singular().map(Operand::At).ok_or_else(|| {
                "a query that is compared, or that is an argument for one value, may hold only \
                 names and indexes"
                    .to_owned()
            }),
            Term::Operand(operand) => Ok(operand),
            Term::Test(_) => Err("`match` and `search` are tests and have no value".to_owned()),
        }
    }

    /// The test that it is when nothing is compared.
    fn alone(self, parser: &Parser<'_>) -> Result<Test, String> {
        match self {
            Term::Query(query) => Ok(Test::Exists(query)),
            Term::Test(test) => Ok(test),
            Term::Operand(_) => Err(parser.expected("a comparison")),
        }
    }
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += next.map_or(0, char::len_utf8);
        next
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn while_char(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|char| !fits(char)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn spaces(&mut self) {
        self.while_char(|char| matches!(char, ' ' | '\t' | '\n' | '\r'));
    }

    fn expected(&self, what: &str) -> String {
        let place = self.text[..self.at].chars().count() + 1;
        format!("expected {what} at character {place}")
    }

    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.depth == NESTING_MAX {
            let what = "filters, parentheses and functions nest deeper";
            return Err(format!("{what} than {NESTING_MAX} levels"));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// `$.context.a-b::c` is legal here, though RFC 9535 wants such a key in brackets.
    fn context_key(&mut self) -> Vec<Part> {
        let start = self.at;
        if self.eat(".context.") {
            let key = self.while_char(|char| is_name_char(char) || matches!(char, '-' | ':'));
            if !key.is_empty() {
                return vec![Part::of_name("context"), Part::of_name(key)];
            }
        }
        self.at = start;
        Vec::new()
    }

    fn parts(&mut self) -> Result<Vec<Part>, String> {
        let mut parts = Vec::new();
        loop {
            let end = self.at;
            self.spaces();
            if !matches!(self.peek(), Some('.' | '[')) {
                self.at = end;
                return Ok(parts);
            }
            parts.push(self.part()?);
        }
    }

    fn part(&mut self) -> Result<Part, String> {
        let descends = self.eat("..");
        let dotted = !descends && self.eat(".");
        let selectors = match self.peek() {
            Some('[') if !dotted => self.brackets()?,
            _ => vec![self.short()?],
        };
        Ok(Part { descends, selectors })
    }

    /// What stands after a dot.
    fn short(&mut self) -> Result<Selector, String> {
        if self.eat("*") {
            return Ok(Selector::All);
        }
        if self.peek().is_some_and(|char| is_name_char(char) && !char.is_ascii_digit()) {
            let name = self.while_char(is_name_char);
            return Ok(Selector::One(Segment::Name(name.to_owned())));
        }
        Err(self.expected("a name or `*`"))
    }

    fn brackets(&mut self) -> Result<Vec<Selector>, String> {
        self.next();
        let mut selectors = Vec::new();
        loop {
            self.spaces();
            selectors.push(self.selector()?);
            self.spaces();
            if self.eat("]") {
                return Ok(selectors);
            }
            if !self.eat(",") {
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    fn selector(&mut self) -> Result<Selector, String> {
        match self.peek() {
            Some('\'' | '"') => Ok(Selector::One(Segment::Name(self.quoted()?))),
            Some('*') => {
                self.next();
                Ok(Selector::All)
            }
            Some('?') => {
                self.next();
                self.spaces();
                let test = self.nested(Self::any)?;
                Ok(Selector::Filter(Box::new(test)))
            }
            Some(':' | '-' | '0'..='9') => self.index_or_slice(),
            _ => Err(self.expected("a name in quotes, an index, a slice, `*` or `?`")),
        }
    }

    fn index_or_slice(&mut self) -> Result<Selector, String> {
        let start = self.whole()?;
        self.spaces();
        if !self.eat(":") {
            let index = start.ok_or_else(|| self.expected("an index"))?;
            return Ok(Selector::One(Segment::Index(index)));
        }
        self.spaces();
        let end = self.whole()?;
        self.spaces();
        let mut step = None;
        if self.eat(":") {
            self.spaces();
            step = self.whole()?;
        }
        Ok(Selector::Slice(Slice { start, end, step: step.unwrap_or(1) }))
    }

    fn whole(&mut self) -> Result<Option<i64>, String> {
        let text = self.while_char(|char| char == '-' || char.is_ascii_digit());
        if text.is_empty() {
            return Ok(None);
        }
        let plain = text == "0" || !text.trim_start_matches('-').starts_with('0');
        match text.parse::<i64>() {
            Ok(number) if plain && number.unsigned_abs() <= INDEX_MAX => Ok(Some(number)),
            _ => Err(format!("`{text}` is not an index")),
        }
    }

    fn any(&mut self) -> Result<Test, String> {
        let mut tests = vec![self.every()?];
        while self.operator("||") {
            tests.push(self.every()?);
        }
        Ok(if tests.len() == 1 { tests.remove(0) } else { Test::Any(tests) })
    }

    fn every(&mut self) -> Result<Test, String> {
        let mut tests = vec![self.test()?];
        while self.operator("&&") {
            tests.push(self.test()?);
        }
        Ok(if tests.len() == 1 { tests.remove(0) } else { Test::Every(tests) })
    }

    /// Whether this operator follows; if so it is read, with the spaces around it.
    fn operator(&mut self, word: &str) -> bool {
        let start = self.at;
        self.spaces();
        let found = self.eat(word);
        if found {
            self.spaces();
        } else {
            self.at = start;
        }
        found
    }

    fn test(&mut self) -> Result<Test, String> {
        if self.eat("!") {
            self.spaces();
            let test = match self.peek() {
                Some('(') => self.parentheses()?,
                _ => self.term()?.alone(self)?,
            };
            return Ok(Test::Not(Box::new(test)));
        }
        if self.peek() == Some('(') {
            return self.parentheses();
        }
        let left = self.term()?;
        let Some((_, sign)) = SIGNS.into_iter().find(|(word, _)| self.operator(word)) else {
            return left.alone(self);
        };
        let left = left.operand()?;
        let right = self.term()?.operand()?;
        Ok(Test::Compare(Comparison { left, sign, right }))
    }

    fn parentheses(&mut self) -> Result<Test, String> {
        self.next();
        self.spaces();
        let test = self.nested(Self::any)?;
        self.spaces();
        if !self.eat(")") {
            return Err(self.expected("`&&`, `||` or `)`"));
        }
        Ok(test)
    }

    fn term(&mut self) -> Result<Term, String> {
        match self.peek() {
            Some('@') => {
                self.next();
                Ok(Term::Query(Query { parts: self.parts()? }))
            }
            Some('$') => Err("a filter may look only at `@`, not at `$`".to_owned()),
            Some('\'' | '"') => Ok(Term::Operand(Operand::Literal(Value::String(self.quoted()?)))),
            Some('-' | '0'..='9') => self.number(),
            Some('a'..='z') => self.word(),
            _ => Err(self.expected("`@`, a literal or a function")),
        }
    }

    fn number(&mut self) -> Result<Term, String> {
        let fits = |char: char| char.is_ascii_digit() || "+-.eE".contains(char);
        let text = self.while_char(fits);
        let number: Number =
            serde_json::from_str(text).map_err(|_| format!("`{text}` is not a number"))?;
        Ok(Term::Operand(Operand::Literal(Value::Number(number))))
    }

    fn word(&mut self) -> Result<Term, String> {
        let fits = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
        let word = self.while_char(fits);
        if self.eat("(") {
            return self.nested(|parser| parser.function(word));
        }
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ => return Err(format!("`{word}` is no literal; put a text in quotes")),
        };
        Ok(Term::Operand(Operand::Literal(value)))
    }

    /// A function after its opening parenthesis.
    fn function(&mut self, name: &str) -> Result<Term, String> {
        self.spaces();
        let term = match name {
            "length" => Term::Operand(Operand::Length(Box::new(self.term()?.operand()?))),
            "count" => Term::Operand(Operand::Count(self.nodes(name)?)),
            "value" => Term::Operand(Operand::ValueOf(self.nodes(name)?)),
            "match" | "search" => {
                let text = self.term()?.operand()?;
                if !self.operator(",") {
                    return Err(self.expected("`,`"));
                }
                let pattern = self.term()?.operand()?;
                Term::Test(Test::Matches(Matching { whole: name == "match", text, pattern }))
            }
            _ => {
                let known = "length, count, value, match and search";
                return Err(format!("there is no function `{name}`; there are {known}"));
            }
        };
        self.spaces();
        if !self.eat(")") {
            return Err(self.expected("`)`"));
        }
        Ok(term)
    }

    fn nodes(&mut self, function: &str) -> Result<Query, String> {
        match self.term()? {
            Term::Query(query) => Ok(query),
            Term::Operand(_) | Term::Test(_) => {
                Err(format!("the argument of `{function}` must be a query"))
            }
        }
    }

    fn quoted(&mut self) -> Result<String, String> {
        let quote = self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                char if char == quote => return Ok(text),
                Some('\\') => text.push(self.escaped(quote)?),
                Some(char) if char >= ' ' => text.push(char),
                Some(_) => return Err("a text holds a control character; escape it".to_owned()),
                None => return Err(self.expected("a closing quote")),
            }
        }
    }

    fn escaped(&mut self, quote: Option<char>) -> Result<char, String> {
        match self.next() {
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('u') => self.unicode(),
            Some(char) if Some(char) == quote || matches!(char, '/' | '\\') => Ok(char),
            _ => Err("a text holds an escape that JSONPath does not have".to_owned()),
        }
    }

    fn unicode(&mut self) -> Result<char, String> {
        let first = self.unit()?;
        let paired = (0xd800..0xdc00).contains(&first) && self.eat("\\u");
        let second = if paired { Some(self.unit()?) } else { None };
        let mut chars = char::decode_utf16([first].into_iter().chain(second));
        match (chars.next(), chars.next()) {
            (Some(Ok(char)), None) => Ok(char),
            _ => Err("a text holds half of a surrogate pair".to_owned()),
        }
    }

    /// The four digits of `\uXXXX`.
    fn unit(&mut self) -> Result<u16, String> {
        let digits =
            self.rest().get(..4).filter(|text| text.chars().all(|c| c.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let unit = unit.ok_or_else(|| self.expected("four hexadecimal digits"))?;
        self.at += 4;
        Ok(unit)
    }
}

fn is_name_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_' || !char.is_ascii()
}
