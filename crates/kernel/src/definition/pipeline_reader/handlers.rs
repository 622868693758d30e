//! Reads the handlers of a pipeline and their reasons.

use super::Form;
use crate::definition::pipeline::{Handler, HandlerKind, PIPELINES};
use crate::definition::plan::mistake::Mistake;
use crate::definition::plan::read::Spot;
use crate::definition::plan::source::NodeKind;
use crate::definition::reasons::{Comparison, Reasons};
use crate::expression::patterns::Unusable;
use crate::values::ids::PlanId;
use std::collections::BTreeSet;

/// What a handler may have.
pub(super) const KEYS: &[&str] = &["reason", "match", "type", "plan", "params", "event"];
const TYPES: &[&str] = &["lookup-enrich", "escalate", "plan: <id>"];

impl Form<'_> {
    pub(super) fn handlers(&mut self, spot: &Spot<'_>) -> Vec<Handler> {
        let list = spot.field("handlers").and_then(|field| self.reader.list(&field));
        let mut handlers = Vec::new();
        let mut reasons = BTreeSet::new();
        for item in list.unwrap_or_default() {
            let Some(handler) = self.handler(&item) else { continue };
            // Of expressions no one can say that they take the same.
            let exact = handler.reasons.expression().is_none();
            for reason in handler.reasons.texts().iter().filter(|_| exact) {
                if !reasons.insert(reason.clone()) {
                    let what = format!("two handlers have the reason `{reason}`");
                    self.reader.note(&item, Mistake::error(what).hint("keep one of the two"));
                }
            }
            handlers.push(handler);
        }
        handlers
    }

    fn handler(&mut self, spot: &Spot<'_>) -> Option<Handler> {
        if !self.reader.object(spot, "a handler", KEYS) {
            return None;
        }
        let reasons = self.reasons(spot);
        let kind = self.handler_kind(spot);
        let event = spot.field("event").and_then(|field| {
            if let Some(HandlerKind::Plan(_)) = &kind {
                let mistake = Mistake::error("a plan publishes its own events");
                self.reader.note(&field, mistake.hint("leave `event` out"));
            }
            self.reader.name(&field).map(str::to_owned)
        });
        Some(Handler { reasons: reasons?, kind: kind?, event })
    }

    /// A reason, or a list of them, and how they are compared.
    fn reasons(&mut self, spot: &Spot<'_>) -> Option<Reasons> {
        let comparison = self.reader.one_of(spot, &["match"], &Comparison::NAMES);
        let comparison = comparison.unwrap_or(Comparison::Exact);
        let field = self.reader.need(spot, "reason")?;
        let items = match &field.node.kind {
            NodeKind::List(_) => self.reader.filled(&field)?,
            _ => vec![Spot { node: field.node, pointer: field.pointer.clone() }],
        };
        let mut texts = Vec::new();
        for item in &items {
            let text = self.reader.text(item)?.to_owned();
            // Each by itself: two that are wrong could be right together.
            if let Err(unusable) = Reasons::new(vec![text.clone()], comparison) {
                self.unusable(item, &unusable);
                return None;
            }
            texts.push(text);
        }
        match Reasons::new(texts, comparison) {
            Ok(reasons) => Some(reasons),
            Err(unusable) => {
                self.unusable(&field, &unusable);
                None
            }
        }
    }

    fn unusable(&mut self, spot: &Spot<'_>, unusable: &Unusable) {
        let mistake = match unusable {
            Unusable::Wrong(why) => {
                let why = why.lines().last().unwrap_or_default();
                Mistake::error(format!("this is not a regular expression: {why}"))
                    .hint("`match: pattern` takes the syntax of Rust's regex crate")
            }
            Unusable::TooLarge | Unusable::TooCostly(_) => {
                Mistake::error("this makes too large a regular expression")
                    .hint("make two handlers of it")
            }
        };
        self.reader.note(spot, mistake);
    }

    fn handler_kind(&mut self, spot: &Spot<'_>) -> Option<HandlerKind> {
        match (spot.field("type"), spot.field("plan")) {
            (Some(_), Some(plan)) => {
                let mistake = Mistake::error("`type` and `plan` both say what is done");
                self.reader.note(&plan, mistake.hint("keep one of the two"));
                None
            }
            (None, Some(plan)) => {
                self.no_params(spot, "a plan");
                let id = self.reader.name(&plan)?;
                self.handler_plan(&plan, id)
            }
            (kind, None) => {
                let kind = kind.or_else(|| self.reader.need(spot, "type"))?;
                self.handler_type(spot, &kind)
            }
        }
    }

    fn handler_type(&mut self, spot: &Spot<'_>, kind: &Spot<'_>) -> Option<HandlerKind> {
        let word = self.reader.text(kind)?;
        if let Some(id) = word.strip_prefix("plan:") {
            self.no_params(spot, "a plan");
            return self.handler_plan(kind, id.trim());
        }
        match word {
            "lookup-enrich" => {
                let identifier = self.param(spot, "identifier", "`lookup-enrich`")?.to_owned();
                Some(HandlerKind::LookupEnrich { identifier })
            }
            "escalate" => {
                self.no_params(spot, "`escalate`");
                Some(HandlerKind::Escalate)
            }
            "plan" => {
                let id = self.param(spot, "plan", "`plan`")?;
                self.handler_plan(kind, id)
            }
            _ => {
                self.unknown_type(kind, "handler", TYPES);
                None
            }
        }
    }

    fn handler_plan(&mut self, spot: &Spot<'_>, id: &str) -> Option<HandlerKind> {
        let mistake = if id.is_empty() {
            Mistake::error("no plan is named").hint("write `plan: some/id`")
        } else if id.starts_with(PIPELINES) {
            // It would hand its cases round for ever, or to a pipeline whose bodies are others.
            Mistake::error(format!("`{id}` is a pipeline, not a plan"))
                .hint("name a plan of `plans/`; a pipeline is reached by its route")
        } else {
            return Some(HandlerKind::Plan(PlanId::from(id)));
        };
        self.reader.note(spot, mistake);
        None
    }

    fn no_params(&mut self, spot: &Spot<'_>, of: &str) {
        if let Some(params) = spot.field("params") {
            let mistake = Mistake::error(format!("{of} has no `params`"));
            self.reader.note(&params, mistake.hint("leave them out"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::definition::pipeline::Pipeline;
    use crate::definition::pipeline_reader::read_text;
    use crate::definition::plan::flow::reload;
    use crate::definition::plan::mistake::Mistake;
    use crate::limits::Limits;
    use serde_json::{Value, json};

    fn read(handlers: &str) -> Result<Pipeline, Vec<String>> {
        let text = format!(
            "http: {{route: /p}}\nschema: {{caseIdField: id, allowedFields: [id, reason], \
             requiredFields: [id, reason]}}\ntools: [a]\nllm: {{type: stub}}\n\
             handlers:\n{handlers}"
        );
        let read = read_text(&text, "p.yaml", "p", &Limits::default());
        let told = |mistakes: Vec<Mistake>| mistakes.iter().map(Mistake::to_string).collect();
        read.map(|(pipeline, _)| pipeline).map_err(told)
    }

    #[test]
    fn reasons_can_be_lists_case_insensitive_words_or_patterns() {
        let pipeline = read(
            "  - {reason: [Late, Very late], type: escalate, event: OrderLate}\n  \
             - {reason: Lost, type: escalate}\n  \
             - {reason: broken, match: any-case, type: escalate}\n  \
             - {reason: '^Missing ', match: pattern, plan: find/it}\n  \
             - {reason: Stolen, type: escalate}\n",
        );
        let pipeline = pipeline.unwrap();
        let handler = |reason: &str| {
            let case = pipeline.admit(&json!({"id": "1", "reason": reason})).unwrap();
            case.handler
        };
        let taken = ["Very late", "Lost", "BROKEN", "Missing ISIN", "Stolen", "late"].map(handler);
        assert_eq!(taken, [Some(0), Some(1), Some(2), Some(3), Some(4), None]);
        let plan = &pipeline.plan_source;
        let steps = plan["steps"].as_array().unwrap();
        let ids: Vec<&str> = steps.iter().take(4).filter_map(|step| step["id"].as_str()).collect();
        assert_eq!(ids, ["route", "route_2", "route_3", "route_4"]);
        assert_eq!(steps[0]["cases"].as_array().map(Vec::len), Some(3));
        assert_eq!(steps[0]["default"]["nextStepId"], "route_2");
        assert_eq!(steps[2]["condition"]["right"], "(?i)(?:^Missing )");
        assert_eq!(steps[2]["onTrue"]["nextStepId"], "handler_4");
        assert_eq!(steps[3]["default"]["nextStepId"], "agent");
        let kind = |index: usize| steps[index]["event"]["type"].clone();
        assert_eq!([kind(4), kind(6)], [json!("OrderLate"), json!("TradeEscalated")]);
        assert!(reload(plan).is_ok(), "{plan:#}");
    }

    #[test]
    fn reasons_are_compared_exactly_by_default() {
        let pipeline = read("  - {reason: A, type: escalate}\n  - {reason: B, type: escalate}\n");
        let plan = pipeline.unwrap().plan_source;
        let cases: Value = json!([{"equals": "A", "nextStepId": "handler_1"},
            {"equals": "B", "nextStepId": "handler_2"}]);
        assert_eq!((&plan["steps"][0]["cases"], &plan["startStepId"]), (&cases, &json!("route")));
    }

    #[test]
    fn mistakes_in_reasons_are_told() {
        for (handlers, told) in [
            ("  - {reason: '(', match: pattern, type: escalate}\n", "not a regular expression"),
            ("  - {reason: a, match: fuzzy, type: escalate}\n", "`match` cannot be `fuzzy`"),
            ("  - {reason: [], type: escalate}\n", "this list is empty"),
            ("  - {reason: [a, a], type: escalate}\n", "two handlers have the reason `a`"),
            ("  - {reason: a, plan: b/c, event: X}\n", "a plan publishes its own events"),
        ] {
            let mistakes = read(handlers).unwrap_err();
            assert!(mistakes[0].contains(told), "{mistakes:?}");
        }
        let long =
            format!("  - {{reason: {}, match: any-case, type: escalate}}\n", "x".repeat(2000));
        assert!(read(&long).unwrap_err()[0].contains("too large a regular expression"));
    }
}
