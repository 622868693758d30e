//! Tests of templates: what they can do, and that no text can make them do too much.

use super::meter::{RENDERED_BYTES_MAX, WORK_MAX};
use super::simple::Simple;
use super::*;
use serde_json::json;

fn root() -> Map<String, Value> {
    let Value::Object(root) = json!({
        "context": {
            "sum": 3,
            "name": "Ann Lee",
            "tags": ["b", "a", "b"],
            "rows": [
                {"id": 1, "kind": "x", "cost": 1.5},
                {"id": 2, "kind": "y", "cost": 2},
                {"id": 3, "kind": "x", "cost": 3},
            ],
            "by": {"b": 2, "a": 1},
            "text": "one\ntwo",
            "tree": [1, [2, [3]]],
        },
        "promptInput": {"who": "Ann"},
    }) else {
        unreachable!()
    };
    root
}

fn render(source: &str) -> Result<String, String> {
    Template::parse(source)?.render(root())
}

/// A root with one large text and a list of 2,000 numbers.
fn large(bytes: usize) -> Map<String, Value> {
    let numbers: Vec<u32> = (0..2_000).collect();
    Map::from_iter([("context".to_owned(), json!({"big": "x".repeat(bytes), "numbers": numbers}))])
}

fn work() -> String {
    format!("it handles more than {WORK_MAX} bytes")
}

fn length() -> String {
    format!("the text becomes longer than {RENDERED_BYTES_MAX} bytes")
}

/// The error of a text must contain these words, whichever way it goes in.
fn refused(source: &str, words: &str) {
    let short: String = source.chars().take(60).collect();
    let long_line = source.len() <= 256 * 1024 && source.split('\n').any(|it| it.len() > 65_000);
    let words = if long_line { "has at most 65000 bytes" } else { words };
    let found = [
        Template::parse(source).map(drop),
        names(source).map(drop),
        fill(source, Map::new()).map(drop),
    ];
    for error in found.map(|found| found.expect_err(&short)) {
        assert!(error.contains(words), "{short}: {error}");
    }
}

#[test]
fn texts_are_filled_and_plain_ones_stay() {
    assert_eq!(render("plain {text}").unwrap(), "plain {text}");
    assert_eq!(render("sum: {{ context.sum }}").unwrap(), "sum: 3");
    assert_eq!(render("hi {{ promptInput.who }} <b>").unwrap(), "hi Ann <b>");
}

#[test]
fn an_undefined_name_is_a_fault() {
    assert!(render("{{ context.missing }}").unwrap_err().contains("undefined"));
    assert!(render("{{ context.missing ~ 'x' }}").unwrap_err().contains("undefined"));
    assert!(render("{{ context.missing == 1 }}").unwrap_err().contains("undefined"));
    assert!(render("{{ contxt.sum }}").unwrap_err().contains("`contxt` is not known"));
    assert!(render("{{ context.sum").is_err());
}

#[test]
fn only_what_a_text_looks_at_is_needed() {
    let template = Template::parse("{{ context.a.b }} {{ context['c'] }}").unwrap();
    let needs = template.needs().unwrap();
    assert!(needs.context_keys.contains("a"));
    assert!(needs.context_keys.contains("c") || needs.whole_context);
}

