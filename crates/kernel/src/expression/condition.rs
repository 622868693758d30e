//! The operators of `conditional_branch`: strict, no coercion between types.

use crate::expression::budget::Budget;
use crate::expression::patterns::{Pattern, Unusable};
use crate::values::fault::Fault;
use crate::values::named_enum::named;
use serde_json::Value;
use std::cmp::Ordering;

/// Fault of a `matches` pattern that is too large.
pub(crate) const TOO_LARGE: &str = "the regular expression of `matches` is too large";
pub(crate) const TOO_LARGE_HINT: &str =
    "it may have 1 KiB and compile to 8 MiB; `(?-u:\\w)` compiles to much less than `\\w`";

/// A condition over two operands of some kind.
#[derive(Debug)]
pub struct Condition<E> {
    /// The left operand.
    pub left: E,
    /// How they are compared.
    pub operator: Operator,
    /// The right operand; `exists` and `not_exists` have none.
    pub right: Option<E>,
}

named! {
    /// How two operands are compared, by its name in a plan.
    Operator {
        /// Equal as JSON; `1` equals `1.0`.
        Equals = "equals",
        /// Not equal, or absent.
        NotEquals = "not_equals",
        /// Numbers or strings.
        GreaterThan = "greater_than",
        /// Numbers or strings.
        LessThan = "less_than",
        /// Numbers or strings.
        GreaterOrEqual = "greater_or_equal",
        /// Numbers or strings.
        LessOrEqual = "less_or_equal",
        /// Present and not null.
        Exists = "exists",
        /// Absent or null.
        NotExists = "not_exists",
        /// A string holds a string, an array holds a value.
        Contains = "contains",
        /// The left is an element of the right array.
        In = "in",
        /// The left string matches the right regular expression, unanchored.
        Matches = "matches",
    }
}

impl Operator {
    /// Whether it takes a right operand.
    pub fn has_right(self) -> bool {
        !matches!(self, Operator::Exists | Operator::NotExists)
    }

    /// Whether the condition holds. An absent operand makes only `not_exists` and `not_equals`
    /// true. The fault says what is wrong with the right operand, or that the budget does not
    /// suffice to match with it.
    pub fn holds(
        self,
        left: Option<&Value>,
        right: Option<&Value>,
        budget: &Budget,
    ) -> Result<bool, Fault> {
        let present = left.is_some_and(|value| !value.is_null());
        match self {
            Operator::Exists => return Ok(present),
            Operator::NotExists => return Ok(!present),
            _ => {}
        }
        let (Some(left), Some(right)) = (left, right) else {
            return Ok(self == Operator::NotEquals);
        };
        Ok(match self {
            Operator::Equals => same(left, right),
            Operator::NotEquals => !same(left, right),
            Operator::GreaterThan => order(left, right) == Some(Ordering::Greater),
            Operator::LessThan => order(left, right) == Some(Ordering::Less),
            Operator::GreaterOrEqual => order(left, right).is_some_and(Ordering::is_ge),
            Operator::LessOrEqual => order(left, right).is_some_and(Ordering::is_le),
            Operator::Contains => contains(left, right),
            Operator::In => contains(right, left) && right.is_array(),
            Operator::Matches => return matches(left, right, budget),
            Operator::Exists | Operator::NotExists => present,
        })
    }
}

/// Equal as JSON: numbers by value, all else by structure.
pub fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64() == right.as_f64() && !both_whole(left, right)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, l)| right.get(key).is_some_and(|r| same(l, r)))
        }
        _ => left == right,
    }
}

/// Whole numbers are compared exactly: beyond 2^53 two of them may share one float.
fn both_whole(left: &serde_json::Number, right: &serde_json::Number) -> bool {
    !left.is_f64() && !right.is_f64()
}

/// Which of two numbers or texts is greater; all else has no order.
pub(crate) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(l), Value::Number(r)) => match (l.as_i64(), r.as_i64()) {
            (Some(l), Some(r)) => Some(l.cmp(&r)),
            _ => l.as_f64()?.partial_cmp(&r.as_f64()?),
        },
        (Value::String(l), Value::String(r)) => Some(l.cmp(r)),
        _ => None,
    }
}

