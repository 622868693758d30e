//! What filters, tests and operators cost, and the environment in which they pay. A filter that is
//! not listed here does constant work. The global functions are left out: no text may name them,
//! and `namespace` would carry values from one iteration of a loop to the next.

use super::meter::{Meter, NODE};
use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{
    AutoEscape, Environment, Error, Output, State, UndefinedBehavior, Value, escape_formatter,
    filters, tests,
};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// How many instructions a text may run. An operator is up to four of them.
const FUEL: u64 = 200_000;
/// How many loops and blocks are open while a text is filled; each name is looked up in all.
const FRAMES_MAX: usize = 128;
/// How much longer escaping makes a byte, at most.
const ESCAPED: u64 = 6;
/// How often a key is compared with those of a map.
const LOOKUP: u64 = 24;

// Payments of operators. No text can write these names.
pub(super) const ADD: &str = "%add";
pub(super) const MULTIPLY: &str = "%multiply";
pub(super) const SLICE: &str = "%slice";
pub(super) const CONCAT: &str = "%concat";
pub(super) const COMPARE: &str = "%compare";
pub(super) const ITEM: &str = "%item";
pub(super) const MAP: &str = "%map";
pub(super) const METHOD: &str = "%method";
pub(super) const FLAT: &str = "%flat";
pub(super) const LIST: &str = "%list";

const OPERATORS: [(&str, Price); 9] = [
    (ADD, add),
    (MULTIPLY, multiply),
    (SLICE, slice),
    (CONCAT, text),
    (COMPARE, compare),
    (ITEM, item),
    (MAP, map),
    (METHOD, whole),
    (FLAT, flat),
];

/// Pays for these arguments.
type Price = fn(&mut Meter, &[Value]) -> Result<(), Error>;

/// A filter or a test of the engine with its price.
struct Priced(&'static str, Value, Price);

/// The environment of all templates.
pub(super) fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::new();
        for function in ["range", "dict", "debug", "namespace"] {
            environment.remove_global(function);
        }
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(FRAMES_MAX);
        environment.set_formatter(emit);
        add_operators(&mut environment);
        add_filters(&mut environment);
        add_tests(&mut environment);
        environment
    })
}

fn emit(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let escapes = *state.auto_escape() != AutoEscape::None && !value.is_safe();
    Meter::of(state).emitted(value, if escapes { ESCAPED } else { 1 })?;
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
    environment.add_filter(LIST, |state: &mut State<'_, '_>, value: Value| {
        Meter::of(state).collected(value)
    });
}

fn add_filters(environment: &mut Environment<'static>) {
    for Priced(name, filter, price) in text_filters().into_iter().chain(list_filters()) {
        let priced = move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            price(Meter::of(state), &args)?;
            let value = filter.call(state, &args)?;
            let value = Meter::of(state).collected(value)?;
            // A filter may make a text longer than it was: upper case letters can be several.
            Meter::of(state).flat(&value)?;
            Ok::<Value, Error>(value)
        };
        environment.add_filter(name, priced);
    }
    environment.add_filter("chain", |state: &mut State<'_, '_>, args: Rest<Value>| {
        chained(Meter::of(state), &args)
    });
}

fn text_filters() -> Vec<Priced> {
    vec![
        Priced("safe", Value::from_function(filters::safe), whole),
        Priced("escape", Value::from_function(filters::escape), escaped),
        Priced("e", Value::from_function(filters::escape), escaped),
        Priced("lower", Value::from_function(filters::lower), whole),
        Priced("upper", Value::from_function(filters::upper), whole),
        Priced("title", Value::from_function(filters::title), escaped),
        Priced("capitalize", Value::from_function(filters::capitalize), whole),
        Priced("replace", Value::from_function(filters::replace), replace),
        Priced("trim", Value::from_function(filters::trim), trim),
        Priced("indent", Value::from_function(filters::indent), indent),
        Priced("join", Value::from_function(filters::join), join),
        Priced("split", Value::from_function(filters::split), split),
        Priced("lines", Value::from_function(filters::lines), lines),
        Priced("string", Value::from_function(filters::string), whole),
        Priced("pprint", Value::from_function(filters::pprint), pprint),
        Priced("format", Value::from_function(filters::format), format),
    ]
}