/// Texts as plans have them, and what they come to.
const ORDINARY: &[(&str, &str)] = &[
    ("{{ context.sum + 1 }} {{ 2 * context.sum }} {{ -context.sum }}", "4 6 -3"),
    ("{{ 'a' ~ context.sum ~ 'b' + 'c' }}", "a3bc"),
    ("{{ '=' * 3 ~ 2 * 3 ~ [1, 2] * 2 }}", "===6[1, 2, 1, 2]"),
    ("{{ context.tags + ['c'] }} {{ (1, 2) }}", "['b', 'a', 'b', 'c'] (1, 2)"),
    ("{{ context.rows[0].id }}{{ context['rows'][-1]['id'] }}{{ context.name[1] }}", "13n"),
    (
        "{{ context.tags[1:] }} {{ context.name[:3] }} {{ context.name[::-1] }}",
        "['a', 'b'] Ann eeL nnA",
    ),
    (
        "{{ 1 < context.sum <= 3 }} {{ 'Lee' in context.name }} {{ 'z' not in context.tags }}",
        "True True True",
    ),
    ("{{ 'yes' if context.sum == 3 else 'no' }} {{ not context.tags }}", "yes False"),
    ("{% if context.sum == 1 %}1{% elif context.sum == 3 %}3{% else %}0{% endif %}", "3"),
    (
        "{% for r in context.rows %}{{loop.index}}/{{loop.length}}{{ r.kind }} {% endfor %}",
        "1/3x 2/3y 3/3x ",
    ),
    ("{% for r in context.rows if r.kind == 'x' %}{{ r.id }}{% else %}none{% endfor %}", "13"),
    ("{% for k, v in context.by|items %}{{ k }}={{ v }} {% endfor %}", "a=1 b=2 "),
    (
        "{% for t in context.tags %}{{ loop.cycle(1, 2) }}{{ loop.changed(t) }}{% endfor %}",
        "1True2True1True",
    ),
    ("{% for x in context.tree recursive %}{{ x if x is number else loop(x) }}{% endfor %}", "123"),
    (
        "{% set a = 'x' %}{% set a = a ~ a %}{% set b %}<{{ a }}>{% endset %}{{ a ~ b|upper }}",
        "xx<XX>",
    ),
    ("{% with a = 1, b = context.sum %}{{ a + b }}{% endwith %}{% set c, d = [1, 2] %}{{d}}", "42"),
    ("{% filter upper %}a{{ context.name }}{% endfilter %}", "AANN LEE"),
    ("{% autoescape true %}<{{ '<' }}>{% endautoescape %}", "<&lt;>"),
    ("{% raw %}{{ ---- }}{% endraw %}{# {{ #}", "{{ ---- }}"),
    (
        "{{ context.name|upper }} {{ context.name|lower|title|replace('A', 'E') }}",
        "ANN LEE Enn Lee",
    ),
    ("{{ context.missing|default('d') }} {{ context.missing is defined }}", "d False"),
    ("{{ context.tags|length }} {{ context.tags|first }}{{ context.tags|last }}", "3 bb"),
    ("{{ context.tags|join(', ') }} {{ context.rows|join('-', attribute='id') }}", "b, a, b 1-2-3"),
    ("{{ context.tags|unique|list }} {{ context.tags|sort|reverse|join }}", "['b', 'a'] bba"),
    (
        "{{ context.rows|map(attribute='cost')|sum }} {{ [3, 1]|sort }} {{ [3, 1]|max }}",
        "6.5 [1, 3] 3",
    ),
    (
        "{{ context.rows|sort(attribute='kind,id', reverse=true)|map(attribute='id')|list }}",
        "[2, 3, 1]",
    ),
    ("{{ context.rows|selectattr('kind', 'eq', 'x')|list|length }}", "2"),
    (
        "{% for g in context.rows|groupby('id') %}{{ g.grouper ~ g.list|count }}{% endfor %}",
        "112131",
    ),
    (
        "{{ [1, 2, 3]|batch(2, 0)|list }} {{ [1, 2, 3]|slice(2)|list }}",
        "[[1, 2], [3, 0]] [[1, 2], [3]]",
    ),
    ("{{ context.text|indent(2) }}|{{ context.text|lines|length }}", "one\n  two|2"),
    (
        "{{ 'a,b'|split(',') }} {{ '%s-%03d'|format('x', 7) }} {{ 1.26|round(1) }}",
        "['a', 'b'] x-007 1.3",
    ),
    (
        "{{ context.by|dictsort }} {{ [1]|chain([2])|list }} {{ [1]|zip(['a'])|list }}",
        "[('a', 1), ('b', 2)] [1, 2] [(1, 'a')]",
    ),
    ("{{ context.by }} {{ {'a': context.sum}.a }} {{ '7'|int + 1 }}", "{'a': 1, 'b': 2} 3 8"),
    (
        "{{ context.name is startingwith 'Ann' }} {{ context.sum is eq 3 }} {{ 2 is in [2] }}",
        "True True True",
    ),
];

