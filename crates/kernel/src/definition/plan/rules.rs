//! Reads rules for failed steps, in a step, at the top of a plan and in a project's settings. All
//! three have the same keys, and every mistake has its position.

use super::mistake::{CheckResult, Mistake, checked, did_you_mean};
use super::read::{Origin, Reader, Spot, listed};
use super::source::{Node, NodeKind};
use crate::ask::remedy::Drafter;
use crate::definition::rule::{
    FACTOR_PERCENT_MAX, FailureFilter, RETRY_TIMES_MAX, RULES_MAX, Retry, Rule, RuleAction,
};
use crate::limits::Limits;
use crate::tool::call::CallProgress;
use crate::tool::rules::Pattern;
use crate::values::ids::PlanId;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The key of rules, in both spellings.
pub(crate) const ON_ERROR: [&str; 2] = ["on_error", "onError"];

/// What a rule can do, by its key.
const ACTS: [&str; 4] = ["retry", "plan", "propose", "draft"];
/// The model that a rule asks where it names none.
const DEFAULT_MODEL: &str = "default";

/// Names of faults that Waypost itself gives; tools have others of their own.
const FAULTS: &[&str] = &[
    "AnswerLost", "ApprovalNeeded", "ApprovalVoid", "CircuitOpen", "ConnectFailed", "HttpStatus",
    "InputValidationError", "InvalidEvent", "LoopError", "OutputValidationError", "PlanError",
    "PointerError", "PolicyDenied", "RateLimited", "TemplateError", "Timeout", "TooManyCalls",
    "ToolExecutionError", "ToolNotFoundError", "UpstreamClosed", "UpstreamForbidden",
    "UpstreamRefused", "UpstreamTimeout", "UpstreamUnauthorized", "UpstreamUnreachable",
];

/// Reads a list of rules that stands by itself, in a project's settings.
pub fn read_rules(node: &Node, origin: &Origin, limits: &Limits) -> CheckResult<Vec<Rule>> {
    let mut reader = Reader::new(origin, limits);
    let rules = reader.rules(&Spot::root(node));
    checked(Some(rules), reader.mistakes)
}

