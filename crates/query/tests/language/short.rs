//! A tree in a short form, in which every difference shows.

use query::tree::{
    Case, Condition, Direction, Expand, Literal, Operand, Piece, Projection, Query, Sign,
};

pub fn short(query: &Query) -> String {
    let mut parts: Vec<String> = query.filter.iter().map(condition).collect();
    parts.extend(query.expands.iter().map(expand));
    parts.extend(query.fields.iter().map(fields));
    parts.join(" ")
}

fn condition(tree: &Condition) -> String {
    match tree {
        Condition::All(parts) => list("and", parts.iter().map(condition)),
        Condition::Any(parts) => list("or", parts.iter().map(condition)),
        Condition::Not(inner) => list("not", [condition(inner)]),
        Condition::Compare(comparison) => {
            let sign = match comparison.sign {
                Sign::Equal => "eq",
                Sign::NotEqual => "ne",
                Sign::Less => "lt",
                Sign::Greater => "gt",
                Sign::LessOrEqual => "le",
                Sign::GreaterOrEqual => "ge",
            };
            let mut parts = vec![comparison.path.to_string(), operand(&comparison.operand)];
            if comparison.case == Case::Exact {
                parts.push("cs".to_owned());
            }
            list(sign, parts)
        }
        Condition::OneOf(membership) => {
            let word = if membership.negated { "out" } else { "in" };
            let operands = membership.operands.iter().map(operand);
            list(word, [membership.path.to_string()].into_iter().chain(operands))
        }
        Condition::Exists(path) => list("has", [path.to_string()]),
        Condition::Element(path, inner) => list("elem", [path.to_string(), condition(inner)]),
        Condition::Text(words) => list("text", [operand(words)]),
        Condition::Edge(edge) => {
            let word = match edge.direction {
                Direction::Outgoing => "edge",
                Direction::Incoming => "edge-in",
            };
            list(word, [operand(&edge.predicate), operand(&edge.other)])
        }
    }
}

fn operand(operand: &Operand) -> String {
    match &operand.literal {
        Literal::Bare(text) => format!("bare({text})"),
        Literal::Quoted(text) => format!("quoted({text})"),
        Literal::Whole(number) => format!("whole({number})"),
        Literal::Decimal(number) => format!("decimal({number})"),
        Literal::Date(date) => format!("date({date})"),
        Literal::Moment(moment) => format!("moment({moment})"),
        Literal::Variable(name) => format!("variable({name})"),
        Literal::Reference(id) => format!("reference({id})"),
        Literal::Null => "null".to_owned(),
        Literal::Bool(value) => format!("bool({value})"),
        Literal::Pattern(pieces) => {
            let pieces: Vec<String> = pieces.iter().map(piece).collect();
            format!("pattern({})", pieces.join(" "))
        }
    }
}

fn piece(piece: &Piece) -> String {
    match piece {
        Piece::Text(text) => format!("\"{text}\""),
        Piece::Any => "*".to_owned(),
        Piece::One => "?".to_owned(),
    }
}

fn expand(expand: &Expand) -> String {
    let filter = expand.filter.iter().map(condition);
    let projection = expand.fields.iter().map(fields);
    list("expand", [expand.path.to_string()].into_iter().chain(filter).chain(projection))
}

fn fields(projection: &Projection) -> String {
    let include = projection.include.iter().map(|path| format!("+{path}"));
    let exclude = projection.exclude.iter().map(|path| format!("-{path}"));
    list("fields", include.chain(exclude))
}

fn list(word: &str, parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().collect();
    format!("({word} {})", parts.join(" "))
}
