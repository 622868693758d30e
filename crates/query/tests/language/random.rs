//! What holds for every query, over many random ones: a printed tree is read as the same tree, and
//! no text makes the parser panic.

use jiff::Timestamp;
use jiff::civil::Date;
use query::fault::Place;
use query::parser::{DEPTH_MAX, QUERY_BYTES_MAX, parse};
use query::tree::{
    Case, Comparison, Condition, Direction, Edge, Expand, Index, Literal, Membership, Operand,
    Path, Piece, Projection, Query, Segment, Sign,
};

const NAMES: &[&str] = &[
    "a", "status", "null", "text", "expand", "fields", "hasEdge", "x/y", "-d", "名前", "it's",
    "@x", "TRUE", "42", "_id",
];
const BARE: &[&str] = &[
    "open",
    "John Smith",
    "a  b",
    "x&y&z",
    "42",
    "-1.5",
    "true x",
    "nullish",
    "@",
    "O'Neil",
    "65a000000000000000000001",
    "AND",
    "Ünï",
    "2024-01-01 x",
    "expand",
];
const QUOTED: &[&str] = &[
    "", "x", "a\"b", "\"", "null", "2024-02-30", " x ", "*?", "$,{}[]()~cs", "a\\b", "\t", "&& ||",
];
const PIECES: &[&str] =
    &["a", "Anna ", " b", "a b", "100%", "2024-01-01T1", "@@x", "x&y", "null", "\""];
const MARKS: &[&str] = &[
    ":", ":!", ":<", ":>", ":<=", ":>=", ":~", ":^", ":!^", ":=[", "&&", "||", "!!", "(", ")", "[",
    "]", "{", "}", ",", "+", "-", "~cs", "~ci", "\"", "*", "?", "#", "##", "$", "${", "@@", " ",
    "\n", "&", "|", "!", "=", "%", "\\", "\u{0}", "é", "\u{1F600}", "text(", "expand(", "hasEdge(",
    "fields:[", "null", "true", "2024-01-01", "2024-01-01T10:00:00Z", "2024-01-01T1", "a", "b.c",
    "5", ".", "${x}", "\"q\"", "a:1", "a:{b:1}",
];

/// A sequence that looks random and is the same every time.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, end: usize) -> usize {
        let factor = 6_364_136_223_846_793_005;
        let step = 1_442_695_040_888_963_407;
        self.0 = self.0.wrapping_mul(factor).wrapping_add(step);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn is_one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn one_of(&mut self, all: &[&str]) -> String {
        all[self.below(all.len())].to_owned()
    }

    fn several<T>(&mut self, least: usize, most: usize, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        let count = least + self.below(most - least + 1);
        (0..count).map(|_| make(self)).collect()
    }

    fn query(&mut self) -> Query {
        let filter = match self.below(4) {
            0 => None,
            1 => Some(Condition::All(vec![Condition::Text(self.words()), self.leaf()])),
            _ => Some(self.condition(3)),
        };
        let expands = self.several(0, 2, Self::expand);
        let fields = self.is_one_in(3).then(|| self.projection());
        Query { filter, expands, fields }
    }

    fn condition(&mut self, depth: usize) -> Condition {
        if depth == 0 {
            return self.leaf();
        }
        match self.below(6) {
            0 => {
                let parts = self.several(2, 4, |random| random.condition(depth - 1));
                let is_all = |part: &Condition| matches!(part, Condition::All(_));
                if parts.iter().any(is_all) {
                    Condition::Any(without_any(parts))
                } else {
                    Condition::All(parts)
                }
            }
            1 => Condition::Any(without_any(
                self.several(2, 4, |random| random.condition(depth - 1)),
            )),
            2 => Condition::Not(Box::new(self.condition(depth - 1))),
            3 => Condition::Element(self.path(), Box::new(self.condition(depth - 1))),
            _ => self.leaf(),
        }
    }

    fn leaf(&mut self) -> Condition {
        match self.below(8) {
            0 => Condition::Exists(self.path()),
            1 => Condition::OneOf(Membership {
                path: self.path(),
                negated: self.is_one_in(2),
                operands: self.several(0, 4, Self::operand),
            }),
            2 => Condition::Edge(Edge {
                direction: [Direction::Outgoing, Direction::Incoming][self.below(2)],
                predicate: self.words(),
                other: self.words(),
            }),
            _ => self.comparison(),
        }
    }

    fn comparison(&mut self) -> Condition {
        let operand = self.operand();
        let signs = [
            Sign::Equal,
            Sign::NotEqual,
            Sign::Less,
            Sign::Greater,
            Sign::LessOrEqual,
            Sign::GreaterOrEqual,
        ];
        let (signs, has_case) = match operand.literal {
            Literal::Null | Literal::Bool(_) | Literal::Reference(_) => (&signs[..2], false),
            Literal::Pattern(_) => (&signs[..2], true),
            Literal::Bare(_) | Literal::Quoted(_) | Literal::Variable(_) => (&signs[..], true),
            _ => (&signs[..], false),
        };
        let sign = signs[self.below(signs.len())];
        let case = if has_case && self.is_one_in(3) { Case::Exact } else { Case::Folded };
        Condition::Compare(Comparison { path: self.path(), sign, operand, case })
    }

    fn operand(&mut self) -> Operand {
        let decimals = [0.0, 5.0, -19.9, 1e20, 1e-7, 0.1];
        let literal = match self.below(11) {
            0 => Literal::Quoted(self.one_of(QUOTED)),
            1 => Literal::Whole([0, -1, i64::MIN, i64::MAX][self.below(4)]),
            2 => Literal::Decimal(decimals[self.below(decimals.len())]),
            3 => Literal::Date(
                Date::new(2024, 2, 1 + i8::try_from(self.below(29)).unwrap()).unwrap(),
            ),
            4 => {
                let second = i64::try_from(self.below(4_000_000_000)).unwrap();
                let nanosecond = [0, 500_000_000, 1][self.below(3)];
                Literal::Moment(Timestamp::new(second, nanosecond).unwrap())
            }
            5 => Literal::Variable("owner_1".to_owned()),
            6 => Literal::Reference("65A00000000000000000000f".to_owned()),
            7 => Literal::Null,
            8 => Literal::Bool(self.is_one_in(2)),
            9 => Literal::Pattern(self.pattern()),
            _ => Literal::Bare(self.one_of(BARE)),
        };
        placed(literal)
    }

    fn pattern(&mut self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for _ in 0..=self.below(5) {
            let is_text = matches!(pieces.last(), Some(Piece::Text(_)));
            let is_any = matches!(pieces.last(), Some(Piece::Any));
            match self.below(3) {
                0 if !is_text => pieces.push(Piece::Text(self.one_of(PIECES))),
                1 if !is_any => pieces.push(Piece::Any),
                _ => pieces.push(Piece::One),
            }
        }
        let is_text = |piece: &Piece| matches!(piece, Piece::Text(_));
        if pieces.iter().all(is_text) {
            pieces.push(Piece::Any);
        }
        pieces
    }

    fn words(&mut self) -> Operand {
        placed(match self.below(3) {
            0 => Literal::Quoted(self.one_of(&["x", "a\"b", "two words"])),
            1 => Literal::Variable("words".to_owned()),
            _ => Literal::Bare(self.one_of(&["x", "null", "2024-02-30", "two words"])),
        })
    }

    fn path(&mut self) -> Path {
        Path { segments: self.several(1, 3, Self::segment) }
    }

    fn segment(&mut self) -> Segment {
        let index = match self.below(6) {
            0 => Index::Each,
            1 => Index::At(u32::MAX),
            _ => Index::Unsaid,
        };
        Segment { name: self.one_of(NAMES), index, place: Place::START }
    }

    fn expand(&mut self) -> Expand {
        let filter = self.is_one_in(2).then(|| self.condition(2));
        let fields = self.is_one_in(2).then(|| self.projection());
        Expand { path: self.path(), filter, fields, place: Place::START }
    }

    fn projection(&mut self) -> Projection {
        let include = self.several(0, 2, Self::path);
        let least = usize::from(include.is_empty());
        let exclude = self.several(least, 2, Self::path);
        Projection { include, exclude }
    }
}