fn contains(holder: &Value, held: &Value) -> bool {
    match (holder, held) {
        (Value::String(holder), Value::String(held)) => holder.contains(held.as_str()),
        (Value::Array(items), held) => items.iter().any(|item| same(item, held)),
        _ => false,
    }
}

fn matches(left: &Value, right: &Value, budget: &Budget) -> Result<bool, Fault> {
    let Value::String(expression) = right else {
        return Err(fault("the right side of `matches` is not a string"));
    };
    let pattern = Pattern::new(expression, budget).map_err(|unusable| match unusable {
        Unusable::Wrong(why) => fault(format!("`{expression}` is not a regular expression: {why}")),
        Unusable::TooLarge => fault(TOO_LARGE).hint(TOO_LARGE_HINT),
        Unusable::TooCostly(why) => undecided(&why),
    })?;
    let Value::String(text) = left else { return Ok(false) };
    pattern.is_match(text, budget).map_err(|why| undecided(&why))
}

fn undecided(why: &str) -> Fault {
    fault(format!("`matches` cannot be decided: {why}"))
        .hint("shorten the text or the pattern, or raise `pointer_nodes_max` in [limits]")
}

fn fault(message: impl Into<String>) -> Fault {
    Fault::new("ConditionError", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use serde_json::json;

    fn budget() -> Budget {
        Budget::new(Limits::default().pointer_nodes_max)
    }

    fn holds(operator: &str, left: Value, right: Value) -> bool {
        let operator = Operator::from_name(operator).unwrap();
        operator.holds(Some(&left), Some(&right), &budget()).unwrap()
    }

    #[test]
    fn operators_are_strict() {
        assert!(holds("equals", json!(1), json!(1.0)));
        assert!(!holds("equals", json!("1"), json!(1)));
        assert!(!holds("greater_than", json!("2"), json!(1)));
        assert!(holds("greater_than", json!(2), json!(1)));
        assert!(holds("less_or_equal", json!("a"), json!("a")));
        assert!(holds("contains", json!("abc"), json!("b")));
        assert!(holds("contains", json!([1, 2]), json!(2.0)));
        assert!(!holds("contains", json!(12), json!(1)));
        assert!(holds("in", json!("x"), json!(["x"])));
        assert!(!holds("in", json!("x"), json!("xyz")));
        assert!(holds("matches", json!("Missing ISIN"), json!("ISIN$")));
        assert!(!holds("equals", json!(9007199254740993i64), json!(9007199254740992i64)));
    }

    #[test]
    fn an_absent_operand_is_true_only_for_not_exists_and_not_equals() {
        for operator in Operator::ALL {
            let expected = matches!(operator, Operator::NotExists | Operator::NotEquals);
            let holds = operator.holds(None, Some(&json!(1)), &budget());
            assert_eq!(holds, Ok(expected), "{}", operator.name());
        }
        assert_eq!(Operator::Exists.holds(Some(&Value::Null), None, &budget()), Ok(false));
    }

    #[test]
    fn a_pattern_is_matched_within_its_limits_and_the_budget() {
        let matches = |text: &str, pattern: &str| {
            Operator::Matches.holds(Some(&json!(text)), Some(&json!(pattern)), &budget())
        };
        let costly = "[ab]*a[ab]{5000}";
        assert_eq!(matches(&"ab".repeat(10), costly), Ok(false));
        let undecided = fault("`matches` cannot be decided: it looks at more than 2000000 nodes")
            .hint("shorten the text or the pattern, or raise `pointer_nodes_max` in [limits]");
        assert_eq!(matches(&"ab".repeat(50_000), costly), Err(undecided));
        let too_large = || Err(fault(TOO_LARGE).hint(TOO_LARGE_HINT));
        assert_eq!(matches("a", &"a".repeat(1_025)), too_large());
        assert_eq!(matches("a", r"\w{500}"), too_large());
        assert_eq!(matches(&"a".repeat(1_024), &"a".repeat(1_024)), Ok(true));
        let wrong = matches("a", "(").unwrap_err();
        assert!(wrong.message.starts_with("`(` is not a regular expression: "), "{wrong}");
    }
}