#[test]
fn ordinary_texts_work() {
    for (source, expected) in ORDINARY {
        assert_eq!(render(source).as_deref(), Ok(*expected), "{source}");
    }
}

#[test]
fn chains_of_operators_have_a_limit() {
    for length in [6_800, 1_000_000] {
        let chains = [
            format!("{{{{ {}1 }}}}", "-".repeat(length)),
            format!("{{{{ {}1 }}}}", "not ".repeat(length)),
            format!("{{{{ {}1 }}}}", "not - ".repeat(length)),
            // Without an end: the parser would come as far as this too.
            format!("{{{{ {}", "not ".repeat(length)),
            format!("{{% if {}1 %}}{{% endif %}}", "- ".repeat(length)),
            format!("{{{{ x{} }}}}", " ~ x".repeat(length)),
            format!("{{{{ x{} }}}}", " + x".repeat(length)),
            format!("{{{{ x{} }}}}", ".x".repeat(length)),
            format!("{{{{ x{} }}}}", "[0]".repeat(length)),
            format!("{{{{ x{} }}}}", "|e".repeat(length)),
            format!("{{{{ x{} }}}}", " if x else x".repeat(length)),
            format!("{{{{ x{} }}}}", " is defined".repeat(length)),
            format!("{{{{ x{} }}}}", " and x or x".repeat(length)),
            format!("{{{{ x{} }}}}", "()".repeat(length)),
        ];
        for chain in chains {
            let long = chain.len() > 256 * 1024;
            refused(&chain, if long { "has at most 262144 bytes" } else { "256 levels deep" });
        }
    }
}

#[test]
fn brackets_and_blocks_have_a_limit() {
    for length in [100, 6_800] {
        for (open, close) in [("(", ")"), ("[", "]"), ("{1:", "}"), ("x[", "]"), ("x(", ")")] {
            let nested = format!("{{{{ {}1{} }}}}", open.repeat(length), close.repeat(length));
            refused(&nested, "64 brackets");
            refused(&format!("{{{{ {}", open.repeat(length)), "64 brackets");
        }
        let target = format!("{{% set {}a{} = 1 %}}", "(".repeat(length), ")".repeat(length));
        refused(&target, "64 brackets");
    }
    let length = 6_800;
    for (open, close) in [
        ("{% if 1 %}", "{% endif %}"),
        ("{% for a in [] %}", "{% endfor %}"),
        ("{% with %}", "{% endwith %}"),
        ("{% set a %}", "{% endset %}"),
        ("{% set a | upper(b=1) %}", "{% endset %}"),
        ("{% filter upper %}", "{% endfilter %}"),
    ] {
        refused(&format!("{}{}", open.repeat(length), close.repeat(length)), "128 blocks");
    }
    refused(&format!("{{% if 1 %}}{}", "{% elif 1 %}".repeat(length)), "128 blocks");
    // Groups with chains in them are as deep as both together.
    let group = format!("{}(", "not ".repeat(200));
    refused(&format!("{{{{ {}", group.repeat(60)), "256 levels deep");
    let left = format!("{{{{ ({}){} }}}}", "x ~ ".repeat(200) + "x", " ~ x".repeat(200));
    refused(&left, "256 levels deep");
}

