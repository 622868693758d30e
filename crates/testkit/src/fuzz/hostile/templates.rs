//! Templates: nesting that uses up a stack, and short texts that become long ones.

use super::{Case, Kind, nested, numbered};

const fn template(name: &'static str, build: fn() -> Vec<u8>) -> Case {
    Case { name, kind: Kind::Template, build }
}

pub(super) const CASES: &[Case] = &[
    template("negations", || format!("{{{{ {}1 }}}}", "not ".repeat(100_000)).into()),
    template("minuses", || format!("{{{{ {}1 }}}}", "-".repeat(100_000)).into()),
    template("minuses-300", || format!("{{{{ {}1 }}}}", "-".repeat(300)).into()),
    template("parentheses", || shown(&nested(100_000, "(", "1", ")"))),
    template("lists", || shown(&nested(100_000, "[", "", "]"))),
    template("maps", || shown(&nested(50_000, "{'a':", "1", "}"))),
    template("sums", || shown(&format!("1{}", "+1".repeat(50_000)))),
    template("powers", || shown(&format!("2{}", "**2".repeat(5_000)))),
    template("huge-power", || shown("2 ** 4000000000")),
    template("conditions", || shown(&format!("{}1", "1 if 1 else ".repeat(20_000)))),
    template("attributes", || shown(&format!("context{}", ".a".repeat(100_000)))),
    template("subscripts", || shown(&format!("context{}", "['a']".repeat(50_000)))),
    template("nested-subscripts", || shown(&nested(30_000, "context[", "1", "]"))),
    template("filters", || shown(&format!("'a'{}", "|upper".repeat(50_000)))),
    template("calls", || shown(&nested(30_000, "dict(a=", "1", ")"))),
    template("ifs", || nested(20_000, "{% if true %}", "x", "{% endif %}").into()),
    template("loops", || nested(10_000, "{% for a in [1] %}", "x", "{% endfor %}").into()),
    template("withs", || nested(10_000, "{% with a = 1 %}", "x", "{% endwith %}").into()),
    template("filter-blocks", || {
        nested(10_000, "{% filter upper %}", "x", "{% endfilter %}").into()
    }),
    template("named-blocks", || {
        let open = numbered(5_000, |at| format!("{{% block b{at} %}}"));
        format!("{open}x{}", "{% endblock %}".repeat(5_000)).into()
    }),
    template("comments-that-stay-open", || "{#".repeat(50_000).into()),
    template("braces-that-stay-open", || "{{".repeat(50_000).into()),
    template("doubled-by-set", || {
        format!("{{% set x = 'xxxxxxxx' %}}{}{{{{ x|length }}}}", "{% set x = x ~ x %}".repeat(40))
            .into()
    }),
    template("doubled-by-with", || {
        let open = "{% with x = x ~ x %}".repeat(40);
        let close = "{% endwith %}".repeat(40);
        format!("{{% set x = 'xxxxxxxx' %}}{open}{{{{ x }}}}{close}").into()
    }),
    template("doubled-by-block", || {
        let twice = "{% set x %}{{ x }}{{ x }}{% endset %}";
        format!("{{% set x = 'xxxxxxxx' %}}{}{{{{ x }}}}", twice.repeat(40)).into()
    }),
    template("doubled-by-namespace", || {
        b"{% set n = namespace(x='xx') %}{% for a in 'abcdefghijklmnopqrstuvwxyzabcdefghijklmn' %}\
          {% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}"
            .to_vec()
    }),
    template("doubled-by-lists", || {
        format!("{{% set x = [1] %}}{}{{{{ x }}}}", "{% set x = [x, x] %}".repeat(50)).into()
    }),
    template("doubled-by-sums-of-lists", || {
        format!("{{% set x = [1] %}}{}{{{{ x|length }}}}", "{% set x = x + x %}".repeat(50)).into()
    }),
    template("doubled-by-maps", || {
        let twice = "{% set x = {'a': x, 'b': x} %}";
        format!("{{% set x = 1 %}}{}{{{{ x|tojson }}}}", twice.repeat(50)).into()
    }),
    template("grown-by-replace", || {
        let more = "{% set x = x|replace('x', 'xxxxxxxxxx') %}";
        format!("{{% set x = 'x' %}}{}{{{{ x }}}}", more.repeat(12)).into()
    }),
    template("grown-by-empty-replace", || {
        let more = "{% set x = x|replace('', 'xx') %}";
        format!("{{% set x = 'xx' %}}{}{{{{ x }}}}", more.repeat(40)).into()
    }),
    template("grown-by-join", || {
        let more = "{% set x = [x, x, x, x]|join(x) %}";
        format!("{{% set x = 'xxxx' %}}{}{{{{ x }}}}", more.repeat(20)).into()
    }),
    template("grown-by-format", || shown("'%4000000000d'|format(1)")),
    template("indented", || shown("'a\\nb'|indent(4000000000)")),
    template("indented-json", || shown("{'a': [1, 2]}|tojson(4000000000)")),
    template("batches", || shown("[1]|batch(4000000000, 'x')")),
    template("slices", || shown("[1]|slice(4000000000, 'x')")),
    template("centred", || shown("'x'|center(4000000000)")),
    template("repeated", || shown("'x' * 4000000000")),
    template("repeated-list", || shown("[1] * 4000000000")),
    template("range", || shown("range(4000000000)|list|length")),
    template("escaped-again", || {
        let more = "{% set x = x|escape|urlencode %}";
        format!("{{% set x = '<&\u{e9}>' %}}{}{{{{ x }}}}", more.repeat(60)).into()
    }),
    template("sorted-lists", || {
        format!(
            "{{% set x = [3, 1, 2] %}}{}{{{{ x|sort|reverse|unique|list }}}}",
            "{% set x = x + x %}".repeat(24)
        )
        .into()
    }),
    template("loops-in-loops", || {
        nested(10, "{% for a in '0123456789' %}", "{{ a }}", "{% endfor %}").into()
    }),
    template("loop-that-recurses", || {
        b"{% for a in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}".to_vec()
    }),
    template("macro-that-recurses", || {
        b"{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}".to_vec()
    }),
    template("includes-itself", || b"{% include 'text' %}{% extends 'text' %}".to_vec()),
    template("imports-itself", || b"{% from 'text' import m %}{{ m() }}".to_vec()),
    template("everything", || shown("context ~ history ~ promptInput")),
    template("long-literal", || shown(&format!("'{}'", "x".repeat(500_000)))),
    template("long-name", || shown(&format!("context.{}", "n".repeat(500_000)))),
    template("many-outputs", || "{{ 1 }}".repeat(60_000).into()),
    template("control-characters", || b"{{ 'a\0\x1b[2J' }}\r\n{{ context.\x01 }}".to_vec()),
];

/// An expression as a text shows it.
fn shown(expression: &str) -> Vec<u8> {
    format!("{{{{ {expression} }}}}").into()
}