fn list_filters() -> Vec<Priced> {
    vec![
        Priced("length", Value::from_function(filters::length), flat),
        Priced("count", Value::from_function(filters::length), flat),
        Priced("int", Value::from_function(filters::int), flat),
        Priced("float", Value::from_function(filters::float), flat),
        Priced("attr", Value::from_function(filters::attr), item),
        Priced("last", Value::from_function(filters::last), flat),
        Priced("reverse", Value::from_function(filters::reverse), reverse),
        Priced("items", Value::from_function(filters::items), parts),
        Priced("list", Value::from_function(filters::list), parts),
        Priced("select", Value::from_function(filters::select), parts),
        Priced("reject", Value::from_function(filters::reject), parts),
        Priced("selectattr", Value::from_function(filters::selectattr), parts),
        Priced("rejectattr", Value::from_function(filters::rejectattr), parts),
        Priced("map", Value::from_function(filters::map), parts),
        Priced("zip", Value::from_function(filters::zip), parts),
        Priced("batch", Value::from_function(filters::batch), batch),
        Priced("slice", Value::from_function(filters::slice), batch),
        Priced("sum", Value::from_function(filters::sum), sum),
        Priced("sort", Value::from_function(filters::sort), order),
        Priced("dictsort", Value::from_function(filters::dictsort), order),
        Priced("groupby", Value::from_function(filters::groupby), order),
        Priced("unique", Value::from_function(filters::unique), order),
        Priced("min", Value::from_function(filters::min), order),
        Priced("max", Value::from_function(filters::max), order),
    ]
}

fn add_tests(environment: &mut Environment<'static>) {
    for Priced(name, test, price) in priced_tests() {
        let priced = move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            price(Meter::of(state), &args)?;
            test.call(state, &args)
        };
        environment.add_test(name, priced);
    }
}

fn priced_tests() -> Vec<Priced> {
    vec![
        Priced("eq", Value::from_function(tests::is_eq), compare),
        Priced("equalto", Value::from_function(tests::is_eq), compare),
        Priced("==", Value::from_function(tests::is_eq), compare),
        Priced("ne", Value::from_function(tests::is_ne), compare),
        Priced("!=", Value::from_function(tests::is_ne), compare),
        Priced("lt", Value::from_function(tests::is_lt), compare),
        Priced("lessthan", Value::from_function(tests::is_lt), compare),
        Priced("<", Value::from_function(tests::is_lt), compare),
        Priced("le", Value::from_function(tests::is_le), compare),
        Priced("<=", Value::from_function(tests::is_le), compare),
        Priced("gt", Value::from_function(tests::is_gt), compare),
        Priced("greaterthan", Value::from_function(tests::is_gt), compare),
        Priced(">", Value::from_function(tests::is_gt), compare),
        Priced("ge", Value::from_function(tests::is_ge), compare),
        Priced(">=", Value::from_function(tests::is_ge), compare),
        Priced("in", Value::from_function(tests::is_in), compare),
        Priced("sameas", Value::from_function(tests::is_sameas), compare),
        Priced("startingwith", Value::from_function(tests::is_startingwith), whole),
        Priced("endingwith", Value::from_function(tests::is_endingwith), whole),
        Priced("lower", Value::from_function(tests::is_lower), escaped),
        Priced("upper", Value::from_function(tests::is_upper), escaped),
    ]
}

fn flat(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    args.iter().try_for_each(|arg| meter.flat(arg).map(drop))
}

fn whole(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    args.iter().try_for_each(|arg| meter.whole(arg).map(drop))
}

/// Read, and written once more.
fn text(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    for arg in args {
        let bytes = meter.whole(arg)?;
        meter.pay(bytes)?;
    }
    Ok(())
}

