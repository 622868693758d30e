//! The filters and tests that a text may use, what they and operators cost, and the environment in
//! which they pay. A filter or test without a price does constant work.

use super::meter::{Meter, NODE};
use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{
    Environment, Error, Output, State, UndefinedBehavior, Value, escape_formatter, filters, tests,
};
use std::sync::OnceLock;

/// The filters of a text. Each makes a text or takes a part, and none can be told how much to make.
pub(super) const FILTERS: [&str; 8] =
    ["default", "first", "join", "last", "length", "lower", "trim", "upper"];
/// Its tests. Values are compared by operators.
pub(super) const TESTS: [&str; 5] = ["defined", "none", "number", "string", "undefined"];

/// How many instructions a text may run. An operator is up to four of them.
const FUEL: u64 = 200_000;
/// How many loops and blocks are open while a text is filled; each name is looked up in all.
const FRAMES_MAX: usize = 128;
/// How often a key is compared with those of a map.
const LOOKUP: u64 = 24;

// Payments of operators. No text can write these names.
pub(super) const COMPARE: &str = "%compare";
pub(super) const ITEM: &str = "%item";
pub(super) const FLAT: &str = "%flat";

const OPERATORS: [(&str, Price); 3] = [(COMPARE, compare), (ITEM, item), (FLAT, flat)];

/// Pays for these arguments.
type Price = fn(&mut Meter, &[Value]) -> Result<(), Error>;

/// The environment of all templates.
pub(super) fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::empty();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(FRAMES_MAX);
        environment.set_formatter(emit);
        add_operators(&mut environment);
        add_filters(&mut environment);
        environment.add_test("defined", tests::is_defined);
        environment.add_test("none", tests::is_none);
        environment.add_test("number", tests::is_number);
        environment.add_test("string", tests::is_string);
        environment.add_test("undefined", tests::is_undefined);
        environment
    })
}

fn emit(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    Meter::of(state).emitted(value)?;
    escape_formatter(out, state, value)
}

fn add_operators(environment: &mut Environment<'static>) {
    for (name, price) in OPERATORS {
        let pay = move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let mut args = args.into_values();
            price(Meter::of(state), &args)?;
            args.reverse();
            match args.len() {
                1 => Ok::<Value, Error>(args.swap_remove(0)),
                _ => Ok(Value::from(args)),
            }
        };
        environment.add_filter(name, pay);
    }
}

fn add_filters(environment: &mut Environment<'static>) {
    environment.add_filter("default", filters::default);
    environment.add_filter("first", filters::first);
    let priced: [(&str, Value, Price); 6] = [
        ("join", Value::from_function(filters::join), join),
        ("last", Value::from_function(filters::last), flat),
        ("length", Value::from_function(filters::length), flat),
        ("lower", Value::from_function(filters::lower), whole),
        ("trim", Value::from_function(filters::trim), trim),
        ("upper", Value::from_function(filters::upper), whole),
    ];
    for (name, filter, price) in priced {
        let priced = move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            price(Meter::of(state), &args)?;
            let value = filter.call(state, &args)?;
            // A filter may make a text longer than it was: upper case letters can be several.
            Meter::of(state).flat(&value)?;
            Ok::<Value, Error>(value)
        };
        environment.add_filter(name, priced);
    }
}

fn flat(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    args.iter().try_for_each(|arg| meter.flat(arg).map(drop))
}

fn whole(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    args.iter().try_for_each(|arg| meter.whole(arg).map(drop))
}

/// A value is looked up by a key.
fn item(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let (Some(value), Some(by)) = (args.first(), args.get(1)) else { return Ok(()) };
    if value.as_str().is_some() || value.kind() == ValueKind::Iterable {
        meter.flat(value)?;
    }
    key(meter, by)
}

/// A key is compared with some of a map's keys.
fn key(meter: &mut Meter, by: &Value) -> Result<(), Error> {
    let bytes = meter.whole(by)?;
    meter.pay(bytes.saturating_mul(LOOKUP))
}

/// `left == right`, `left < right` or `left in right`.
fn compare(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let (Some(left), Some(right)) = (args.first(), args.get(1)) else { return Ok(()) };
    if left.as_object().is_some() {
        meter.whole(left)?;
    }
    match (right.as_str(), right.as_object()) {
        (Some(text), _) => meter.pay(NODE + text.len() as u64),
        (None, None) => meter.pay(NODE),
        (None, Some(_)) if left.as_object().is_some() => meter.whole(right).map(drop),
        (None, Some(_)) if right.kind() == ValueKind::Map => key(meter, left),
        (None, Some(_)) => {
            let parts = meter.each(right)?;
            let bytes = left.as_str().map_or(0, str::len) as u64;
            meter.pay(parts.saturating_mul(bytes / 8))
        }
    }
}

fn trim(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let bytes = args.first().map_or(Ok(0), |value| meter.whole(value))?;
    let ends = args.get(1).map_or(Ok(0), |ends| meter.whole(ends))?;
    meter.pay(bytes.saturating_mul(ends.saturating_add(1)))
}

fn join(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let Some(value) = args.first() else { return Ok(()) };
    let bytes = meter.whole(value)?;
    let parts = meter.each(value)?;
    let between = option(args, 1, "d").map_or(Ok(0), |between| meter.whole(&between))?;
    meter.pay(bytes.saturating_add(parts.saturating_mul(between)))
}

/// An argument by its place or its name.
fn option(args: &[Value], place: usize, name: &str) -> Option<Value> {
    let placed = args.get(place).filter(|arg| !arg.is_kwargs()).cloned();
    placed.or_else(|| named(args, name))
}

fn named(args: &[Value], name: &str) -> Option<Value> {
    let value = args.last().filter(|arg| arg.is_kwargs())?.get_attr(name).ok()?;
    (!value.is_undefined()).then_some(value)
}
