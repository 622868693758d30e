//! What a policy depends on beside principal, action and resource, read from its JSON form:
//! arguments, sources, time. This decides which decisions can be cached, and what a policy says
//! while arguments are unknown.

use serde_json::Value;
use std::collections::BTreeSet;

/// The member of the context that holds the arguments of a call.
pub(crate) const ARGUMENTS: &str = "arguments";
/// The member of the context that says where the arguments came from.
pub(crate) const SOURCES: &str = "sources";
/// The member of the context that is the present moment.
pub(crate) const NOW: &str = "now";
/// The attribute of a subject that is the data domain of its principal.
pub(crate) const DATA_DOMAIN: &str = "dataDomain";
/// How properties of a principal are read: they are tags of its subject.
const TAG_OPERATORS: [&str; 2] = ["hasTag", "getTag"];

/// What a policy or one of its clauses reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reads {
    pub(crate) arguments: bool,
    pub(crate) sources: bool,
    pub(crate) time: bool,
}

impl Reads {
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            arguments: self.arguments || other.arguments,
            sources: self.sources || other.sources,
            time: self.time || other.time,
        }
    }
}

/// The members of arguments that are read, each by its first name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Members {
    /// The arguments as a whole.
    All,
    /// These alone.
    These(BTreeSet<String>),
}

impl Default for Members {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl Members {
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(name),
        }
    }

    /// Those that are read by one or the other.
    #[must_use]
    pub(crate) fn or(self, other: &Self) -> Self {
        match (self, other) {
            (Self::These(mut names), Self::These(more)) => {
                names.extend(more.iter().cloned());
                Self::These(names)
            }
            (Self::All, _) | (_, Self::All) => Self::All,
        }
    }
}

/// What an expression or a list of clauses reads. One that uses the whole context reads everything.
pub(crate) fn reads(expression: &Value) -> Reads {
    let mut found = Reads::default();
    walk(expression, |operator, operands| {
        if names_context(operator, operands) {
            found = Reads { arguments: true, sources: true, time: true };
        }
        let member = member_of_context(operator, operands);
        match member {
            Some(ARGUMENTS) => found.arguments = true,
            Some(SOURCES) => found.sources = true,
            Some(NOW) => found.time = true,
            Some(_) | None => {}
        }
        member.is_none()
    });
    found
}

/// Whether an expression could read what is known of a principal: its properties or data domain.
/// Where a text only looks like that, more is made known than is needed, and nothing else changes.
pub(crate) fn reads_principal(expression: &Value) -> bool {
    let mut found = false;
    walk(expression, |operator, operands| {
        found |= TAG_OPERATORS.contains(&operator) || operands == DATA_DOMAIN;
        !found
    });
    found
}

/// The first action of this kind that an expression names: one whose id begins so.
pub(crate) fn named_action<'v>(expression: &'v Value, beginning: &str) -> Option<&'v str> {
    let mut found = None;
    walk(expression, |operator, operands| {
        if found.is_none() && operator == "__entity" && operands["type"] == "Action" {
            found = operands["id"].as_str().filter(|id| id.starts_with(beginning));
        }
        found.is_none()
    });
    found
}

/// The entities of this type that an expression names.
pub(crate) fn named_entities<'v>(expression: &'v Value, kind: &str) -> Vec<&'v str> {
    let mut found = Vec::new();
    walk(expression, |operator, operands| {
        if operator == "__entity" && operands["type"] == kind {
            found.extend(operands["id"].as_str());
        }
        true
    });
    found
}

/// The members of arguments that an expression names, each by the names that lead to it. One that
/// it only asks for, with `has`, is among them.
pub(crate) fn named_arguments(expression: &Value) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    walk(expression, |operator, operands| {
        let path = path(operator, operands).unwrap_or_default();
        if let Some((&ARGUMENTS, names)) = path.split_first()
            && !names.is_empty()
        {
            found.push(names.iter().map(|name| (*name).to_owned()).collect());
        }
        true
    });
    found
}

