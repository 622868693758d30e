//! Files: aliases that multiply, nesting, keys and characters that two readers take differently.

use super::{Case, Kind, nested, numbered};

const fn yaml(name: &'static str, build: fn() -> Vec<u8>) -> Case {
    Case { name, kind: Kind::Yaml, build }
}

pub(super) const CASES: &[Case] = &[
    yaml("empty", Vec::new),
    yaml("only-blanks", || " \n\t\n".repeat(10_000).into()),
    yaml("only-comments", || "# nothing\n".repeat(50_000).into()),
    yaml("billion-laughs", || {
        let level = |at: usize| {
            let last = (b'a' + at as u8) as char;
            let next = (b'a' + at as u8 + 1) as char;
            let aliases = format!("*{last},").repeat(9);
            format!("{next}: &{next} [{aliases}*{last}]\n")
        };
        format!("a: &a [lol,lol,lol,lol]\n{}", numbered(20, level)).into()
    }),
    yaml("alias-of-itself", || b"a: &a [*a]\n".to_vec()),
    yaml("merge-keys", || {
        let level = |at: usize| format!("k{}: &k{} {{<<: [*k{at}, *k{at}]}}\n", at + 1, at + 1);
        format!("k0: &k0 {{x: 1}}\n{}", numbered(40, level)).into()
    }),
    yaml("many-anchors", || numbered(20_000, |at| format!("a{at}: &a{at} *a{at}\n")).into()),
    yaml("deep-lists", || nested(100_000, "[", "", "]").into()),
    yaml("deep-lists-that-stay-open", || "[".repeat(500_000).into()),
    yaml("deep-maps", || nested(50_000, "{a: ", "1", "}").into()),
    yaml("deep-dashes", || format!("{}x\n", "- ".repeat(50_000)).into()),
    yaml("deep-questions", || format!("{}x\n", "? ".repeat(50_000)).into()),
    yaml("deep-blocks", || {
        let level = |at: usize| format!("{}a:\n", " ".repeat(at));
        format!("{}{}b: 1\n", numbered(800, level), " ".repeat(800)).into()
    }),
    yaml("huge-key", || format!("{}: 1\n", "k".repeat(500_000)).into()),
    yaml("huge-quoted-key", || format!("\"{}\": 1\n", "\\u0041".repeat(100_000)).into()),
    yaml("many-keys", || numbered(60_000, |at| format!("k{at}: {at}\n")).into()),
    yaml("huge-line", || format!("planId: {}\n", "x".repeat(900_000)).into()),
    yaml("too-large", || format!("planId: a\n#{}\n", "x".repeat(1024 * 1024)).into()),
    yaml("key-twice", || b"planId: a\nplanId: b\nsteps: []\nsteps: []\n".to_vec()),
    yaml("tabs", || b"planId: a\nsteps:\n\t- id: x\n\t  type: final_response\n".to_vec()),
    yaml("nul", || b"planId: a\0b\nsteps: []\n".to_vec()),
    yaml("controls", || b"planId: \"\x1b[2J\x07\"\n\x0c\x0b\n".to_vec()),
    yaml("not-utf-8", || b"planId: \xff\xfe\xc3\x28\nsteps: []\n".to_vec()),
    yaml("utf-16", || b"\xff\xfep\0l\0a\0n\0I\0d\0:\0 \0a\0\n\0".to_vec()),
    yaml("byte-order-marks", || "\u{feff}\u{feff}planId: a\n".repeat(3).into()),
    yaml("odd-line-ends", || "planId: a\u{2028}steps: []\u{85}\rx: 1\r\n".as_bytes().to_vec()),
    yaml("tags", || {
        b"!!python/object/apply:os.system [id]\n--- !!binary AAAA\n--- !<tag:x> {}\n".to_vec()
    }),
    yaml("directives", || b"%YAML 9.9\n%TAG ! tag:x,2000:\n%NONE x\n---\nplanId: a\n".to_vec()),
    yaml("many-documents", || "---\nplanId: a\n".repeat(20_000).into()),
    yaml("quote-that-stays-open", || format!("planId: \"{}", "\\".repeat(99_999)).into()),
    yaml("block-of-blanks", || format!("planId: |9\n{}", " \n".repeat(100_000)).into()),
    yaml("folded-lines", || format!("planId: >-\n{}", "  x\n".repeat(100_000)).into()),
    yaml("keys-that-are-lists", || b"? [a, [b, {c: d}]]\n: {? {x: y} : z}\n".to_vec()),
    yaml("numbers-at-their-edges", || {
        format!("a: 0x{}\nb: .inf\nc: 1e400\nd: -0o7\ne: 12:30:45\n", "f".repeat(10_000)).into()
    }),
    yaml("other-values", || b"a: yes\nb: ~\nc: 2001-01-01\nd: !!null x\ne: =\n".to_vec()),
    yaml("json-with-keys-twice", || {
        format!("{{{}\"planId\":\"a\"}}", "\"planId\":\"b\",".repeat(20_000)).into()
    }),
    yaml("steps-of-wrong-types", || {
        b"planId: {}\ndescription: [1]\nstartStepId: 7\nparameters: x\nsteps: {id: [], type: {}}\n\
          refName: []\nllmConfigRef: {}\nhttp: 7\nschema: []\nllm: x\nlimits: []\nserver: 7\n"
            .to_vec()
    }),
    yaml("many-steps", || {
        let step =
            |at: usize| format!("  - {{id: s{at}, type: condition, nextStepId: s{}}}\n", at + 1);
        format!("planId: a\nstartStepId: s0\nsteps:\n{}", numbered(12_000, step)).into()
    }),
    yaml("loops-in-loops", || {
        let open = "{id: a, type: loop_over_items, collectionPath: {jsonPath: $.promptInput}, \
                    itemAlias: i, loopPlan: [";
        format!("planId: a\nsteps: [{}]\n", nested(200, open, "", "]}")).into()
    }),
    yaml("toml-tables", || numbered(20_000, |at| format!("[a.b{at}.c]\nd = 1\n")).into()),
    yaml("toml-deep", || format!("a = {}\n", nested(50_000, "[", "", "]")).into()),
    yaml("toml-dotted", || format!("{}a = 1\n", "a.".repeat(100_000)).into()),
];
