//! Texts with `{{ }}`: minijinja over the same root as pointers. An undefined name is a fault.

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// A text, compiled when the plan is loaded.
pub struct Template {
    source: String,
    /// None for a text without `{{`, which is most of them.
    compiled: Option<Compiled>,
}

struct Compiled {
    environment: Environment<'static>,
    needs: Needs,
}

/// What a template looks at, so that nothing else has to be made ready for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// Keys of the context.
    pub context_keys: BTreeSet<String>,
    /// The context as a whole.
    pub whole_context: bool,
    /// The run's input.
    pub input: bool,
    /// The history.
    pub history: bool,
}

/// How much work a template may do.
const FUEL: u64 = 50_000;
const NAME: &str = "text";

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source).finish()
    }
}

impl Template {
    /// Reads a text. The error says what is wrong and where.
    pub fn parse(source: &str) -> Result<Self, String> {
        let plain = !source.contains("{{") && !source.contains("{%") && !source.contains("{#");
        if plain {
            return Ok(Self { source: source.to_owned(), compiled: None });
        }
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|error| first_line(&error))?;
        let names = environment
            .get_template(NAME)
            .map_err(|error| first_line(&error))?
            .undeclared_variables(true);
        let needs = Needs::read(names.into_iter())?;
        Ok(Self { source: source.to_owned(), compiled: Some(Compiled { environment, needs }) })
    }

    /// The text as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What it looks at; nothing for a plain text.
    pub fn needs(&self) -> Option<&Needs> {
        self.compiled.as_ref().map(|compiled| &compiled.needs)
    }

    /// The text with every `{{ }}` filled from `root`.
    pub fn render(&self, root: Map<String, Value>) -> Result<String, String> {
        let Some(compiled) = &self.compiled else { return Ok(self.source.clone()) };
        let template =
            compiled.environment.get_template(NAME).map_err(|error| first_line(&error))?;
        template
            .render(minijinja::Value::from(Serde(Value::Object(root))))
            .map_err(|error| first_line(&error))
    }
}

/// The names that a text uses, without what stands after a dot.
pub fn names(source: &str) -> Result<BTreeSet<String>, String> {
    let mut environment = Environment::new();
    environment.add_template_owned(NAME, source.to_owned()).map_err(|error| first_line(&error))?;
    let template = environment.get_template(NAME).map_err(|error| first_line(&error))?;
    Ok(template.undeclared_variables(false).into_iter().collect())
}

/// Fills a text that may use the names of `root` and no others.
pub fn fill(source: &str, root: Map<String, Value>) -> Result<String, String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment
        .render_str(source, minijinja::Value::from(Serde(Value::Object(root))))
        .map_err(|error| first_line(&error))
}

impl Needs {
    fn read(names: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut needs = Needs::default();
        for name in names {
            let mut parts = name.split('.');
            match (parts.next(), parts.next()) {
                (Some("context"), Some(key)) => {
                    needs.context_keys.insert(key.to_owned());
                }
                (Some("context"), None) => needs.whole_context = true,
                (Some("promptInput"), _) => needs.input = true,
                (Some("history"), _) => needs.history = true,
                (Some(other), _) => {
                    return Err(format!(
                        "`{other}` is not known here; use context, history or promptInput"
                    ));
                }
                (None, _) => {}
            }
        }
        Ok(needs)
    }
}

fn first_line(error: &minijinja::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn render(source: &str) -> Result<String, String> {
        let Value::Object(root) = json!({"context": {"sum": 3}, "promptInput": {"who": "Ann"}})
        else {
            unreachable!()
        };
        Template::parse(source)?.render(root)
    }

    #[test]
    fn texts_are_filled_and_plain_ones_stay() {
        assert_eq!(render("plain {text}").unwrap(), "plain {text}");
        assert_eq!(render("sum: {{ context.sum }}").unwrap(), "sum: 3");
        assert_eq!(render("hi {{ promptInput.who }} <b>").unwrap(), "hi Ann <b>");
    }

    #[test]
    fn an_undefined_name_is_a_fault() {
        assert!(render("{{ context.missing }}").unwrap_err().contains("undefined"));
        assert!(render("{{ contxt.sum }}").unwrap_err().contains("`contxt` is not known"));
        assert!(render("{{ context.sum").is_err());
    }

    #[test]
    fn only_what_a_text_looks_at_is_needed() {
        let template = Template::parse("{{ context.a.b }} {{ context['c'] }}").unwrap();
        let needs = template.needs().unwrap();
        assert!(needs.context_keys.contains("a"));
        assert!(needs.context_keys.contains("c") || needs.whole_context);
    }
}