#[test]
fn what_is_within_the_limits_fits_the_stack() {
    let table = [
        (format!("{{{{ {}1 }}}}", "not ".repeat(250)), "True".to_owned()),
        (format!("{{{{ {}1 }}}}", "-".repeat(250)), "1".to_owned()),
        (format!("{{{{ 1{} }}}}", " ~ context.sum".repeat(250)), format!("1{}", "3".repeat(250))),
        (format!("{{{{ context.sum{} }}}}", "|string".repeat(250)), "3".to_owned()),
        (format!("{{{{ {}2 }}}}", "1 if context.sum == 1 else ".repeat(80)), "2".to_owned()),
        (format!("{{{{ {}1{} }}}}", "(".repeat(60), ")".repeat(60)), "1".to_owned()),
        (
            format!("{{{{ {}1{} }}}}", "[".repeat(60), "]".repeat(60)),
            format!("{}1{}", "[".repeat(60), "]".repeat(60)),
        ),
        (format!("{}x{}", "{% if 1 %}".repeat(120), "{% endif %}".repeat(120)), "x".to_owned()),
        (format!("{{% if 0 %}}{}x{{% endif %}}", "{% elif 1 %}".repeat(120)), String::new()),
    ];
    for (source, expected) in table {
        assert_eq!(render(&source), Ok(expected), "{source}");
    }
}

#[test]
fn what_is_side_by_side_is_not_deep() {
    let many =
        "{{ context.sum }}{% if context.sum %}{% endif %}{% set a = context.sum %}".repeat(500);
    assert_eq!(render(&many).unwrap(), "3".repeat(500));
    let listed = format!("{{{{ [{}]|length }}}}", "-1, ".repeat(5_000));
    assert_eq!(render(&listed).unwrap(), "5000");
    let long = format!("{{{{ context.sum }}}}{}", "x\n".repeat(100_000));
    assert_eq!(render(&long).unwrap().len(), 200_000);
    let pieces = format!("{{{{ ''{} }}}}", " ~ context.sum|string".repeat(100));
    assert_eq!(render(&pieces).unwrap(), "3".repeat(100));
    let plain = "x".repeat(2_000_000);
    assert_eq!(fill(&plain, Map::new()).unwrap(), plain);
}

#[test]
fn a_name_that_another_program_fills_stays_as_it_is() {
    let text = fill_known("{{ context.sum }} of {{ tenantName }}, {{tenantName}}", root());
    assert_eq!(text.unwrap(), "3 of {{tenantName}}, {{tenantName}}");
    assert!(fill_known("{{ tenant.name }}", root()).unwrap_err().contains("undefined"));
    assert!(fill_known("{{ tenantName", root()).is_err());
}

#[test]
fn doubling_a_value_is_too_much_work() {
    for times in [24, 30, 200] {
        let begin = "{% set x = 'sixteen letters.' %}";
        let sets = [
            "{% set x = x ~ x %}",
            "{% set x = x + x %}",
            "{% set x = x * 2 %}",
            "{% set x = x|replace('s', 'ss') ~ x %}",
            "{% set x = [x, x]|join %}",
            "{% set x = '%s%s'|format(x, x) %}",
        ];
        for set in sets {
            let source = format!("{begin}{}{{{{ x|length }}}}", set.repeat(times));
            let error = render(&source).expect_err(set);
            let levels = error.contains("64 lists and maps");
            assert!(error.contains(&work()) || (levels && times > 64), "{set}: {error}");
        }
        let block = format!("{begin}{}x", "{% set x %}{{ x }}{{ x }}{% endset %}".repeat(times));
        assert!(render(&block).unwrap_err().contains(&length()), "{block}");
        let times = times.min(100);
        let open = "{% with x = x ~ x %}".repeat(times);
        let close = "{% endwith %}".repeat(times);
        assert!(render(&format!("{begin}{open}{{{{ x }}}}{close}")).unwrap_err().contains(&work()));
    }
    let lists =
        format!("{{% set x = [1] %}}{}{{{{ x|length }}}}", "{% set x = x + x %}".repeat(90));
    assert!(render(&lists).unwrap_err().contains(&work()));
    let shared = format!("{{% set x = [1] %}}{}", "{% set x = [x, x] %}".repeat(60));
    for end in ["{{ x }}", "{{ x == x[0] }}"] {
        assert!(render(&format!("{shared}{end}")).unwrap_err().contains(&work()), "{end}");
    }
}