/// The members of arguments that can change what an expression says. One that takes the arguments,
/// or the context, as a whole reads all of them.
pub(crate) fn read_members(expression: &Value) -> Members {
    let mut found = BTreeSet::new();
    let mut all = false;
    walk(expression, |operator, operands| {
        all |= names_context(operator, operands);
        let path = path(operator, operands);
        match path.as_deref() {
            Some([ARGUMENTS]) if operator == "." => all = true,
            Some([ARGUMENTS, name, ..]) => {
                found.insert((*name).to_owned());
            }
            // Another member of the context, or whether there are arguments at all.
            Some(_) | None => {}
        }
        path.is_none()
    });
    if all { Members::All } else { Members::These(found) }
}

/// Shows every member of every object in an expression with its name, and every item of an array
/// without one. What lies below a value is shown if the visitor says so.
fn walk<'v>(expression: &'v Value, mut goes_below: impl FnMut(&'v str, &'v Value) -> bool) {
    let mut left = vec![expression];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => {
                left.extend(items.iter().filter(|&item| goes_below("", item)));
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    if goes_below(name, value) {
                        left.push(value);
                    }
                }
            }
            _ => {}
        }
    }
}

/// A comparison of an argument with a whole number: the names that lead to the argument, the
/// operator with the argument on its left, and the number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) names: Vec<String>,
    pub(crate) operator: &'static str,
    pub(crate) number: i64,
}

/// The comparisons of arguments with whole numbers in an expression.
pub(crate) fn comparisons(expression: &Value) -> Vec<Comparison> {
    let mut found = Vec::new();
    walk(expression, |operator, operands| {
        found.extend(comparison(operator, operands));
        true
    });
    found
}

fn comparison(operator: &str, operands: &Value) -> Option<Comparison> {
    let (operator, mirrored) = match operator {
        "<" => ("<", ">"),
        "<=" => ("<=", ">="),
        ">" => (">", "<"),
        ">=" => (">=", "<="),
        "==" => ("==", "=="),
        "!=" => ("!=", "!="),
        _ => return None,
    };
    let number = |side: &str| operands.get(side)?.get("Value")?.as_i64();
    if let (Some(names), Some(number)) = (argument(operands.get("left")?), number("right")) {
        return Some(Comparison { names, operator, number });
    }
    let names = argument(operands.get("right")?)?;
    let number = number("left")?;
    Some(Comparison { names, operator: mirrored, number })
}

/// The names that lead to the argument that an expression is.
fn argument(expression: &Value) -> Option<Vec<String>> {
    let names = path(".", expression.get(".")?)?;
    let (first, rest) = names.split_first()?;
    let is_argument = *first == ARGUMENTS && !rest.is_empty();
    is_argument.then(|| rest.iter().map(|name| (*name).to_owned()).collect())
}

/// The names that lead from the context to what `<left>.<name>` and `<left> has <name>` read.
fn path<'v>(operator: &str, operands: &'v Value) -> Option<Vec<&'v str>> {
    if !matches!(operator, "." | "has") {
        return None;
    }
    let left = operands.get("left")?;
    let mut names = if is_context(left) { Vec::new() } else { path(".", left.get(".")?)? };
    let last = operands.get("attr")?;
    match last.as_array() {
        Some(several) => names.extend(several.iter().filter_map(Value::as_str)),
        None => names.push(last.as_str()?),
    }
    Some(names)
}

fn is_context(expression: &Value) -> bool {
    expression.get("Var").is_some_and(|name| names_context("Var", name))
}

/// Whether `{<operator>: <operands>}` is the context as a whole.
fn names_context(operator: &str, operands: &Value) -> bool {
    operator == "Var" && operands == "context"
}