impl Reader<'_> {
    /// `on_error`: one word, or a list of rules; nothing where it is left out.
    pub(crate) fn on_error(&mut self, spot: &Spot<'_>) -> Vec<Rule> {
        let mut fields = ON_ERROR.iter().filter_map(|key| spot.field(key));
        let Some(field) = fields.next() else { return Vec::new() };
        if !matches!(field.node.kind, NodeKind::List(_)) {
            let known = [("ask", false), ("fail", true)];
            let fails = self.one_of(spot, &ON_ERROR, &known);
            return fails.map(|fails| Rule::always(ending(fails))).into_iter().collect();
        }
        if fields.next().is_some() {
            let message = format!("{} are the same key", listed(&ON_ERROR, "and"));
            self.note(spot, Mistake::error(message).hint("keep one of the two"));
        }
        self.rules(&field)
    }

    fn rules(&mut self, spot: &Spot<'_>) -> Vec<Rule> {
        let items = self.filled(spot).unwrap_or_default();
        if items.len() > RULES_MAX {
            let message = format!("{} rules are more than {RULES_MAX}", items.len());
            self.note(spot, Mistake::error(message).hint("join rules that do the same"));
        }
        let mut rules: Vec<Rule> = Vec::new();
        for item in &items {
            let last = rules.last().map(|rule| &rule.act);
            if let Some(RuleAction::Ask | RuleAction::Fail) = last {
                let message = "this rule is never reached: the one above it takes every failure";
                self.note(item, Mistake::error(message).hint("put it above that one"));
            }
            rules.extend(self.rule(item));
        }
        rules
    }

    fn rule(&mut self, spot: &Spot<'_>) -> Option<Rule> {
        if let Some(word) = spot.node.text() {
            if !["ask", "fail"].contains(&word) {
                let mistake = Mistake::error(format!("a rule cannot be `{word}`"));
                let acts = listed(&ACTS, "or");
                self.note(spot, mistake.hint(format!("write `ask`, `fail`, or a map with {acts}")));
                return None;
            }
            return Some(Rule::always(ending(word == "fail")));
        }
        if !self.object(spot, "a rule", &["when", "retry", "plan", "propose", "draft"]) {
            return None;
        }
        let when = match spot.field("when") {
            Some(field) => self.when(&field)?,
            None => FailureFilter::default(),
        };
        let mut acts = ACTS.iter().filter_map(|key| Some((*key, spot.field(key)?)));
        let act = match (acts.next(), acts.next()) {
            (Some((key, field)), None) => self.act(key, &field)?,
            (Some(_), Some(_)) => {
                let acts = listed(&ACTS, "or");
                let mistake = Mistake::error(format!("a rule does one thing: {acts}"));
                self.note(spot, mistake.hint("write two rules, one below the other"));
                return None;
            }
            (None, _) => {
                let mistake = Mistake::error("the rule does nothing");
                self.note(spot, mistake.hint("add `retry: {}`, or `plan: ` with a plan's id"));
                return None;
            }
        };
        Some(Rule { when, act })
    }

    fn act(&mut self, key: &str, field: &Spot<'_>) -> Option<RuleAction> {
        match key {
            "retry" => self.retry(field).map(RuleAction::Retry),
            "plan" => self.name(field).map(|id| RuleAction::Plan(PlanId::from(id))),
            "propose" => self.propose(field).map(RuleAction::Propose),
            _ => self.draft(field).map(RuleAction::Draft),
        }
    }

    fn propose(&mut self, spot: &Spot<'_>) -> Option<Arc<str>> {
        self.object(spot, "`propose`", &["model"]).then(|| self.model_of(spot))?
    }

    fn draft(&mut self, spot: &Spot<'_>) -> Option<Drafter> {
        if !self.object(spot, "`draft`", &["model", "auto"]) {
            return None;
        }
        let auto = self.one_of(spot, &["auto"], &[("reads", true)]);
        Some(Drafter { model: self.model_of(spot)?, auto_reads: auto.unwrap_or(false) })
    }

    /// The model that a rule asks; one is named `default`, or should be.
    fn model_of(&mut self, spot: &Spot<'_>) -> Option<Arc<str>> {
        match spot.field("model") {
            Some(field) => self.name(&field).map(Arc::from),
            None => Some(DEFAULT_MODEL.into()),
        }
    }

    fn when(&mut self, spot: &Spot<'_>) -> Option<FailureFilter> {
        if !self.object(spot, "`when`", &["error", "tool", "how", "passing"]) {
            return None;
        }
        let errors = self.patterns(spot, "error");
        for item in spot.field("error").iter().flat_map(one_or_several) {
            self.check_fault(&item);
        }
        let tools = self.patterns(spot, "tool");
        let mut how = Vec::new();
        for item in spot.field("how").iter().flat_map(one_or_several) {
            how.extend(self.how(&item));
        }
        let passing = spot.field("passing").and_then(|field| self.flag(&field));
        Some(FailureFilter { errors, tools, how, passing })
    }

    fn patterns(&mut self, spot: &Spot<'_>, key: &str) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        for item in spot.field(key).iter().flat_map(one_or_several) {
            let Some(text) = self.name(&item) else { continue };
            match Pattern::new(text) {
                Ok(pattern) => patterns.push(pattern),
                Err(bad) => {
                    let hint = "write a name, with `*` for any characters";
                    self.note(&item, Mistake::error(bad.to_string()).hint(hint));
                }
            }
        }
        patterns
    }

    /// A name that is nearly one of ours is most likely a slip; any other may be a tool's own.
    fn check_fault(&mut self, spot: &Spot<'_>) {
        let Some(name) = spot.node.text() else { return };
        if name.contains('*') || FAULTS.contains(&name) {
            return;
        }
        if let Some(near) = did_you_mean(name, FAULTS.iter().copied()) {
            let mistake = Mistake::warning(format!("Waypost reports no fault called `{name}`"));
            self.note(spot, mistake.hint(format!("did you mean `{near}`?")));
        }
    }

    fn how(&mut self, spot: &Spot<'_>) -> Option<CallProgress> {
        let word = self.text(spot)?;
        let known = [
            ("not_sent", CallProgress::NotSent),
            ("failed", CallProgress::Failed),
            ("unknown", CallProgress::Unknown),
        ];
        let found = known.iter().find(|(name, _)| *name == word).map(|(_, how)| *how);
        if found.is_none() {
            let mistake = Mistake::error(format!("`how` cannot be `{word}`"));
            let hint = listed(&known.map(|(name, _)| name), "or");
            self.note(spot, mistake.hint(format!("write {hint}")));
        }
        found
    }

    fn retry(&mut self, spot: &Spot<'_>) -> Option<Retry> {
        if !self.object(spot, "`retry`", &["times", "wait_ms", "factor", "jitter"]) {
            return None;
        }
        let usual = Retry::default();
        let most_ms = self.limits.rule_wait_ms_max;
        let times = self.whole(spot, "times", 1..=u64::from(RETRY_TIMES_MAX));
        let wait_ms = self.whole(spot, "wait_ms", 0..=most_ms);
        let factor = self.percent(spot, "factor", 100..=FACTOR_PERCENT_MAX);
        let jitter = self.percent(spot, "jitter", 0..=100);
        Some(Retry {
            times: times.map_or(usual.times, |times| times as u32),
            wait_ms: wait_ms.unwrap_or(usual.wait_ms),
            factor_percent: factor.unwrap_or(usual.factor_percent),
            jitter_percent: jitter.unwrap_or(usual.jitter_percent),
        })
    }

    fn whole(&mut self, spot: &Spot<'_>, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let field = spot.field(key)?;
        let found = field.node.whole().filter(|number| range.contains(number));
        if found.is_none() {
            let (least, most) = range.into_inner();
            let message = format!("`{key}` must be a whole number from {least} to {most}");
            self.note(&field, Mistake::error(message).hint("leave it out for the usual value"));
        }
        found
    }

    /// A number as percent: 1.5 is 150.
    fn percent(&mut self, spot: &Spot<'_>, key: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let field = spot.field(key)?;
        let number = match &field.node.kind {
            NodeKind::Number(number) => number.as_f64(),
            _ => None,
        };
        let percent = number.map(|number| (number * 100.0).round());
        let least = f64::from(*range.start());
        let most = f64::from(*range.end());
        let found = percent.filter(|percent| (least..=most).contains(percent));
        if found.is_none() {
            let least = least / 100.0;
            let most = most / 100.0;
            let message = format!("`{key}` must be a number from {least} to {most}");
            self.note(&field, Mistake::error(message).hint("leave it out for the usual value"));
        }
        found.map(|percent| percent as u32)
    }
}