#[test]
fn no_text_carries_values_from_one_iteration_to_the_next() {
    let doubled = "{% for i in context.rows %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}";
    let named = format!("{{% set ns = namespace(x='x') %}}{doubled}");
    assert!(render(&named).unwrap_err().contains("`namespace` is not known here"));
    // The name counts as declared, but there is nothing behind it.
    let hidden = "{% set namespace = namespace %}";
    let text = format!("{hidden}{{% set ns = namespace(x='x') %}}{doubled}");
    assert!(render(&text).is_err());
    for function in ["range(9)", "dict(a=1)", "debug()", "namespace()"] {
        let used = format!("{{{{ ''[:{function}] }}}}");
        assert!(fill(&used, Map::new()).unwrap_err().contains("unknown"), "{used}");
    }
    let deep = format!("{{% set x = [1] %}}{}", "{% set x = [x] %}".repeat(65));
    refused(&deep, "64 lists and maps");
    let recursive = "{% for x in [1] recursive %}{{ loop([[x]]) }}{% endfor %}";
    refused(recursive, "cannot build lists or maps");
    let endless = "{% for x in 'a' recursive %}{{ loop(x ~ x) }}{% endfor %}";
    assert!(render(endless).unwrap_err().contains("recursion limit"));
}

#[test]
fn filters_that_multiply_are_too_much_work() {
    let table = [
        "{{ 'a\nb'|indent(4000000000) }}",
        "{{ 'a\nb'|indent(width=4000000000) }}",
        "{{ [1]|batch(4000000000, 'x') }}",
        "{{ [1]|slice(4000000000) }}",
        "{{ '%4000000000d'|format(1) }}",
        "{{ '%.4000000000f'|format(1.5) }}",
        "{{ '%*d'|format(4000000000, 1) }}",
        "{{ 'x' * 99999999 * 3 }}",
        "{{ ('x' * 99999999)|upper ~ 'x' * 99999999 }}",
        "{{ ['x'] * 99999999 }}",
        "{% set x = 'x' * 1000000 %}{{ x|replace('x', x)|length }}",
        "{% set x = 'x' * 1000000 %}{{ x|replace('', x)|length }}",
        "{% set x = 'x' * 1000000 %}{{ x|list|join(x)|length }}",
        "{% set x = 'x' * 1000000 %}{{ x|join(x)|length }}",
        "{% set x = 'x' * 1000000 %}{{ x|map('replace', 'x', x)|list }}",
        "{% set x = 'x' * 1000000 %}{{ ('%s' * 1000)|format(x, x)|length }}",
        "{% set x = 'x' * 1000000 %}{{ ('%(a)s' * 1000)|format(a=x)|length }}",
        "{% set x = 'x' * 1000000 %}{{ x|trim(x)|length }}",
        "{% set x = ['x' * 1000000] * 1000 %}{{ x|sort|length }}",
        "{% set x = ['x'] * 10000 + ['x' * 1000000] %}{{ x|max|length }}",
        "{% set x = ['x'] * 100000 %}{{ x|sum(start='')|length }}",
    ];
    for source in table {
        let error = render(source).expect_err(source);
        assert!(error.contains(&work()), "{source}: {error}");
    }
    let all = "{{ ['x' * 1000000] | zip(*context.tags) }}";
    assert!(render(all).unwrap_err().contains("cannot pass arguments"));
}

