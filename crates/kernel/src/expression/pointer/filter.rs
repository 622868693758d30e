//! Evaluates filter expressions: comparisons and functions of RFC 9535.

use super::query::Evaluation;
use super::syntax::{Comparison, Matching, Operand, Sign, Test};
use crate::expression::condition;
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;

impl Evaluation<'_> {
    pub(super) fn holds(&mut self, test: &Test, node: &Value) -> Result<bool, String> {
        self.budget.charge(1)?;
        match test {
            Test::Any(tests) => self.one_is(true, tests, node),
            Test::Every(tests) => self.one_is(false, tests, node).map(|found| !found),
            Test::Not(test) => self.holds(test, node).map(|holds| !holds),
            Test::Exists(query) => self.nodes(query, node).map(|nodes| !nodes.is_empty()),
            Test::Compare(comparison) => self.compare(comparison, node),
            Test::Matches(matching) => self.matches(matching, node),
        }
    }

    /// Whether one of the tests comes out as wanted.
    fn one_is(&mut self, wanted: bool, tests: &[Test], node: &Value) -> Result<bool, String> {
        for test in tests {
            if self.holds(test, node)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn compare(&mut self, comparison: &Comparison, node: &Value) -> Result<bool, String> {
        let left = self.operand(&comparison.left, node)?;
        let right = self.operand(&comparison.right, node)?;
        let left = left.as_deref();
        let right = right.as_deref();
        Ok(match comparison.sign {
            Sign::Equal => self.same(left, right)?,
            Sign::Unequal => !self.same(left, right)?,
            Sign::Less => self.order(left, right)? == Some(Ordering::Less),
            Sign::Greater => self.order(left, right)? == Some(Ordering::Greater),
            Sign::LessOrEqual => {
                self.order(left, right)? == Some(Ordering::Less) || self.same(left, right)?
            }
            Sign::GreaterOrEqual => {
                self.order(left, right)? == Some(Ordering::Greater) || self.same(left, right)?
            }
        })
    }

    /// The value of an operand, or nothing.
    fn operand<'v>(
        &mut self,
        operand: &'v Operand,
        node: &'v Value,
    ) -> Result<Option<Cow<'v, Value>>, String> {
        Ok(match operand {
            Operand::Literal(value) => Some(Cow::Borrowed(value)),
            Operand::At(path) => self.at(path, node)?.map(Cow::Borrowed),
            Operand::Length(of) => {
                let length = match self.operand(of, node)?.as_deref() {
                    Some(Value::String(text)) => {
                        self.budget.charge_text(text.len())?;
                        Some(text.chars().count())
                    }
                    Some(Value::Array(items)) => Some(items.len()),
                    Some(Value::Object(fields)) => Some(fields.len()),
                    Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => None,
                };
                length.map(|length| Cow::Owned(Value::from(length)))
            }
            Operand::Count(query) => Some(Cow::Owned(Value::from(self.nodes(query, node)?.len()))),
            Operand::ValueOf(query) => match self.nodes(query, node)?.as_slice() {
                [only] => Some(Cow::Borrowed(*only)),
                _ => None,
            },
        })
    }

    fn order(
        &self,
        left: Option<&Value>,
        right: Option<&Value>,
    ) -> Result<Option<Ordering>, String> {
        let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
        self.charge_pair(left, right)?;
        Ok(condition::order(left, right))
    }

    /// Equal as JSON; nothing equals nothing.
    fn same(&self, left: Option<&Value>, right: Option<&Value>) -> Result<bool, String> {
        let (Some(left), Some(right)) = (left, right) else {
            return Ok(left.is_none() && right.is_none());
        };
        let mut open = vec![(left, right)];
        while let Some((left, right)) = open.pop() {
            self.charge_pair(left, right)?;
            match (left, right) {
                (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
                    self.budget.charge(left.len())?;
                    open.extend(left.iter().zip(right));
                }
                (Value::Object(left), Value::Object(right)) if left.len() == right.len() => {
                    for (key, field) in left {
                        self.budget.charge_text(key.len())?;
                        let Some(other) = right.get(key) else { return Ok(false) };
                        open.push((field, other));
                    }
                }
                // Two containers that come here differ in kind or length: nothing is walked.
                _ if !condition::same(left, right) => return Ok(false),
                _ => {}
            }
        }
        Ok(true)
    }

    /// One step of a comparison: as long as the shorter of two texts.
    fn charge_pair(&self, left: &Value, right: &Value) -> Result<(), String> {
        match (left, right) {
            (Value::String(left), Value::String(right)) => {
                self.budget.charge_text(left.len().min(right.len()))
            }
            _ => self.budget.charge(1),
        }
    }

    fn matches(&mut self, matching: &Matching, node: &Value) -> Result<bool, String> {
        let text = self.operand(&matching.text, node)?;
        let pattern = self.operand(&matching.pattern, node)?;
        let (Some(Value::String(text)), Some(Value::String(pattern))) =
            (text.as_deref(), pattern.as_deref())
        else {
            return Ok(false);
        };
        self.budget.charge_text(pattern.len())?;
        // In this mode a dot matches neither CR nor LF, as RFC 9485 defines it.
        let expression =
            if matching.whole { format!("(?R)^({pattern})$") } else { format!("(?R)({pattern})") };
        self.patterns.matches(&expression, text, self.budget)
    }
}
