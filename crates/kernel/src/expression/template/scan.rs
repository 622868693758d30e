//! The shape of a template's text, checked before minijinja's recursive parser sees it. Its parser
//! guards brackets and blocks, but neither chains of operators (`---1`, `not not x`, `a and b`,
//! `x if y else ..`, `x.y.z`, `x|f|g`) nor `elif`; its compiler and the drop of its tree guard
//! nothing. One pass over the tokens bounds how deep that tree can be.

use super::{NAME, NO_OPERATOR, unknown};
use minijinja::machinery::{Token, Tokenizer};
use minijinja::syntax::SyntaxConfig;

/// How long a text with `{{ }}` may be.
const SOURCE_BYTES_MAX: usize = 256 * 1024;
/// How long one of its lines may be: minijinja counts columns in 16 bits.
const LINE_BYTES_MAX: usize = 65_000;
/// How deep the tree of one expression may be.
const DEPTH_MAX: usize = 256;
/// How many brackets may be open at the same time.
const BRACKETS_MAX: usize = 64;
/// How many blocks may be open at the same time; an `elif` is one more.
const BLOCKS_MAX: usize = 128;

/// The words with which a block begins, goes on and ends.
const KEYWORDS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

/// Whether a text is one for a template at all.
pub(super) fn has_syntax(source: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|opening| source.contains(opening))
}

/// Checks that a text is within the limits, and that it only shows, chooses and repeats.
pub(super) fn check(source: &str) -> Result<(), String> {
    if source.len() > SOURCE_BYTES_MAX && has_syntax(source) {
        return Err(format!(
            "a text with `{{{{ }}}}` has at most {SOURCE_BYTES_MAX} bytes, this one has {}",
            source.len()
        ));
    }
    let is_long = |line: &str| line.len() > LINE_BYTES_MAX;
    if has_syntax(source) && source.split('\n').any(is_long) {
        return Err(format!(
            "a line of a text with `{{{{ }}}}` has at most {LINE_BYTES_MAX} bytes; break it"
        ));
    }
    let mut scan = Scan::default();
    let mut tokens = Tokenizer::new(source, NAME, false, SyntaxConfig::default());
    // Where the tokens end with an error the parser stops too, and says why.
    while let Ok(Some((token, _))) = tokens.next_token() {
        scan.token(&token)?;
    }
    scan.end()
}

/// One expression, or those between two brackets.
#[derive(Default)]
struct Level {
    /// Operators of this expression. They lean to the left, so each may be one level deeper.
    operators: usize,
    /// The depth of its deepest operand that is complete.
    deepest: usize,
    /// The depth of the operand that is being read.
    operand: usize,
    /// The depth of the deepest expression before the last comma.
    before: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.before.max(self.operators + self.deepest.max(self.operand))
    }

    fn operator(&mut self) {
        self.operators += 1;
        self.deepest = self.deepest.max(self.operand);
        self.operand = 0;
    }
}

#[derive(Default)]
struct Scan {
    levels: Vec<Level>,
    /// The open blocks, each with its branches.
    blocks: Vec<usize>,
    /// Whether the next word says what kind of block this is.
    begins: bool,
}

impl Scan {
    fn token(&mut self, token: &Token<'_>) -> Result<(), String> {
        match token {
            Token::VariableStart => self.begin(false),
            Token::BlockStart => self.begin(true),
            Token::VariableEnd | Token::BlockEnd => self.end()?,
            Token::Ident(word) if self.begins => {
                self.begins = false;
                self.keyword(word)?;
            }
            Token::Ident("if" | "else" | "and" | "or" | "not" | "in")
            | Token::Minus
            | Token::Eq
            | Token::Ne
            | Token::Gt
            | Token::Gte
            | Token::Lt
            | Token::Lte => self.top().operator(),
            Token::Ident("is") | Token::Dot | Token::Pipe => self.top().operand += 1,
            Token::ParenOpen | Token::BracketOpen => self.open()?,
            Token::ParenClose | Token::BracketClose => self.close(),
            Token::Comma | Token::Assign => self.separate(),
            Token::Plus
            | Token::Mul
            | Token::Div
            | Token::FloorDiv
            | Token::Pow
            | Token::Mod
            | Token::Tilde
            | Token::Colon
            | Token::BraceOpen
            | Token::BraceClose => return Err(NO_OPERATOR.to_owned()),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, block: bool) {
        self.levels.clear();
        self.begins = block;
    }

    fn keyword(&mut self, word: &str) -> Result<(), String> {
        match word {
            "if" | "for" => self.blocks.push(1),
            "elif" => {
                if let Some(branches) = self.blocks.last_mut() {
                    *branches += 1;
                }
            }
            "endif" | "endfor" => {
                self.blocks.pop();
            }
            "else" => {}
            _ => return Err(unknown("block", word, &KEYWORDS)),
        }
        if self.blocks.iter().sum::<usize>() > BLOCKS_MAX {
            return Err(format!(
                "a text has at most {BLOCKS_MAX} blocks inside each other, `elif` included"
            ));
        }
        Ok(())
    }

    fn top(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    fn open(&mut self) -> Result<(), String> {
        self.top().operand += 1;
        self.levels.push(Level::default());
        if self.levels.len() > BRACKETS_MAX + 1 {
            return Err(format!("a text has at most {BRACKETS_MAX} brackets inside each other"));
        }
        Ok(())
    }

    fn close(&mut self) {
        if self.levels.len() > 1 {
            let depth = self.levels.pop().map_or(0, |level| level.depth());
            self.top().operand += depth;
        }
    }

    fn separate(&mut self) {
        let level = self.top();
        *level = Level { before: level.depth(), ..Level::default() };
    }

    /// The end of a tag, or of the text.
    fn end(&mut self) -> Result<(), String> {
        while self.levels.len() > 1 {
            self.close();
        }
        if self.top().depth() > DEPTH_MAX {
            return Err(format!(
                "an expression in `{{{{ }}}}` is at most {DEPTH_MAX} levels deep, counting its \
                 operators, filters, fields and brackets"
            ));
        }
        Ok(())
    }
}