fn ending(fails: bool) -> RuleAction {
    if fails { RuleAction::Fail } else { RuleAction::Ask }
}

/// The items of a list, or the one value that stands for a list of itself.
fn one_or_several<'n>(field: &Spot<'n>) -> Vec<Spot<'n>> {
    let whole = || Spot { node: field.node, pointer: field.pointer.clone() };
    match &field.node.kind {
        NodeKind::List(items) => {
            let spot = |(index, node)| Spot { node, pointer: format!("{}/{index}", field.pointer) };
            items.iter().enumerate().map(spot).collect()
        }
        _ => vec![whole()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> CheckResult<Vec<Rule>> {
        let limits = Limits::default();
        let node = Node::parse(text, &limits).unwrap();
        read_rules(&node, &Origin::default(), &limits)
    }

    fn wrong(text: &str) -> Vec<String> {
        let mistakes = match read(text) {
            Ok((_, warnings)) => warnings,
            Err(mistakes) => mistakes,
        };
        mistakes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_are_read_in_their_order() {
        let text = "- when: {error: [Timeout, Upstream*], tool: \"crm.*\", \
                    how: [not_sent, failed]}\n  \
                    retry: {times: 5, wait_ms: 100, factor: 1.5, jitter: 0}\n\
                    - {when: {passing: true}, retry: {}}\n\
                    - {plan: fixes/look}\n\
                    - {propose: {model: fast}}\n\
                    - {draft: {auto: reads}}\n\
                    - ask\n";
        let (rules, warnings) = read(text).unwrap();
        let pattern = |text: &str| Pattern::new(text).unwrap();
        let first = FailureFilter {
            errors: vec![pattern("Timeout"), pattern("Upstream*")],
            tools: vec![pattern("crm.*")],
            how: vec![CallProgress::NotSent, CallProgress::Failed],
            passing: None,
        };
        let retry = Retry { times: 5, wait_ms: 100, factor_percent: 150, jitter_percent: 0 };
        let second = FailureFilter { passing: Some(true), ..FailureFilter::default() };
        let expected = vec![
            Rule { when: first, act: RuleAction::Retry(retry) },
            Rule { when: second, act: RuleAction::Retry(Retry::default()) },
            Rule::always(RuleAction::Plan("fixes/look".into())),
            Rule::always(RuleAction::Propose("fast".into())),
            Rule::always(RuleAction::Draft(Drafter { model: "default".into(), auto_reads: true })),
            Rule::always(RuleAction::Ask),
        ];
        assert_eq!((rules, warnings), (expected, Vec::new()));
    }

    #[test]
    fn every_mistake_in_a_rule_is_told_with_its_place() {
        for (text, told) in [
            ("- maybe\n", "1:3: error: a rule cannot be `maybe`"),
            ("- ask\n- fail\n", "2:3: error: this rule is never reached"),
            ("- {rety: {}}\n", "1:4: error: unknown key `rety` in a rule"),
            ("- {when: {passing: true}}\n", "1:3: error: the rule does nothing"),
            ("- {retry: {}, plan: a/b}\n", "1:3: error: a rule does one thing"),
            ("- {propose: {model: ''}}\n", "error: this text cannot be a name"),
            ("- {propose: {modle: a}}\n", "unknown key `modle` in `propose`"),
            ("- {draft: {auto: writes}}\n", "`auto` cannot be `writes`"),
            ("- {retry: {times: 0}}\n", "`times` must be a whole number from 1 to 100"),
            ("- {retry: {wait_ms: -1}}\n", "`wait_ms` must be a whole number from 0"),
            ("- {retry: {factor: 0.5}}\n", "`factor` must be a number from 1 to 10"),
            ("- {retry: {jitter: 2}}\n", "`jitter` must be a number from 0 to 1"),
            ("- {when: {how: lost}, retry: {}}\n", "`how` cannot be `lost`"),
            ("- {when: {error: Timeot}, retry: {}}\n", "warning: Waypost reports no fault called"),
            ("- {when: {tool: \"a?\"}, retry: {}}\n", "`a?` has a `?`"),
            ("[]\n", "error: this list is empty"),
        ] {
            let found = wrong(text);
            assert!(found.iter().any(|one| one.contains(told)), "{text}: {found:?}");
        }
    }
}
