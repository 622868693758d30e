//! Validates policies against the schema. Policies that read no arguments are validated once, when
//! they are read. The others depend on a tool's input schema, which comes with every call and can
//! change: each version is validated once, when it is first seen.

use crate::arguments::Record;
use crate::dependencies::{ARGUMENTS, Comparison, comparisons};
use crate::files::{FilePolicy, error, warning};
use crate::schema::schema;
use cedar_policy::ffi::DetailedError;
use cedar_policy::{ValidationMode, ValidationResult, Validator};
use kernel::definition::plan::mistake::Mistake;
use kernel::tool::call::ToolSpec;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

/// How many input schemas of one name are remembered: each realm may have its own tool of a name.
const VERSIONS_MAX: usize = 16;

/// The policies that name a tool's own action, held against one input schema.
#[derive(Debug)]
pub(crate) struct FittedPolicies {
    input_schema: Arc<Value>,
    /// The type of the arguments.
    pub(crate) arguments: Record,
    /// The policies that do not fit it, by place, with the reasons.
    pub(crate) misfits: HashMap<usize, Vec<Mistake>>,
}

/// The input schemas that were seen, by tool.
#[derive(Debug, Default)]
pub(crate) struct Fits(RwLock<HashMap<String, Vec<Arc<FittedPolicies>>>>);

impl Fits {
    /// How the policies that read the arguments of this tool fit it.
    pub(crate) fn of(
        &self,
        spec: &ToolSpec,
        policies: &[FilePolicy],
        tools: &BTreeSet<String>,
    ) -> Arc<FittedPolicies> {
        if let Some(known) = self.known(spec) {
            return known;
        }
        let fitted = Arc::new(FittedPolicies::new(spec, policies, tools));
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let versions = all.entry(spec.name.as_str().to_owned()).or_default();
        if versions.len() >= VERSIONS_MAX {
            versions.remove(0);
        }
        versions.push(fitted.clone());
        fitted
    }

    fn known(&self, spec: &ToolSpec) -> Option<Arc<FittedPolicies>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let versions = all.get(spec.name.as_str())?;
        let same = |one: &&Arc<FittedPolicies>| Arc::ptr_eq(&one.input_schema, &spec.input_schema);
        let equal = |one: &&Arc<FittedPolicies>| one.input_schema == spec.input_schema;
        versions.iter().find(same).or_else(|| versions.iter().find(equal)).cloned()
    }
}

impl FittedPolicies {
    fn new(spec: &ToolSpec, policies: &[FilePolicy], tools: &BTreeSet<String>) -> Self {
        let name = spec.name.as_str();
        let arguments = Record::of(&spec.input_schema);
        let typed = schema(tools, Some((name, &arguments)));
        let concerned = policies
            .iter()
            .enumerate()
            .filter(|(_, policy)| policy.reads.arguments && policy.actions.tools.contains(name));
        let validator = typed.map(Validator::new);
        let mut misfits = HashMap::new();
        for (place, policy) in concerned {
            let mistakes = match &validator {
                Ok(validator) => {
                    let result = validator.validate(&policy.whole, ValidationMode::Strict);
                    let found = with_decimals(errors(&result, policy), &arguments, policy);
                    if found.is_empty() { gone(&arguments, policy) } else { found }
                }
                Err(error) => vec![policy.source.place(unusable(error), 0)],
            };
            if !mistakes.is_empty() {
                misfits.insert(place, mistakes);
            }
        }
        Self { input_schema: spec.input_schema.clone(), arguments, misfits }
    }
}

/// The same mistakes. Where the policy compares a decimal with a whole number, they say what it
/// should have written: Cedar compares decimals by methods alone.
fn with_decimals(found: Vec<Mistake>, arguments: &Record, policy: &FilePolicy) -> Vec<Mistake> {
    let right = if found.is_empty() { Vec::new() } else { decimal_comparisons(arguments, policy) };
    if right.is_empty() {
        return found;
    }
    let hint = format!("a `number` is a decimal in a policy: write {}", right.join(" and "));
    let hinted = |mistake: Mistake| match mistake.message.contains("decimal") {
        true => mistake.hint(hint.clone()),
        false => mistake,
    };
    found.into_iter().map(hinted).collect()
}

/// The comparisons of decimals with whole numbers in a policy, as they should be written.
fn decimal_comparisons(arguments: &Record, policy: &FilePolicy) -> Vec<String> {
    let json = policy.whole.policies().next().and_then(|policy| policy.to_json().ok());
    let conditions = json.map(|mut json| json["conditions"].take()).unwrap_or_default();
    let written = |Comparison { names, operator, number }: Comparison| {
        let argument = names.join(".");
        let number = format!("decimal(\"{number}.0\")");
        let method = match operator {
            "<" => "lessThan",
            "<=" => "lessThanOrEqual",
            ">" => "greaterThan",
            ">=" => "greaterThanOrEqual",
            _ => return format!("`context.{ARGUMENTS}.{argument} {operator} {number}`"),
        };
        format!("`context.{ARGUMENTS}.{argument}.{method}({number})`")
    };
    let all = comparisons(&conditions).into_iter();
    all.filter(|compared| arguments.is_decimal(&compared.names)).map(written).collect()
}

/// The arguments that a policy names and the tool does not have. Cedar takes `has` with any name:
/// a `forbid` that first asks for an argument would be void after the tool renamed it.
fn gone(arguments: &Record, policy: &FilePolicy) -> Vec<Mistake> {
    let missing = policy.arguments.iter().filter(|names| !arguments.has(names));
    let told = missing.map(|names| {
        let name = names.join(".");
        let mistake = Mistake::error(format!("there is no argument `{name}` that has a type"))
            .hint("compare it with the input schema of the tool");
        policy.source.place(mistake, 0)
    });
    told.collect()
}

/// Validates the policies that read no arguments: errors and warnings.
pub(crate) fn validate(policies: &[FilePolicy], tools: &BTreeSet<String>) -> Vec<Mistake> {
    let validator = match schema(tools, None) {
        Ok(schema) => Validator::new(schema),
        Err(error) => return vec![unusable(&error)],
    };
    let mut found = Vec::new();
    for policy in policies.iter().filter(|policy| !policy.reads.arguments) {
        let result = validator.validate(&policy.whole, ValidationMode::Strict);
        found.extend(errors(&result, policy));
        let warnings = result.validation_warnings().map(DetailedError::from);
        found.extend(warnings.map(|told| policy.source.reported(&told, warning)));
    }
    found
}

fn errors(result: &ValidationResult, policy: &FilePolicy) -> Vec<Mistake> {
    let told = result.validation_errors().map(DetailedError::from);
    let hinted = |mistake: Mistake| match mistake.hint {
        Some(_) => mistake,
        None => mistake.hint("compare it with the actions, types and attributes of the schema"),
    };
    told.map(|told| hinted(policy.source.reported(&told, error))).collect()
}

fn unusable(error: &str) -> Mistake {
    Mistake::error(format!("the schema of the policies cannot be used: {error}"))
        .hint("this is a mistake in Waypost; please report it")
}
