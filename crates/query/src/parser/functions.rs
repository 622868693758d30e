//! `expand(..)`, `fields:[..]`, `text(..)` and the functions of edges.

use super::{
    Condition, Direction, Expand, FIELD, LIST_VALUES_MAX, Mark, Parser, Path, Projection, Query,
    QueryFault, TokenKind, joined,
};
use crate::tree::{Edge, Literal, Operand, Piece};

impl Parser {
    /// `expand(..)` or `fields:[..]`, one of which begins here.
    pub(super) fn take_clause(&mut self) -> Result<(), QueryFault> {
        let place = self.place();
        if self.is_fields() {
            if self.fields.is_some() {
                return Err(QueryFault::at(place, "there is a second `fields:[..]`")
                    .hint("write all fields into one list"));
            }
            self.fields = Some(self.projection()?);
            return Ok(());
        }
        let expand = self.nested(Self::expand)?;
        self.expands.push(expand);
        Ok(())
    }

    fn expand(&mut self) -> Result<Expand, QueryFault> {
        let place = self.place();
        self.open();
        let path = self.path(FIELD)?;
        let mut conditions = Vec::new();
        let mut fields = None;
        while fields.is_none() && self.eat(Mark::Comma) {
            if self.is_fields() {
                fields = Some(self.projection()?);
            } else {
                conditions.extend(self.any()?);
            }
        }
        if !self.eat(Mark::Close) {
            return Err(self.unjoined("`)`"));
        }
        Ok(Expand { path, filter: joined(conditions, Condition::All), fields, place })
    }

    /// The name of a function and its parenthesis, which were looked at.
    fn open(&mut self) {
        self.advance();
        self.advance();
    }

    fn projection(&mut self) -> Result<Projection, QueryFault> {
        let place = self.place();
        self.advance();
        self.advance();
        self.require(Mark::ListOpen)?;
        let mut include = Vec::new();
        let mut exclude = Vec::new();
        loop {
            match self.excluded()? {
                Some(path) => exclude.push(path),
                None => {
                    self.eat(Mark::Plus);
                    include.push(self.path(FIELD)?);
                }
            }
            if self.eat(Mark::ListClose) {
                return Ok(Projection { include, exclude });
            }
            if !self.eat(Mark::Comma) {
                return Err(self.unexpected(&["`,`", "`]`"]));
            }
            if include.len() + exclude.len() == LIST_VALUES_MAX {
                let message = format!("there are more than {} fields", LIST_VALUES_MAX);
                return Err(QueryFault::at(place, message));
            }
        }
    }

    /// A path behind `-`, which belongs to the text of its token.
    fn excluded(&mut self) -> Result<Option<Path>, QueryFault> {
        let TokenKind::Text(written) = &self.peek().kind else {
            return Ok(None);
        };
        let Some(name) = written.bare().and_then(|text| text.strip_prefix('-')) else {
            return Ok(None);
        };
        let trimmed = name.trim_start().to_owned();
        let place = self.place().further(1 + name.len() - trimmed.len());
        self.path_after(&trimmed, place).map(Some)
    }

    pub(super) fn text(&mut self) -> Result<Condition, QueryFault> {
        self.open();
        let words = self.word()?;
        if let Literal::Quoted(text) = &words.literal
            && text.trim().is_empty()
        {
            return Err(QueryFault::at(words.place, "`text(..)` has no words to look for"));
        }
        self.require(Mark::Close)?;
        Ok(Condition::Text(words))
    }

    pub(super) fn edge(&mut self, direction: Direction) -> Result<Condition, QueryFault> {
        self.open();
        let predicate = self.word()?;
        self.require(Mark::Comma)?;
        let place = self.place();
        let reference = match &self.peek().kind {
            TokenKind::Reference(id) => Some(Literal::Reference(id.clone())),
            _ => None,
        };
        let other = match reference {
            Some(literal) => {
                self.advance();
                Operand { literal, place }
            }
            None => self.word()?,
        };
        self.require(Mark::Close)?;
        Ok(Condition::Edge(Edge { direction, predicate, other }))
    }

    /// A text or a variable; no word has a meaning of its own here.
    fn word(&mut self) -> Result<Operand, QueryFault> {
        let place = self.place();
        let literal = match &self.peek().kind {
            TokenKind::Variable(name) => Some(Literal::Variable(name.clone())),
            TokenKind::Text(written) => match written.pieces.as_slice() {
                [Piece::Text(text)] if written.has_quotes => Some(Literal::Quoted(text.clone())),
                [Piece::Text(text)] => Some(Literal::Bare(text.clone())),
                _ => None,
            },
            _ => None,
        };
        let literal = literal.ok_or_else(|| self.unexpected(&["a text", "a variable"]))?;
        self.advance();
        Ok(Operand { literal, place })
    }
}

/// `text(..)` looks at whole records: it stands once, and only beside all other conditions.
pub(super) fn check_texts(query: &Query) -> Result<(), QueryFault> {
    let mut found = false;
    if let Some(filter) = &query.filter {
        check_text(filter, None, &mut found)?;
    }
    let filters = query.expands.iter().filter_map(|expand| expand.filter.as_ref());
    for filter in filters {
        check_text(filter, Some("expand(..)"), &mut found)?;
    }
    Ok(())
}

fn check_text(
    condition: &Condition,
    within: Option<&'static str>,
    found: &mut bool,
) -> Result<(), QueryFault> {
    match condition {
        Condition::All(parts) => parts.iter().try_for_each(|part| check_text(part, within, found)),
        Condition::Any(parts) => {
            let within = within.or(Some("||"));
            parts.iter().try_for_each(|part| check_text(part, within, found))
        }
        Condition::Not(inner) => check_text(inner, within.or(Some("!!")), found),
        Condition::Element(_, inner) => check_text(inner, within.or(Some("{..}")), found),
        Condition::Text(words) => {
            if let Some(within) = within {
                let message = format!("`text(..)` may not stand within `{within}`");
                return Err(QueryFault::at(words.place, message));
            }
            if *found {
                return Err(QueryFault::at(words.place, "there is a second `text(..)`")
                    .hint("write all words into one text"));
            }
            *found = true;
            Ok(())
        }
        Condition::Compare(_) | Condition::OneOf(_) | Condition::Exists(_) | Condition::Edge(_) => {
            Ok(())
        }
    }
}