/// The member that `context.<member>` and `context has <member>` read.
fn member_of_context<'v>(operator: &str, operands: &'v Value) -> Option<&'v str> {
    let is_member = matches!(operator, "." | "has") && is_context(operands.get("left")?);
    let member = operands.get("attr").filter(|_| is_member)?;
    // `context has a.b` has a list of names.
    member.as_str().or_else(|| member.get(0)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cedar_policy::Policy;

    fn clauses(condition: &str) -> Value {
        let text = format!("permit(principal, action, resource) when {{ {condition} }};");
        Policy::parse(None, text).unwrap().to_json().unwrap()["conditions"].clone()
    }

    #[test]
    fn reads_of_the_context_are_found() {
        let read = |condition: &str| {
            let Reads { arguments, time, .. } = reads(&clauses(condition));
            (arguments, time)
        };
        let reads_sources = |condition: &str| reads(&clauses(condition)).sources;
        assert!(reads_sources("context has sources && context.sources.contains(\"turn\")"));
        assert!(reads_sources("context == {}") && !reads_sources("context.arguments.sources"));
        assert_eq!(read("context.trigger == \"run\""), (false, false));
        assert_eq!(read("principal has arguments && resource.now"), (false, false));
        assert_eq!(read("context.arguments.a"), (true, false));
        assert_eq!(read("context has arguments"), (true, false));
        assert_eq!(read("context has arguments.a"), (true, false));
        assert_eq!(read("context[\"arguments\"].a"), (true, false));
        assert_eq!(read("!(context.now < context.now)"), (false, true));
        assert_eq!(read("context == {}"), (true, true));
        assert_eq!(read("(if true then context else context).a"), (true, true));
    }

    #[test]
    fn reads_of_principal_attributes_are_found() {
        for condition in [
            "principal.hasTag(\"team\") && principal.getTag(\"team\").contains(\"a\")",
            "principal has dataDomain && principal.dataDomain has tenantId",
            "principal has dataDomain.tenantId",
            "resource.owner[\"dataDomain\"].tenantId == \"a\"",
            "[1].contains(if principal.hasTag(resource.name) then 1 else 2)",
        ] {
            assert!(reads_principal(&clauses(condition)), "{condition}");
        }
        for condition in ["resource.tags.contains(\"money\")", "principal.actor == principal"] {
            assert!(!reads_principal(&clauses(condition)), "{condition}");
        }
    }

    #[test]
    fn reads_of_named_arguments_are_found() {
        let named = |condition: &str| {
            let mut found = named_arguments(&clauses(condition));
            found.sort();
            found.dedup();
            found.into_iter().map(|path| path.join(".")).collect::<Vec<_>>()
        };
        let guarded = "context.arguments has a && context.arguments.a.b > 1 || context.now == 1";
        assert_eq!(named(guarded), ["a", "a.b"]);
        let nested = named("context has arguments.x.y");
        assert_eq!(nested.last().map(String::as_str), Some("x.y"));
        assert_eq!(named("[context.arguments.list].contains(resource.a)"), ["list"]);
    }

    #[test]
    fn request_members_that_can_change_the_answer_are_found() {
        let these =
            |names: &[&str]| Members::These(names.iter().map(|name| (*name).to_owned()).collect());
        for (condition, names) in [
            ("context.trigger == \"run\" && principal has arguments", &[] as &[&str]),
            ("context has arguments && context.now == context.now", &[]),
            ("context.arguments.a.b > 1 || context.arguments has c", &["a", "c"]),
            ("context has arguments.x.y && context.arguments[\"z\"]", &["x", "z"]),
            ("[context.arguments.list].contains(resource.a)", &["list"]),
            ("context.arguments.a.greaterThan(decimal(\"1.0\"))", &["a"]),
            ("if context.arguments.a then context.arguments.b else {c: 1}.c > 0", &["a", "b"]),
        ] {
            assert_eq!(read_members(&clauses(condition)), these(names), "{condition}");
        }
        for whole in [
            "context.arguments == {a: 1}",
            "context == {}",
            "(if true then context else context).arguments.a",
            "(if true then context.arguments else context.arguments).a",
            "context.arguments.a && {b: context.arguments}.b.a",
        ] {
            assert_eq!(read_members(&clauses(whole)), Members::All, "{whole}");
        }
        assert_eq!(these(&["a"]).or(&these(&["b"])), these(&["a", "b"]));
        assert_eq!(these(&["a"]).or(&Members::All), Members::All);
        assert!(Members::All.has("a") && these(&["a"]).has("a") && !these(&["a"]).has("b"));
    }

    #[test]
    fn actions_in_conditions_are_found() {
        let clauses = clauses("action in [Action::\"read\", Action::\"call:pay\"]");
        assert_eq!(named_action(&clauses, "call:"), Some("call:pay"));
        assert_eq!(named_action(&clauses, "run"), None);
    }
}
