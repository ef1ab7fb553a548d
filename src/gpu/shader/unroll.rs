//! Unrolling of loops. An array that is indexed only by constants is kept in registers, whether or not the driver would
//! unroll the loop.

/// Replaces each marked loop of `source` by one block per iteration, in which the variable is a constant:
/// ```wgsl
/// for (var i = 0u; i < N; i++) { // unrolled          { const i = 0u;
///     sum += own[i];                                      sum += own[i];
/// }                                                   }
///                                                     { const i = 1u; ...
/// ```
/// The bounds are literals or constants, whose values `constant` returns. The closing brace has the indentation of
/// `for`. The variable is u32 if the first value has the suffix `u`, else i32.
///
/// # Panics
/// When a marked loop has another form.
pub fn unroll(shader: &str, source: &str, constant: &dyn Fn(&str) -> u32) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let mut unrolled = String::with_capacity(4 * source.len());
    write_lines(shader, &lines, constant, &mut unrolled);
    unrolled
}

fn write_lines(shader: &str, mut lines: &[&str], constant: &dyn Fn(&str) -> u32, out: &mut String) {
    while let Some((&line, rest)) = lines.split_first() {
        lines = rest;
        let Some(head) = line.trim_end().strip_suffix("{ // unrolled") else {
            *out += line;
            out.push('\n');
            continue;
        };
        let fail = || -> ! { panic!("{shader}.wgsl: cannot unroll `{}`", line.trim()) };
        let words: Vec<&str> = head.split_whitespace().collect();
        let ["for", "(var", name, "=", first, left, "<", end, step] = words[..] else { fail() };
        if left != name || step.strip_suffix("++)") != Some(name) {
            fail();
        }
        let bound = |text: &str| {
            let text = text.trim_end_matches(';');
            let digits = text.trim_end_matches(['i', 'u']);
            digits.parse().unwrap_or_else(|_| constant(text))
        };
        let indentation = &line[..line.len() - line.trim_start().len()];
        let closing = rest.iter().position(|line| line.strip_prefix(indentation) == Some("}"));
        let closing = closing.unwrap_or_else(|| fail());
        let suffix = if first.ends_with("u;") { "u" } else { "i" };
        for i in bound(first)..bound(end) {
            *out += &format!("{indentation}{{ const {name} = {i}{suffix};\n");
            write_lines(shader, &rest[..closing], constant, out);
            *out += &format!("{indentation}}}\n");
        }
        lines = &rest[closing + 1..];
    }
}

#[cfg(test)]
mod tests {
    fn unroll(source: &str) -> String {
        let constant = |name: &str| if name == "N" { 2 } else { panic!("no {name}") };
        super::unroll("test", source, &constant)
    }

    #[test]
    fn loops_nest() {
        let source = "\
a
for (var i = 0u; i < N; i++) { // unrolled
    b(i);
    for (var j = 1; j < 2; j++) { // unrolled
        c(i, j);
    }
}
for (var k = 0; k < 9; k++) {
}
";
        let expected = "\
a
{ const i = 0u;
    b(i);
    { const j = 1i;
        c(i, j);
    }
}
{ const i = 1u;
    b(i);
    { const j = 1i;
        c(i, j);
    }
}
for (var k = 0; k < 9; k++) {
}
";
        assert_eq!(unroll(source), expected);
    }

    #[test]
    fn a_loop_without_iterations_is_removed() {
        assert_eq!(unroll("for (var i = 2u; i < N; i++) { // unrolled\n    x\n}\ny"), "y\n");
    }

    #[test]
    #[should_panic(expected = "cannot unroll `for (var i = 0u; i < 4u; i += 2u) { // unrolled`")]
    fn other_steps_are_refused() {
        unroll("    for (var i = 0u; i < 4u; i += 2u) { // unrolled\n    }");
    }

    #[test]
    #[should_panic(expected = "cannot unroll `for (var i = 0u; i < 4u; i++) { // unrolled`")]
    fn a_missing_brace_is_refused() {
        unroll("for (var i = 0u; i < 4u; i++) { // unrolled\n    }");
    }
}
