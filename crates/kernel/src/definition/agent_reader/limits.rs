//! Reads the limits of an agent: counts, dollars and times. Prices of models are read as dollars by
//! the same function.

use super::Form;
use crate::definition::agent::AgentLimits;
use crate::definition::plan::mistake::Mistake;
use crate::definition::plan::read::{Spot, duration_ms};
use crate::definition::plan::source::NodeKind;

pub(super) const KEYS: &[&str] = &[
    "steps", "tokens", "money", "time", "repeats", "compact_tokens", "compactTokens", "keep_turns",
    "keepTurns",
];

const MICROS: u64 = 1_000_000;

impl Form<'_> {
    pub(super) fn limits(&mut self, spot: &Spot<'_>, defaults: AgentLimits) -> AgentLimits {
        let Some(field) = self.field(spot, "limits") else { return defaults };
        if !self.reader.object(&field, "`limits`", KEYS) {
            return defaults;
        }
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let steps = self.count(&field, &["steps"]).map(small);
        let repeats = self.count(&field, &["repeats"]).map(small);
        let keep_turns = self.count(&field, &["keep_turns", "keepTurns"]).map(small);
        AgentLimits {
            steps: steps.unwrap_or(defaults.steps),
            tokens: self.count(&field, &["tokens"]),
            cost_micros: self.money(&field),
            time_ms: self.time(&field),
            repeats: repeats.unwrap_or(defaults.repeats),
            compact_tokens: self.count(&field, &["compact_tokens", "compactTokens"]),
            keep_turns: keep_turns.unwrap_or(defaults.keep_turns),
        }
    }

    /// A whole number from 1 on. A key may have two spellings: `keep_turns` and `keepTurns`.
    fn count(&mut self, spot: &Spot<'_>, spellings: &[&str]) -> Option<u64> {
        let mut there = spellings.iter().filter_map(|key| Some((key, spot.field(key)?)));
        let (key, field) = there.next()?;
        if let Some((_, twin)) = there.next() {
            let mistake = Mistake::error(format!("`{key}` is given twice, in two spellings"));
            self.reader.note(&twin, mistake.hint("keep one of the two"));
        }
        let number = field.node.whole().filter(|number| *number > 0);
        if number.is_none() {
            let mistake = Mistake::error(format!("`{key}` must be a whole number from 1 on"));
            self.reader.note(&field, mistake.hint("leave it out for the default"));
        }
        number
    }

    fn money(&mut self, spot: &Spot<'_>) -> Option<u64> {
        let field = spot.field("money")?;
        let text = match &field.node.kind {
            NodeKind::Number(number) => number.to_string(),
            NodeKind::Text(text) => text.clone(),
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::List(_) | NodeKind::Map(_) => {
                self.reader.wrong(&field, "an amount in dollars");
                return None;
            }
        };
        let micros = micros_of_dollars(&text).filter(|micros| *micros > 0);
        if micros.is_none() {
            let mistake = Mistake::error(format!("`money` cannot be `{text}`"));
            let hint = "write dollars above 0, with up to six digits after the point: `0.50`";
            self.reader.note(&field, mistake.hint(hint));
        }
        micros
    }

    fn time(&mut self, spot: &Spot<'_>) -> Option<u64> {
        let field = spot.field("time")?;
        let text = self.reader.text(&field)?;
        let ms = duration_ms(text);
        if ms.is_none() {
            let mistake = Mistake::error(format!("`time` cannot be `{text}`"));
            let hint = "write a whole number from 1 and `s`, `m`, `h` or `d`, such as `5m`";
            self.reader.note(&field, mistake.hint(hint));
        }
        ms
    }
}

/// Dollars, `0.50`, `$2` or `1.234567`, in millionths of one.
pub fn micros_of_dollars(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_prefix('$').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let has_point = text.contains('.');
    let is_written = !whole.is_empty() && (!has_point || (1..=6).contains(&fraction.len()));
    if !is_written || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let micros = format!("{fraction:0<6}").parse::<u64>().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(MICROS)?.checked_add(micros)
}
