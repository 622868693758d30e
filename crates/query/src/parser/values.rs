//! What a field is compared with: values, patterns and lists.

use super::{LIST_VALUES_MAX, Mark, Parser, QueryFault, Sign, TokenKind};
use crate::dates::{is_like_date, read_date};
use crate::lexer::Written;
use crate::tree::{Case, Literal, Operand, Piece};

/// How many characters stand between two `*` where one of them is `?`: looking for them costs that
/// many steps at each character of a text.
pub const PATTERN_PART_CHARS_MAX: usize = 64;

impl Parser {
    /// The value behind this operator.
    pub(super) fn operand_of(&mut self, sign: Sign) -> Result<Operand, QueryFault> {
        let operand = self.operand()?;
        let is_for_equality = matches!(
            operand.literal,
            Literal::Null | Literal::Bool(_) | Literal::Reference(_) | Literal::Pattern(_)
        );
        if is_for_equality && !matches!(sign, Sign::Equal | Sign::NotEqual) {
            let message = format!("`{}` does not take such a value", sign.text());
            return Err(QueryFault::at(operand.place, message)
                .hint("null, true, false, references and patterns take `:` and `:!` only"));
        }
        Ok(operand)
    }

    fn operand(&mut self) -> Result<Operand, QueryFault> {
        let place = self.place();
        let literal = match &self.peek().kind {
            TokenKind::Text(written) => literal(written)
                .map_err(|(message, hint)| QueryFault::at(place, message).hint(hint))?,
            TokenKind::Whole(number) => Literal::Whole(*number),
            TokenKind::Decimal(number) => Literal::Decimal(*number),
            TokenKind::Moment(moment) => Literal::Moment(*moment),
            TokenKind::Variable(name) => Literal::Variable(name.clone()),
            TokenKind::Reference(id) => Literal::Reference(id.clone()),
            TokenKind::Mark(_) | TokenKind::Bad(_) | TokenKind::End => {
                let fault = self.unexpected(&["a value"]);
                return Err(if self.is_next(Mark::BraceOpen) {
                    fault.hint("`{..}` stands behind `:` only; `!!` before the field is for not")
                } else if self.is_next(Mark::ListOpen) {
                    fault.hint("a list is written `field:^[a,b]`")
                } else {
                    fault
                });
            }
        };
        self.advance();
        Ok(Operand { literal, place })
    }

    /// `~cs` or `~ci` behind a text.
    pub(super) fn case_of(&mut self, operand: &Operand) -> Result<Case, QueryFault> {
        let place = self.place();
        let case = match self.peek().kind {
            TokenKind::Mark(Mark::CaseExact) => Case::Exact,
            TokenKind::Mark(Mark::CaseFolded) => Case::Folded,
            _ => return Ok(Case::Folded),
        };
        match operand.literal {
            Literal::Bare(_) | Literal::Quoted(_) | Literal::Pattern(_) | Literal::Variable(_) => {
                self.advance();
                Ok(case)
            }
            _ => Err(QueryFault::at(place, "only texts and patterns have upper and lower case")),
        }
    }

    /// `[..]`, or one variable without brackets.
    pub(super) fn list(&mut self) -> Result<Vec<Operand>, QueryFault> {
        if matches!(self.peek().kind, TokenKind::Variable(_)) {
            return Ok(vec![self.operand()?]);
        }
        if !self.eat(Mark::ListOpen) {
            return Err(self.unexpected(&["`[`", "a variable"]));
        }
        let mut operands = Vec::new();
        if self.eat(Mark::ListClose) {
            return Ok(operands);
        }
        loop {
            if operands.len() == LIST_VALUES_MAX {
                let message = format!("the list has more than {LIST_VALUES_MAX} values");
                return Err(QueryFault::at(self.place(), message));
            }
            operands.push(self.operand()?);
            if self.eat(Mark::ListClose) {
                return Ok(operands);
            }
            if !self.eat(Mark::Comma) {
                return Err(self.unexpected(&["`,`", "`]`"]));
            }
        }
    }
}

/// What a text means as a value, or what is wrong with it and what to do.
fn literal(written: &Written) -> Result<Literal, (String, &'static str)> {
    let Some(text) = written.bare() else {
        return match written.pieces.as_slice() {
            [Piece::Text(text)] => Ok(Literal::Quoted(text.clone())),
            pieces => pattern(pieces),
        };
    };
    Ok(match text {
        "null" => Literal::Null,
        "true" | "TRUE" => Literal::Bool(true),
        "false" | "FALSE" => Literal::Bool(false),
        _ if is_like_date(text) => match read_date(text) {
            Some(date) => Literal::Date(date),
            None => {
                let hint = "correct the day, or put the text in quotes";
                return Err((format!("there is no day `{text}`"), hint));
            }
        },
        _ => Literal::Bare(text.to_owned()),
    })
}

fn pattern(pieces: &[Piece]) -> Result<Literal, (String, &'static str)> {
    let width = |piece: &Piece| match piece {
        Piece::Text(text) => text.chars().count(),
        Piece::One => 1,
        Piece::Any => 0,
    };
    for part in pieces.split(|piece| *piece == Piece::Any) {
        let chars: usize = part.iter().map(width).sum();
        if part.contains(&Piece::One) && chars > PATTERN_PART_CHARS_MAX {
            let message =
                format!("a part of the pattern with `?` is longer than {PATTERN_PART_CHARS_MAX}");
            return Err((message, "write `*`, or the text without `?`"));
        }
    }
    Ok(Literal::Pattern(pieces.to_vec()))
}

/// Whether it is a `*` alone.
pub(super) fn is_star(written: &Written) -> bool {
    written.pieces == [Piece::Any]
}
