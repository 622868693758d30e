//! Numbers that are compared: whole ones exactly, all others as doubles.

use serde_json::Value;
use std::cmp::Ordering;

/// A number of a query or a record. It is finite.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    Whole(i128),
    Decimal(f64),
}

impl Number {
    /// The number in a record.
    pub fn of(number: &serde_json::Number) -> Self {
        let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        match whole {
            Some(whole) => Number::Whole(whole),
            None => Number::Decimal(number.as_f64().unwrap_or_default()),
        }
    }

    /// The number that a text is, such as `-19.90`.
    pub fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match digits.split_once('.') {
            Some((left, right)) if is_digits(left) && is_digits(right) => {
                text.parse().ok().filter(|number: &f64| number.is_finite()).map(Number::Decimal)
            }
            None if is_digits(digits) => text.parse().ok().map(Number::Whole),
            _ => None,
        }
    }

    /// As JSON; whole where it fits.
    pub fn to_json(self) -> Value {
        let number = match self {
            Number::Whole(whole) => serde_json::Number::from_i128(whole)
                .or_else(|| serde_json::Number::from_f64(self.to_f64())),
            Number::Decimal(decimal) => serde_json::Number::from_f64(decimal),
        };
        number.map_or(Value::Null, Value::Number)
    }

    pub fn to_f64(self) -> f64 {
        match self {
            Number::Whole(whole) => whole as f64,
            Number::Decimal(decimal) => decimal,
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (*self, *other) {
            (Number::Whole(left), Number::Whole(right)) => left.cmp(&right),
            (Number::Decimal(left), Number::Decimal(right)) => {
                left.partial_cmp(&right).unwrap_or(Ordering::Equal)
            }
            (Number::Whole(left), Number::Decimal(right)) => compare(left, right),
            (Number::Decimal(left), Number::Whole(right)) => compare(right, left).reverse(),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

/// Without rounding the whole number. A double beyond 128 bits becomes the first or the last of
/// them, which no record has.
fn compare(whole: i128, decimal: f64) -> Ordering {
    let floor = decimal.floor();
    let fraction = if decimal > floor { Ordering::Less } else { Ordering::Equal };
    whole.cmp(&(floor as i128)).then(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_compared_exactly() {
        let large = Number::Whole(9_007_199_254_740_993);
        assert!(large > Number::Decimal(9_007_199_254_740_992.0));
        assert!(large < Number::Decimal(1e300) && large > Number::Decimal(-1e300));
        assert_eq!(Number::Whole(20), Number::Decimal(20.0));
        assert!(Number::Whole(-2) < Number::Decimal(-1.5));
        assert!(Number::Whole(-1) > Number::Decimal(-1.5));
    }

    #[test]
    fn only_plain_digits_read_as_a_number() {
        assert_eq!(Number::read("19.90"), Some(Number::Decimal(19.9)));
        assert_eq!(Number::read("-7"), Some(Number::Whole(-7)));
        for text in ["", "-", "1e5", "1.", ".5", "0x1", "1.2.3", "٣"] {
            assert_eq!(Number::read(text), None, "{text}");
        }
    }
}
