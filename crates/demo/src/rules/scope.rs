//! Expressions and texts of a rules file, and the names they can use. Each is parsed once, when the
//! file is read; `minijinja` caches them by a name of ours.

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How much work one expression or text may do.
const FUEL: u64 = 200_000;
/// Where an expression leaves its value; no name in a file begins like this.
const VALUE: &str = "__value";

/// All expressions and texts of a file.
pub(super) struct Texts {
    environment: Environment<'static>,
    count: usize,
}

/// An expression that was read: it has a value.
#[derive(Debug, Clone)]
pub(super) struct Expr(String);

/// A text with `{{ }}` that was read: it becomes a text.
#[derive(Debug, Clone)]
pub(super) struct Text(String);

/// Names and their values. A copy is cheap until one of the two is changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    values: Arc<BTreeMap<String, Value>>,
}

impl Default for Texts {
    fn default() -> Self {
        let mut environment = Environment::new();
        // What is not there is nothing: a result may lack any field.
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        Self { environment, count: 0 }
    }
}

impl Texts {
    /// Reads an expression. Gives also the names that it looks at.
    pub(super) fn expression(&mut self, source: &str) -> Result<(Expr, Vec<String>), String> {
        // By itself first: the message is then about the expression as it was written.
        self.environment
            .compile_expression_owned(source.to_owned())
            .map_err(|error| error_text(&error))?;
        let (name, names) = self.add(&format!("{{% set {VALUE} = ({source}) %}}"))?;
        Ok((Expr(name), names))
    }

    /// Reads a text with `{{ }}`. Gives also the names that it looks at.
    pub(super) fn text(&mut self, source: &str) -> Result<(Text, Vec<String>), String> {
        self.add(source).map(|(name, names)| (Text(name), names))
    }

    /// The value of an expression.
    pub(super) fn value(&self, expr: &Expr, scope: &Scope) -> Result<Value, String> {
        let template =
            self.environment.get_template(&expr.0).map_err(|error| error_text(&error))?;
        let done = template.render_captured(scope.context()).map_err(|error| error_text(&error))?;
        Ok(done.state().lookup(VALUE).unwrap_or_default())
    }

    /// A text with everything filled in.
    pub(super) fn fill(&self, text: &Text, scope: &Scope) -> Result<String, String> {
        let template =
            self.environment.get_template(&text.0).map_err(|error| error_text(&error))?;
        template.render(scope.context()).map_err(|error| error_text(&error))
    }

    fn add(&mut self, source: &str) -> Result<(String, Vec<String>), String> {
        let name = format!("text {}", self.count);
        self.count += 1;
        self.environment
            .add_template_owned(name.clone(), source.to_owned())
            .map_err(|error| error_text(&error))?;
        let template = self.environment.get_template(&name).map_err(|error| error_text(&error))?;
        let mut names: Vec<String> = template.undeclared_variables(false).into_iter().collect();
        names.sort();
        Ok((name, names))
    }
}

impl Scope {
    /// Gives a name a value.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        Arc::make_mut(&mut self.values).insert(name.to_owned(), value);
    }

    /// Gives a name a JSON value.
    pub(super) fn set_json(&mut self, name: &str, value: &serde_json::Value) {
        self.set(name, from_json(value));
    }

    fn context(&self) -> Value {
        Value::from_dyn_object(self.values.clone())
    }
}

/// A JSON value as expressions see it.
pub(super) fn from_json(value: &serde_json::Value) -> Value {
    Value::from(Serde(value))
}

/// The value of an expression as JSON; what JSON cannot hold is null.
pub(super) fn to_json(value: &Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn error_text(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scope() -> Scope {
        let mut scope = Scope::default();
        scope.set_json("call", &json!({"args": {"start": "2026"}, "list": [1, 2]}));
        scope
    }

    #[test]
    fn an_expression_keeps_its_type_and_missing_names_are_null() {
        let mut texts = Texts::default();
        let mut value = |source: &str| {
            let (expr, _) = texts.expression(source).unwrap();
            to_json(&texts.value(&expr, &scope()).unwrap())
        };
        assert_eq!(value("call.list + [3]"), json!([1, 2, 3]));
        assert_eq!(value("call.args.start or 'x'"), json!("2026"));
        assert_eq!(value("call.nope.at.all or call.list|length"), json!(2));
        assert_eq!(value("nothing.here"), json!(null));
        assert_eq!(value("{'a': call.list[0]}"), json!({"a": 1}));
    }

    #[test]
    fn free_names_and_mistakes_are_reported() {
        let mut texts = Texts::default();
        let (_, names) = texts.text("{% for x in call.list %}{{ x }}{{ y }}{% endfor %}").unwrap();
        assert_eq!(names, ["call", "y"]);
        assert!(texts.expression("a +").is_err());
        assert!(texts.text("{{ a").is_err());
        let (text, _) = texts.text("{{ call.args.start }}!").unwrap();
        assert_eq!(texts.fill(&text, &scope()).unwrap(), "2026!");
    }
}
