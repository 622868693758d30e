//! Tests of policy files, from text to verdict.

mod calls;
mod cases;
mod files;
mod principals;
mod records;
mod snapshots;
mod verdicts;

use crate::decide::{Policies, Question};
use kernel::contracts::policy::{Context, Decision, Request, Resource};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::principal::Roster;
use kernel::identity::roles::Roles;
use kernel::tool::call::{OutputKind, Pace, Reach, ToolSpec, Verdict};
use kernel::values::caller::{Act, Caller};
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::sync::Arc;

/// 2026-11-16T08:00:00Z.
const NOW: Millis = Millis(1_794_816_000_000);

/// The policies of one file.
fn policies(text: &str) -> Policies {
    match Policies::read([("a.cedar", text)]) {
        Ok((policies, _)) => policies,
        Err(mistakes) => panic!("{}", lines(&mistakes).join("\n")),
    }
}

fn lines(mistakes: &[Mistake]) -> Vec<String> {
    mistakes.iter().map(ToString::to_string).collect()
}

/// What is wrong with the policies of one file.
fn mistakes(text: &str) -> Vec<Mistake> {
    Policies::read([("a.cedar", text)]).err().unwrap_or_default()
}

fn tool(name: &str, input_schema: Value) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        title: String::new(),
        description: String::new(),
        input_schema: Arc::new(input_schema),
        output_schema: None,
        reach: Reach::Writes,
        idempotent: false,
        tags: vec!["money".to_owned()],
        pace: Pace::Quick,
        yields: OutputKind::Value,
        unrecorded: false,
        listed: None,
    }
}

/// A tool that pays an amount.
fn pay() -> ToolSpec {
    tool(
        "pay",
        json!({
            "type": "object",
            "required": ["amount"],
            "properties": {
                "amount": {"type": "integer"},
                "rate": {"type": "number"},
                "to": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        }),
    )
}

/// Ann with these roles in a realm.
struct Ann<'r>(&'r [&'r str]);

impl Ann<'_> {
    fn does(&self, policies: &Policies, act: Act, resource: Resource<'_>) -> Decision {
        self.asks(policies, act, resource, Context::default())
    }

    fn calls(&self, policies: &Policies, spec: &ToolSpec, arguments: Value) -> Decision {
        let context = Context { arguments: Some(&arguments), ..Context::default() };
        self.asks(policies, Act::Call, Resource::Tool(spec), context)
    }

    /// Whether a list shows her the tool.
    fn sees(&self, policies: &Policies, spec: &ToolSpec) -> bool {
        self.does(policies, Act::Call, Resource::Tool(spec)).shows()
    }

    fn asks(
        &self,
        policies: &Policies,
        act: Act,
        resource: Resource<'_>,
        context: Context<'_>,
    ) -> Decision {
        let subject = Caller::new("acme", "ann");
        let request = Request { act, subject: &subject, resource, context };
        let roles: Roles = self.0.iter().map(|role| Arc::<str>::from(*role)).collect();
        let principals = Roster::default();
        policies.judge(&Question {
            request: &request,
            roles: &roles,
            principals: &principals,
            now: NOW,
            builtin: true,
        })
    }
}

/// `allow`, `ask` or `deny`, with the policies that decided.
fn said(decision: &Decision) -> String {
    let word = match decision.verdict {
        Verdict::Allow => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    };
    let ids: Vec<&str> = decision.policies.iter().map(|id| &**id).collect();
    format!("{word} {}", ids.join(" ")).trim_end().to_owned()
}