/// What stands in `Any` is no `Any`.
fn without_any(parts: Vec<Condition>) -> Vec<Condition> {
    let negated = |part: Condition| match part {
        Condition::Any(_) => Condition::Not(Box::new(part)),
        other => other,
    };
    parts.into_iter().map(negated).collect()
}

fn placed(literal: Literal) -> Operand {
    Operand { literal, place: Place::START }
}

#[test]
fn a_printed_tree_is_read_as_the_same_tree() {
    let mut random = Sequence(1);
    for _ in 0..20_000 {
        let tree = random.query();
        let printed = tree.to_string();
        if printed.len() <= QUERY_BYTES_MAX {
            assert_eq!(parse(&printed).as_ref(), Ok(&tree), "{printed}");
        }
    }
}

#[test]
fn no_text_makes_the_parser_panic_and_what_it_reads_it_reads_whole() {
    let mut random = Sequence(2);
    for _ in 0..50_000 {
        let text: String = random.several(0, 12, |random| random.one_of(MARKS)).concat();
        match parse(&text) {
            Ok(tree) => {
                let printed = tree.to_string();
                assert_eq!(parse(&printed).as_ref(), Ok(&tree), "{text:?}: {printed:?}");
                assert_eq!(printed.is_empty(), text.trim().is_empty(), "{text:?}: {printed:?}");
            }
            Err(fault) => {
                assert!(fault.position <= text.chars().count(), "{text:?}: {fault:?}");
                let before: String = text.chars().take(fault.position).collect();
                let line = 1 + before.matches('\n').count();
                let column = 1 + before.chars().rev().take_while(|char| *char != '\n').count();
                assert_eq!((fault.line, fault.column), (line, column), "{text:?}: {fault:?}");
            }
        }
    }
}

#[test]
fn a_text_cut_anywhere_is_whole_or_a_fault() {
    let whole = "status:open && !!(due:<2024-02-01 || lines:{sku:^[\"A\",b*]}) && fields:[+code]";
    for end in 0..whole.len() {
        if let Ok(tree) = parse(&whole[..end]) {
            let printed = tree.to_string();
            assert_eq!(parse(&printed), Ok(tree), "{}", &whole[..end]);
        }
    }
}

#[test]
fn brackets_without_end_are_a_fault() {
    for bracket in ["(", "!!", "a:{", "[", "a:^[", "expand(", "text(", "{", "!!("] {
        let text = bracket.repeat(QUERY_BYTES_MAX / bracket.len());
        assert!(parse(&text).is_err(), "{bracket}");
    }
    let nested = |depth: usize| format!("{}a:1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(parse(&nested(DEPTH_MAX)).is_ok());
    let fault = parse(&nested(DEPTH_MAX + 1)).unwrap_err();
    assert_eq!(fault.message, "conditions nest deeper than 32 levels");
    assert_eq!(fault.position, DEPTH_MAX + 1);
}
