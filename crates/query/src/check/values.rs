//! What a written value means for a field of its kind, and what a variable stands for.

use super::fields::Spot;
use super::{Checker, FaultKind, Operand, QueryFault, Value};
use crate::checked::{Wanted, WantedText, folded};
use crate::dates::{read_date, read_moment};
use crate::fault::Place;
use crate::numbers::Number;
use crate::tree::{Case, Literal, Piece};
use crate::types::Kind;
use kernel::definition::plan::mistake::meant;

impl<'s> Checker<'s> {
    pub(super) fn wanted(
        &self,
        operand: &Operand,
        case: Case,
        spot: &Spot<'_>,
    ) -> Result<Wanted, QueryFault> {
        Ok(match &operand.literal {
            Literal::Bare(text) => unquoted(text, case, spot),
            Literal::Quoted(text) => Wanted::Text(text_wanted(text, case)),
            Literal::Whole(number) => Wanted::Number(Number::Whole(i128::from(*number))),
            Literal::Decimal(number) => Wanted::Number(Number::Decimal(*number)),
            Literal::Date(date) => Wanted::Day(*date),
            Literal::Moment(moment) => Wanted::Moment(*moment),
            Literal::Null => Wanted::Null,
            Literal::Bool(value) => Wanted::Bool(*value),
            Literal::Pattern(pieces) => Wanted::Pattern(folded_pieces(pieces, case), case),
            Literal::Reference(id) => {
                if !matches!(
                    spot.kind.map(Kind::element),
                    None | Some(Kind::Json | Kind::Reference(_))
                ) {
                    let message = "the field is not a reference";
                    return Err(QueryFault::at(operand.place, message)
                        .hint("compare it with an id without `@@`"));
                }
                Wanted::Reference(id.clone())
            }
            Literal::Variable(name) => {
                let value = self.variable(name, operand.place)?;
                scalar(value, case, spot).ok_or_else(|| {
                    QueryFault::at(operand.place, format!("`${{{name}}}` is not a single value"))
                        .hint("a list is compared by `:^`")
                })?
            }
        })
    }

    /// The values of a list. One variable alone may be a text with commas.
    pub(super) fn wanted_list(
        &self,
        operands: &[Operand],
        spot: &Spot<'_>,
    ) -> Result<Vec<Wanted>, QueryFault> {
        let mut wanted = Vec::new();
        for operand in operands {
            let variable = match &operand.literal {
                Literal::Variable(name) => Some(self.variable(name, operand.place)?),
                _ => None,
            };
            match variable {
                Some(Value::Array(elements)) => {
                    for element in elements {
                        let element = scalar(element, Case::Folded, spot).ok_or_else(|| {
                            let message = "the variable's list holds more than single values";
                            QueryFault::at(operand.place, message)
                        })?;
                        wanted.push(element);
                    }
                }
                Some(Value::String(text)) if operands.len() == 1 => {
                    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                    wanted.extend(items.map(|item| unquoted(item, Case::Folded, spot)));
                }
                _ => wanted.push(self.wanted(operand, Case::Folded, spot)?),
            }
        }
        Ok(wanted)
    }

    /// The text that is written, or that a variable has.
    pub(super) fn text_of(&self, operand: &Operand) -> Result<String, QueryFault> {
        match &operand.literal {
            Literal::Bare(text) | Literal::Quoted(text) | Literal::Reference(text) => {
                Ok(text.clone())
            }
            Literal::Variable(name) => match self.variable(name, operand.place)? {
                Value::String(text) => Ok(text.clone()),
                _ => {
                    let message = format!("`${{{name}}}` is not a text");
                    Err(QueryFault::at(operand.place, message))
                }
            },
            _ => Err(QueryFault::at(operand.place, "this is not a text")),
        }
    }

    fn variable(&self, name: &str, place: Place) -> Result<&'s Value, QueryFault> {
        let variables = self.scope.variables;
        variables.get(name).ok_or_else(|| {
            let message = format!("there is no variable `{name}`");
            let fault = QueryFault::at(place, message).kind(FaultKind::UnresolvedVariable);
            match meant(name, variables.keys().map(String::as_str)) {
                Some(hint) => fault.hint(hint),
                None => fault,
            }
        })
    }
}

/// The value of a variable as a value; none if it is a list or an object.
fn scalar(value: &Value, case: Case, spot: &Spot<'_>) -> Option<Wanted> {
    Some(match value {
        Value::Null => Wanted::Null,
        Value::Bool(value) => Wanted::Bool(*value),
        Value::Number(number) => Wanted::Number(Number::of(number)),
        Value::String(text) => unquoted(text, case, spot),
        Value::Array(_) | Value::Object(_) => return None,
    })
}

/// A text without quotes: for a date it is one or nothing.
fn unquoted(text: &str, case: Case, spot: &Spot<'_>) -> Wanted {
    if matches!(spot.kind.map(Kind::element), Some(Kind::Date | Kind::DateTime)) {
        let day = || read_date(text).map(Wanted::Day);
        return read_moment(text).map(Wanted::Moment).or_else(day).unwrap_or(Wanted::Nothing);
    }
    let boolean = match folded(text).as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    let number = Number::read(text);
    Wanted::Text(WantedText { number, boolean, ..text_wanted(text, case) })
}

fn text_wanted(text: &str, case: Case) -> WantedText {
    WantedText { text: in_case(text, case), case, number: None, boolean: None }
}

fn in_case(text: &str, case: Case) -> String {
    match case {
        Case::Folded => folded(text),
        Case::Exact => text.to_owned(),
    }
}

fn folded_pieces(pieces: &[Piece], case: Case) -> Vec<Piece> {
    let folded_piece = |piece: &Piece| match piece {
        Piece::Text(text) => Piece::Text(in_case(text, case)),
        Piece::Any => Piece::Any,
        Piece::One => Piece::One,
    };
    pieces.iter().map(folded_piece).collect()
}