/// The same for filters that make it longer, or go character by character.
fn escaped(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    for arg in args {
        let bytes = meter.whole(arg)?;
        meter.pay(bytes.saturating_mul(ESCAPED))?;
    }
    Ok(())
}

fn add(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    for arg in args {
        let size = meter.flat(arg)?;
        meter.pay(size)?;
    }
    Ok(())
}

/// Dear, because a few letters make much.
fn multiply(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    for (value, times) in args.iter().zip(args.iter().rev()) {
        if value.as_str().is_some() || value.as_object().is_some() {
            let size = meter.flat(value)?;
            meter.pay(size.saturating_mul(8).saturating_mul(count(Some(times))))?;
        }
    }
    meter.pay(NODE)
}

fn slice(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let size = args.first().map_or(Ok(0), |value| meter.flat(value))?;
    // Backwards, a text is taken apart first.
    let backwards = args.get(3).and_then(Value::as_i64).is_some_and(|step| step < 0);
    meter.pay(if backwards { size.saturating_mul(5) } else { size })
}

/// A value is looked up by a key.
fn item(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let (Some(value), Some(by)) = (args.first(), args.get(1)) else { return Ok(()) };
    if value.as_str().is_some() || value.kind() == ValueKind::Iterable {
        meter.flat(value)?;
    }
    key(meter, by)
}

