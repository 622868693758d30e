//! `waypost pipeline stats`: the share of the deterministic path, the count of each handler, and
//! the unhandled reasons, most frequent first.

use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::remote::client::Request;
use crate::remote::suggestions::{self, PIPELINES};
use crate::terminal::output::{Fields, counted, one_line};
use crate::terminal::table::table;
use kernel::definition::pipeline::OTHER_REASONS;
use wire::rest::{PipelineStats, ReasonCount};

/// So many reasons are worth a hint.
const HINTS_MAX: usize = 3;

pub(super) async fn run(context: &Context, name: &str) -> Result<Exit> {
    let client = context.client().await?;
    let asked = client.get(Request::to(&["pipelines", name, "stats"]));
    let body = suggestions::or_suggest(&client, PIPELINES, name, asked).await?;
    context.show(&body, |mut stats: PipelineStats| {
        stats.unknown.sort_by_key(|reason| std::cmp::Reverse(reason.count));
        context.output.text(&text(&stats))?;
        for hint in hints(&stats) {
            context.output.talk(&hint);
        }
        Ok(())
    })
}

fn text(stats: &PipelineStats) -> String {
    let mut fields = Fields::default();
    fields.add("pipeline", &*stats.pipeline);
    fields.add("cases", stats.total.to_string());
    fields.add("deterministic", shared(stats.deterministic, stats.total));
    fields.add("agent", shared(stats.agent, stats.total));
    let mut parts = vec![fields.text()];
    if !stats.handlers.is_empty() {
        let rows = stats.handlers.iter().map(|handler| {
            let last = handler.last_at.clone().unwrap_or_default();
            vec![handler.reason.clone(), handler.kind.clone(), handler.count.to_string(), last]
        });
        parts.push(table(&["handler", "type", "cases", "last"], rows));
    }
    if !stats.unknown.is_empty() {
        let rows = stats.unknown.iter().map(|unknown| {
            vec![unknown.reason.clone(), unknown.count.to_string(), unknown.last_at.clone()]
        });
        parts.push(table(&["unknown reason", "cases", "last"], rows));
    }
    parts.join("\n\n")
}

/// `3 (75.0 %)`.
fn shared(count: u64, total: u64) -> String {
    if total == 0 {
        return count.to_string();
    }
    let share = count as f64 / total as f64 * 100.0;
    format!("{count} ({share:.1} %)")
}

/// What would move cases off the model.
fn hints(stats: &PipelineStats) -> Vec<String> {
    let named = stats.unknown.iter().filter(|unknown| unknown.reason != OTHER_REASONS);
    let hint = |unknown: &ReasonCount| {
        let cases = counted(unknown.count, "case");
        let them = if unknown.count == 1 { "it" } else { "them" };
        let reason = one_line(&unknown.reason);
        format!("{cases} said `{reason}`: a handler would take {them} off the model")
    };
    named.take(HINTS_MAX).map(hint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stats(unknown: serde_json::Value) -> PipelineStats {
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
        let unknown = json!([{"reason": "LEI", "count": 1, "lastAt": "2026-11-15T12:00:01.000Z"}]);
        assert_eq!(
            text(&stats(unknown)),
            "pipeline       trade\n\
             cases          4\n\
             deterministic  3 (75.0 %)\n\
             agent          1 (25.0 %)\n\n\
             HANDLER       TYPE           CASES  LAST\n\
             Missing ISIN  lookup-enrich  3      2026-11-15T12:00:00.000Z\n\n\
             UNKNOWN REASON  CASES  LAST\n\
             LEI             1      2026-11-15T12:00:01.000Z"
        );
    }

    #[test]
    fn a_frequent_unknown_reason_gets_a_hint() {
        let unknown = json!([
            {"reason": "LEI", "count": 7, "lastAt": ""},
            {"reason": "(others)", "count": 5, "lastAt": ""},
            {"reason": "odd", "count": 1, "lastAt": ""},
        ]);
        assert_eq!(
            hints(&stats(unknown)),
            [
                "7 cases said `LEI`: a handler would take them off the model",
                "1 case said `odd`: a handler would take it off the model",
            ]
        );
    }

    #[test]
    fn without_cases_no_share_is_shown() {
        let none = json!({"pipeline": "trade", "total": 0, "deterministic": 0, "agent": 0,
            "share": null, "handlers": [], "unknown": []});
        let none: PipelineStats = serde_json::from_value(none).unwrap();
        let shown = text(&none);
        assert!(shown.ends_with("deterministic  0\nagent          0"), "{shown}");
        assert_eq!(hints(&none), Vec::<String>::new());
    }
}