#[test]
fn a_text_has_a_longest_length() {
    let big = 1024 * 1024;
    let render = |source: &str| Template::parse(source).unwrap().render(large(big));
    let looped = "{% for n in context.numbers %}{{ context.big }}{% endfor %}";
    assert!(render(looped).unwrap_err().contains(&length()));
    let raw = format!("{{% for n in context.numbers %}}{}{{% endfor %}}", "x\n".repeat(50_000));
    assert!(render(&raw).unwrap_err().contains(&length()));
    let kept = format!("{{% set x %}}{raw}{{% endset %}}");
    assert!(render(&kept).unwrap_err().contains(&length()));
    let nine = "{{ context.big }}".repeat(9);
    assert_eq!(render(&nine).unwrap_err(), length());
    let eight = "{{ context.big }}".repeat(8);
    assert_eq!(render(&eight).unwrap().len(), RENDERED_BYTES_MAX);
    let floats: Vec<f64> = vec![1e308; 30_000];
    let root = Map::from_iter([("context".to_owned(), json!({"floats": floats}))]);
    let printed = Template::parse("{{ context.floats|map('string')|join }}").unwrap();
    assert!(printed.render(root).is_err(), "it is too long, or too much work");
}

#[test]
fn a_large_value_can_be_used_many_times_but_not_in_every_iteration() {
    let big = 4_000_000;
    let render = |source: &str| Template::parse(source).unwrap().render(large(big));
    let uses = "{{ 'y' in context.big|lower }}{{ context.big|length }}{{ context.big[:2] }}";
    assert_eq!(render(uses).unwrap(), "False4000000xx");
    assert_eq!(render(&"{{ 'y' in context.big }}".repeat(5)).unwrap(), "False".repeat(5));
    assert_eq!(render("{{ context.big }}").unwrap().len(), big);
    let each = [
        "'y' in context.big",
        "context.big == context.big ~ ''",
        "context.big|length",
        "context.big|upper|length",
        "context.big[3000000]",
        "context.big[3000000:]",
        "context.big is lower",
        "context.big is endingwith 'y'",
        "{context.big: 1}[context.big]",
        "loop.changed(context.big)",
        "context.big|int(default=1)",
        "context.big|last",
    ];
    for use_of_it in each {
        let source = format!("{{% for n in context.numbers %}}{{{{ {use_of_it} }}}}{{% endfor %}}");
        let error = render(&source).expect_err(use_of_it);
        assert!(error.contains(&work()), "{use_of_it}: {error}");
    }
    let rows = "{% for n in context.numbers[:500] %}{{ n in context.numbers }}{% endfor %}";
    assert_eq!(render(rows).unwrap(), "True".repeat(500));
}

#[test]
fn a_panic_of_the_engine_is_an_error() {
    let source = "{% for n in context.tags %}{{ loop.cycle() }}{% endfor %}";
    assert!(render(source).unwrap_err().contains("the engine of templates failed"));
}

#[test]
fn simple_texts_are_filled_as_the_engine_fills_them() {
    let root = || {
        let context = json!({"sum": 3, "big": u64::MAX, "less": -7, "text": "a <b>{{ x }}",
            "empty": "", "half": 0.5, "yes": true, "none": null, "list": [1], "in": {"is": "ok"},
            "items": "a key"});
        Map::from_iter([("context".to_owned(), context)])
    };
    let simple = [
        "sum: {{ context.sum }}",
        "{{context.big}}{{ context.less }}",
        "{{ context.text }} }} {",
        "{{ context.empty }}",
        "a\n{{ context.in.is }} b",
        "{{ context.items }}",
    ];
    for source in simple {
        let filled = Simple::read(source).and_then(|simple| simple.render(&root()));
        assert_eq!(filled, rendered(source, root()).ok(), "{source}");
        assert!(filled.is_some(), "{source}");
    }
    let others = [
        "{{ context.half }}",
        "{{ context.yes }}",
        "{{ context.none }}",
        "{{ context.list }}",
        "{{ context.missing }}",
        "{{ context.sum.x }}",
        "{{ context }}",
        "{{- context.sum }}",
        "{{ context.sum -}} x",
        "{{ context.sum }}\n",
        "{{ context['sum'] }}",
        "{{ 'x' }}",
        "{{ context.sum + 1 }}",
        "{{ context.text|upper }}",
        "{# a #}{{ context.sum }}",
    ];
    for source in others {
        let filled = Simple::read(source).and_then(|simple| simple.render(&root()));
        assert_eq!(filled, None, "{source}");
    }
}
