//! `waypost pipeline stats`: the share of the deterministic path, what each handler took, and the
//! reasons that no one handles, the most frequent first.

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::remote::client::Request;
use crate::remote::near::{self, PIPELINES};
use crate::terminal::output::{Fields, Table, one_line};
use kernel::definition::pipeline::OTHER_REASONS;
use serde::Deserialize;

/// What the server counted.
#[derive(Debug, Deserialize)]
struct Stats {
    pipeline: String,
    total: u64,
    deterministic: u64,
    agent: u64,
    handlers: Vec<Handler>,
    unknown: Vec<Unknown>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Handler {
    reason: String,
    #[serde(rename = "type")]
    kind: String,
    count: u64,
    #[serde(default)]
    last_at: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Unknown {
    reason: String,
    count: u64,
    #[serde(default)]
    last_at: Option<String>,
}

/// So many reasons are worth a hint.
const HINTS_MAX: usize = 3;

pub(super) async fn run(context: &Context, name: &str) -> Result<Exit, Failure> {
    let client = context.client().await?;
    let body = client.get(Request::to(&["pipelines", name, "stats"])).await;
    let body = near::or_suggest(&client, PIPELINES, name, body).await?;
    context.show(&body, |mut stats: Stats| {
        stats.unknown.sort_by_key(|reason| std::cmp::Reverse(reason.count));
        context.output.text(&stats.text())?;
        for hint in stats.hints() {
            context.output.talk(&hint);
        }
        Ok(())
    })
}

impl Stats {
    fn text(&self) -> String {
        let mut fields = Fields::default();
        fields.add("pipeline", &*self.pipeline);
        fields.add("cases", self.total.to_string());
        fields.add("deterministic", self.shared(self.deterministic));
        fields.add("agent", self.shared(self.agent));
        let mut parts = vec![fields.text()];
        if !self.handlers.is_empty() {
            let mut table = Table::new(&["handler", "type", "cases", "last"]);
            for handler in &self.handlers {
                let last = handler.last_at.clone().unwrap_or_default();
                let count = handler.count.to_string();
                table.row(vec![handler.reason.clone(), handler.kind.clone(), count, last]);
            }
            parts.push(table.text());
        }
        if !self.unknown.is_empty() {
            let mut table = Table::new(&["unknown reason", "cases", "last"]);
            for unknown in &self.unknown {
                let last = unknown.last_at.clone().unwrap_or_default();
                table.row(vec![unknown.reason.clone(), unknown.count.to_string(), last]);
            }
            parts.push(table.text());
        }
        parts.join("\n\n")
    }

    /// `3 (75.0 %)`.
    fn shared(&self, count: u64) -> String {
        if self.total == 0 {
            return count.to_string();
        }
        let share = count as f64 / self.total as f64 * 100.0;
        format!("{count} ({share:.1} %)")
    }

    /// What would move cases off the model.
    fn hints(&self) -> Vec<String> {
        let named = self.unknown.iter().filter(|unknown| unknown.reason != OTHER_REASONS);
        let hint = |unknown: &Unknown| {
            let (cases, them) = if unknown.count == 1 { ("case", "it") } else { ("cases", "them") };
            let reason = one_line(&unknown.reason);
            let count = unknown.count;
            format!("{count} {cases} said `{reason}`: a handler would take {them} off the model")
        };
        named.take(HINTS_MAX).map(hint).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stats(unknown: serde_json::Value) -> Stats {
        serde_json::from_value(json!({
            "pipeline": "trade", "total": 4, "deterministic": 3, "agent": 1, "share": 0.75,
            "handlers": [{"reason": "Missing ISIN", "type": "lookup-enrich", "count": 3,
                "lastAt": "2026-11-15T12:00:00.000Z"}],
            "unknown": unknown,
        }))
        .unwrap()
    }

    #[test]
    fn shares_and_reasons_are_shown() {
        let text = stats(json!([{"reason": "LEI", "count": 1}])).text();
        assert_eq!(
            text,
            "pipeline       trade\n\
             cases          4\n\
             deterministic  3 (75.0 %)\n\
             agent          1 (25.0 %)\n\n\
             HANDLER       TYPE           CASES  LAST\n\
             Missing ISIN  lookup-enrich  3      2026-11-15T12:00:00.000Z\n\n\
             UNKNOWN REASON  CASES  LAST\n\
             LEI             1"
        );
    }

    #[test]
    fn a_handler_is_worth_a_hint() {
        let hints = stats(json!([
            {"reason": "LEI", "count": 7}, {"reason": "(others)", "count": 5},
            {"reason": "odd", "count": 1},
        ]))
        .hints();
        assert_eq!(
            hints,
            [
                "7 cases said `LEI`: a handler would take them off the model",
                "1 case said `odd`: a handler would take it off the model",
            ]
        );
    }

    #[test]
    fn nothing_has_no_share() {
        let none = json!({"pipeline": "trade", "total": 0, "deterministic": 0, "agent": 0,
            "share": null, "handlers": [], "unknown": []});
        let none: Stats = serde_json::from_value(none).unwrap();
        assert!(none.text().ends_with("deterministic  0\nagent          0"), "{}", none.text());
        assert_eq!(none.hints(), Vec::<String>::new());
    }
}
