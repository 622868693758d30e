//! Reads the tools that a pipeline's agent may call.

use super::Form;
use crate::definition::plan::mistake::Mistake;
use crate::definition::plan::read::Spot;
use crate::definition::plan::source::NodeKind;
use crate::tool::rules::Pattern;

/// Types of tools, and the tools of the catalog that they stand for.
const TOOL_TYPES: &[(&str, &str)] =
    &[("publish-event", "events.publish"), ("raise-ticket", "case.raiseTicket")];

impl Form<'_> {
    pub(super) fn tools(&mut self, spot: &Spot<'_>) -> Vec<String> {
        let field = spot.field("tools");
        let list = field.as_ref().and_then(|field| self.reader.list(field));
        let mut tools: Vec<String> = Vec::new();
        let before = self.reader.mistakes.len();
        for item in list.unwrap_or_default() {
            let Some(tool) = self.tool(&item) else { continue };
            if tools.iter().any(|known| known == tool) {
                let mistake = Mistake::error(format!("tool `{tool}` is named twice"));
                self.reader.note(&item, mistake.hint("keep one of the two"));
                continue;
            }
            tools.push(tool.to_owned());
        }
        if tools.is_empty() && self.reader.mistakes.len() == before {
            let what = "the agent has no tools: it can do nothing about a case";
            let mistake = Mistake::warning(what).hint("name some: `tools: [{type: raise-ticket}]`");
            self.reader.note(field.as_ref().unwrap_or(spot), mistake);
        }
        tools
    }

    /// A tool by its name in the catalog.
    fn tool<'n>(&mut self, spot: &Spot<'n>) -> Option<&'n str> {
        let name = match &spot.node.kind {
            NodeKind::Text(name) => name,
            NodeKind::Map(_) => return self.described_tool(spot),
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::List(_) => {
                self.reader.wrong(spot, "the name of a tool, or `{type: ..}`");
                return None;
            }
        };
        self.tool_name(spot, name)
    }

    fn described_tool<'n>(&mut self, spot: &Spot<'n>) -> Option<&'n str> {
        self.reader.object(spot, "a tool", &["type", "name"]);
        match (spot.field("type"), spot.field("name")) {
            (Some(_), Some(name)) => {
                let mistake = Mistake::error("`type` and `name` both name the tool");
                self.reader.note(&name, mistake.hint("keep one of the two"));
                None
            }
            (None, Some(name)) => {
                let text = self.reader.text(&name)?;
                self.tool_name(&name, text)
            }
            (kind, None) => {
                let kind = kind.or_else(|| self.reader.need(spot, "type"))?;
                let word = self.reader.text(&kind)?;
                match TOOL_TYPES.iter().find(|(known, _)| *known == word) {
                    Some((_, tool)) => Some(*tool),
                    None => self.tool_name(&kind, word),
                }
            }
        }
    }

    /// Whether a text is one tool's name: that list is consent, so nothing in it stands for more.
    fn tool_name<'n>(&mut self, spot: &Spot<'_>, name: &'n str) -> Option<&'n str> {
        if Pattern::new(name).is_ok() && !name.contains('*') {
            return Some(name);
        }
        let mistake = Mistake::error(format!("`{name}` cannot be the name of a tool"));
        let hint = "name each tool by itself, as `waypost tool ls` does";
        self.reader.note(spot, mistake.hint(hint));
        None
    }
}