fn map(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    args.iter().step_by(2).try_for_each(|by| key(meter, by))
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

/// A list is walked, with the other arguments for each of its items.
fn parts(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let count = args.first().map_or(Ok(0), |value| meter.each(value))?;
    for arg in args.iter().skip(1).filter(|arg| arg.as_object().is_some()) {
        meter.each(arg)?;
    }
    meter.pay(count.saturating_mul(NODE).saturating_mul(args.len() as u64))
}

fn reverse(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    match args.first().and_then(Value::as_str) {
        Some(_) => text(meter, args),
        None => parts(meter, args),
    }
}

/// `batch` fills its last list up to a count, `slice` makes so many lists.
fn batch(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    parts(meter, args)?;
    meter.pay(count(args.get(1)).saturating_mul(2 * NODE))
}

fn sum(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    parts(meter, args)?;
    let begins = option(args, 2, "start").filter(|start| !start.is_number());
    if let (Some(start), Some(values)) = (begins, args.first()) {
        // Texts and lists are copied with each that is added.
        let bytes = meter.whole(values)?.saturating_add(meter.whole(&start)?);
        let times = meter.each(values)?;
        meter.pay(bytes.saturating_mul(times))?;
    }
    Ok(())
}

/// A list is sorted, or its items are compared with each other.
fn order(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let Some(values) = args.first() else { return Ok(()) };
    let count = meter.each(values)?.max(1);
    let attribute = option(args, 1, "attribute");
    let by_value = named(args, "by").is_some();
    let mut longest = 0;
    for item in values.try_iter()? {
        let mut bytes = NODE;
        match attribute.as_ref().and_then(Value::as_str) {
            Some(paths) => {
                for path in paths.split(',') {
                    bytes += meter.whole(&found(&item, path.trim()))?;
                }
            }
            None => bytes += meter.whole(&item)?,
        }
        if by_value {
            bytes += meter.whole(&values.get_item(&item)?)?;
        }
        longest = longest.max(bytes);
    }
    let comparisons = count.saturating_mul(1 + u64::from(count.ilog2()));
    meter.pay(comparisons.saturating_mul(longest))
}

/// What a path with dots leads to, as filters follow it.
fn found(item: &Value, path: &str) -> Value {
    let mut value = item.clone();
    for part in path.split('.') {
        let next = match part.parse::<usize>() {
            Ok(index) => value.get_item_by_index(index),
            Err(_) => value.get_attr(part),
        };
        match next {
            Ok(next) if !next.is_undefined() => value = next,
            _ => return Value::UNDEFINED,
        }
    }
    value
}

fn replace(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let sizes: Vec<u64> = args.iter().map(|arg| meter.whole(arg)).collect::<Result<_, _>>()?;
    let [value, from, _] = args else { return Ok(()) };
    let times = match (value.as_str(), from.as_str()) {
        (Some(value), Some(from)) if !from.is_empty() => value.matches(from).count() as u64,
        _ => sizes[0] + 1,
    };
    meter.pay(sizes[0].saturating_add(times.saturating_mul(sizes[2])))
}

fn trim(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let bytes = args.first().map_or(Ok(0), |value| meter.whole(value))?;
    let ends = args.get(1).map_or(Ok(0), |ends| meter.whole(ends))?;
    meter.pay(bytes.saturating_mul(ends.saturating_add(1)))
}

fn indent(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let Some(value) = args.first() else { return Ok(()) };
    let bytes = meter.whole(value)?;
    let lines = value.as_str().map_or(bytes, |text| text.matches('\n').count() as u64) + 2;
    let width = option(args, 1, "width").map_or(4, |width| count(Some(&width)));
    meter.pay(bytes.saturating_add(lines.saturating_mul(width)))
}

fn join(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let Some(value) = args.first() else { return Ok(()) };
    let bytes = meter.whole(value)?;
    let parts = meter.each(value)?;
    let between = option(args, 1, "d").map_or(Ok(0), |between| meter.whole(&between))?;
    meter.pay(bytes.saturating_add(parts.saturating_mul(between)))
}

fn split(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let Some(value) = args.first().and_then(Value::as_str) else { return Ok(()) };
    let parts = match args.get(1).and_then(Value::as_str) {
        Some("") => value.len() + 2,
        Some(by) => value.matches(by).count() + 1,
        None => value.split_whitespace().count(),
    };
    meter.pay(value.len() as u64 + 2 * NODE * parts as u64)
}

fn lines(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let Some(value) = args.first().and_then(Value::as_str) else { return Ok(()) };
    let parts = value.matches('\n').count() as u64 + 1;
    meter.pay(value.len() as u64 + 2 * NODE * parts)
}

fn pprint(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let bytes = args.first().map_or(Ok(0), |value| meter.laid_out(value))?;
    meter.pay(bytes)
}

/// Each field may write every argument again, and pads it to a width.
fn format(meter: &mut Meter, args: &[Value]) -> Result<(), Error> {
    let mut bytes: u64 = 0;
    for arg in args {
        bytes = bytes.saturating_add(meter.whole(arg)?);
    }
    let pattern = args.first().and_then(Value::as_str).unwrap_or_default();
    for field in pattern.split('%').skip(1) {
        let named = field.strip_prefix('(').and_then(|field| field.split_once(')'));
        let field = named.map_or(field, |(_, field)| field);
        let spec = |sign: char| sign.is_ascii_digit() || "-+ #.*".contains(sign);
        let spec = &field[..field.find(|sign| !spec(sign)).unwrap_or(field.len())];
        let widths = spec.split(|sign: char| !sign.is_ascii_digit()).filter(|run| !run.is_empty());
        for width in widths {
            meter.pay(width.parse().unwrap_or(u64::MAX))?;
        }
        if spec.contains('*') {
            args.iter().try_for_each(|arg| meter.pay(count(Some(arg))))?;
        }
        meter.pay(bytes)?;
    }
    Ok(())
}

/// All items of all arguments, or all entries if they are maps.
fn chained(meter: &mut Meter, args: &[Value]) -> Result<Value, Error> {
    if !args.iter().all(|arg| arg.kind() == ValueKind::Map) {
        let mut items: Vec<Value> = Vec::new();
        for arg in args {
            meter.each(arg)?;
            items.extend(arg.try_iter()?);
        }
        return Ok(Value::from(items));
    }
    let mut entries: BTreeMap<Value, Value> = BTreeMap::new();
    for (by, value) in args.iter().filter_map(|arg| arg.as_object()?.try_iter_pairs()).flatten() {
        key(meter, &by)?;
        entries.insert(by, value);
    }
    Ok(Value::from_object(entries))
}

/// A whole number, or none.
fn count(value: Option<&Value>) -> u64 {
    value.and_then(Value::as_usize).unwrap_or(0) as u64
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
