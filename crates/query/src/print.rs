//! A tree as a text that parses to the same tree: one spelling for everything.

use crate::dates::begins_like_moment;
use crate::lexer::is_bare;
use crate::tree::{
    Case, Comparison, Condition, Direction, Edge, Expand, Index, Literal, Membership, Operand,
    Path, Piece, Projection, Query,
};
use std::fmt::{self, Display, Formatter, Write};

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        let has_clauses = !self.expands.is_empty() || self.fields.is_some();
        match &self.filter {
            Some(filter) if has_clauses => parts.push(grouped(filter, is_any)),
            Some(filter) => parts.push(filter.to_string()),
            None => {}
        }
        parts.extend(self.expands.iter().map(Expand::to_string));
        parts.extend(self.fields.iter().map(Projection::to_string));
        f.write_str(&parts.join(" && "))
    }
}

fn is_any(condition: &Condition) -> bool {
    matches!(condition, Condition::Any(_))
}

fn is_joined(condition: &Condition) -> bool {
    matches!(condition, Condition::Any(_) | Condition::All(_))
}

fn grouped(condition: &Condition, needs_group: fn(&Condition) -> bool) -> String {
    if needs_group(condition) { format!("({condition})") } else { condition.to_string() }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Condition::All(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| grouped(part, is_any)).collect();
                f.write_str(&parts.join(" && "))
            }
            Condition::Any(parts) => {
                let parts: Vec<String> = parts.iter().map(Condition::to_string).collect();
                f.write_str(&parts.join(" || "))
            }
            Condition::Not(inner) => write!(f, "!!{}", grouped(inner, is_joined)),
            Condition::Compare(comparison) => comparison.fmt(f),
            Condition::OneOf(membership) => membership.fmt(f),
            Condition::Exists(path) => write!(f, "{path}:~"),
            Condition::Element(path, inner) => write!(f, "{path}:{{{inner}}}"),
            Condition::Text(words) => write!(f, "text({words})"),
            Condition::Edge(edge) => edge.fmt(f),
        }
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.path, self.sign.text(), self.operand)?;
        match self.case {
            Case::Folded => Ok(()),
            Case::Exact => f.write_str("~cs"),
        }
    }
}

impl Display for Membership {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.negated { ":!^" } else { ":^" };
        let operands: Vec<String> = self.operands.iter().map(Operand::to_string).collect();
        write!(f, "{}{sign}[{}]", self.path, operands.join(","))
    }
}

impl Display for Edge {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = match self.direction {
            Direction::Outgoing => "hasEdge",
            Direction::Incoming => "hasIncomingEdge",
        };
        write!(f, "{name}({}, {})", self.predicate, self.other)
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.literal.fmt(f)
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Bare(text) => f.write_str(text),
            Literal::Quoted(text) => f.write_str(&quoted(text)),
            Literal::Whole(number) => write!(f, "#{number}"),
            Literal::Decimal(number) => write!(f, "##{number}"),
            Literal::Date(date) => write!(f, "{date}"),
            Literal::Moment(moment) => write!(f, "{moment}"),
            Literal::Variable(name) => write!(f, "${{{name}}}"),
            Literal::Reference(id) => write!(f, "@@{id}"),
            Literal::Null => f.write_str("null"),
            Literal::Bool(value) => write!(f, "{value}"),
            Literal::Pattern(pieces) => pieces.iter().try_for_each(|piece| match piece {
                Piece::Text(text) if needs_quotes(text) => f.write_str(&quoted(text)),
                Piece::Text(text) => f.write_str(text),
                Piece::Any => f.write_char('*'),
                Piece::One => f.write_char('?'),
            }),
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Whether a part of a pattern would be read in another way without quotes.
fn needs_quotes(text: &str) -> bool {
    let is_plain = text.chars().all(|char| is_bare(char) || char == ' ');
    let is_trimmed = !text.starts_with(' ') && !text.ends_with(' ');
    !is_plain || !is_trimmed || text.starts_with('@') || begins_like_moment(text)
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (place, segment) in self.segments.iter().enumerate() {
            if place > 0 {
                f.write_char('.')?;
            }
            f.write_str(&segment.name)?;
            match segment.index {
                Index::Unsaid => {}
                Index::Each => f.write_str("[*]")?,
                Index::At(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl Display for Expand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "expand({}", self.path)?;
        if let Some(filter) = &self.filter {
            write!(f, ", {filter}")?;
        }
        if let Some(fields) = &self.fields {
            write!(f, ", {fields}")?;
        }
        f.write_char(')')
    }
}

impl Display for Projection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let include = self.include.iter().map(|path| format!("+{path}"));
        let exclude = self.exclude.iter().map(|path| format!("-{path}"));
        let paths: Vec<String> = include.chain(exclude).collect();
        write!(f, "fields:[{}]", paths.join(","))
    }
}
