//! A Rust file with its comments and literals blanked, and each line marked as test code or not. It is no parser: it knows
//! just enough of the lexical grammar that a rule sees code where there is code.

/// What kind of target a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// `src/` of a library or program.
    Product,
    /// `tests/` or `benches/`.
    Tests,
    /// `examples/`.
    Example,
}

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// As it stands in the file.
    pub(super) raw: String,
    /// The same with comments, strings and characters blanked.
    pub(super) code: String,
    /// Inside an item marked `#[cfg(test)]`, or in a test target.
    pub(super) test: bool,
    /// Inside an item marked `#[cfg(doctest)]`.
    pub(super) doctest: bool,
}

/// One file.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// Relative to the root of the repository.
    pub(super) path: String,
    /// The package folder's name, which is the crate's.
    pub(super) krate: String,
    pub(super) target: Target,
    pub(super) lines: Vec<Line>,
}

impl Source {
    /// Reads a file's text; the path decides crate and target.
    pub(super) fn read(path: &str, text: &str) -> Self {
        let parts: Vec<&str> = path.split('/').collect();
        let krate = if parts.first() == Some(&"crates") { parts.get(1) } else { parts.first() };
        let target =
            if parts.iter().any(|part| matches!(*part, "tests" | "benches")) && !parts.contains(&"src") {
                Target::Tests
            } else if parts.contains(&"examples") && !parts.contains(&"src") {
                Target::Example
            } else {
                Target::Product
            };
        let code = blank(text);
        let test = marked(&code, "#[cfg(test)]");
        let doctest = marked(&code, "#[cfg(doctest)]");
        let lines = text
            .lines()
            .zip(code.lines())
            .zip(test.iter().zip(&doctest))
            .map(|((raw, code), (test, doctest))| Line {
                raw: raw.to_owned(),
                code: code.to_owned(),
                test: *test || target == Target::Tests,
                doctest: *doctest,
            })
            .collect();
        Self { path: path.to_owned(), krate: krate.copied().unwrap_or_default().to_owned(), target, lines }
    }

    /// The reason given for breaking a rule on a line: `// tidy: allow(rule): reason` there or on the line before. Without a
    /// reason it is no excuse.
    pub(super) fn excuse(&self, line: usize, rule: &str) -> Option<String> {
        let marker = format!("// tidy: allow({rule}): ");
        [line.checked_sub(1), line.checked_sub(2)].into_iter().flatten().find_map(|index| {
            let (_, reason) = self.lines.get(index)?.raw.split_once(&marker)?;
            (!reason.trim().is_empty()).then(|| reason.trim().to_owned())
        })
    }
}

/// Where the lexer is.
enum Mode {
    Code,
    LineComment,
    BlockComment(usize),
    Text,
    RawText(usize),
}

/// The text with comments, string and character literals replaced by blanks; line ends stay.
pub(crate) fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let mut out = String::with_capacity(text.len());
    let mut mode = Mode::Code;
    let mut index = 0;
    let hide = |out: &mut String, from: usize, to: usize| {
        out.extend((from..to).map(|place| if at(place) == '\n' { '\n' } else { ' ' }));
    };
    while index < chars.len() {
        let (here, next) = (at(index), at(index + 1));
        let mut step = 1;
        let mut shown = false;
        match mode {
            Mode::Code => match (here, next) {
                ('/', '/') => mode = Mode::LineComment,
                ('/', '*') => {
                    mode = Mode::BlockComment(1);
                    step = 2;
                }
                ('"', _) => mode = Mode::Text,
                ('r', '"' | '#') if !in_word(&out) || ends_with_byte_prefix(&out) => {
                    let hashes = (index + 1..).take_while(|place| at(*place) == '#').count();
                    if at(index + 1 + hashes) == '"' {
                        mode = Mode::RawText(hashes);
                        step = hashes + 2;
                    } else {
                        shown = true;
                    }
                }
                ('\'', _) => match char_literal(&chars, index) {
                    Some(length) => step = length,
                    None => shown = true,
                },
                _ => shown = true,
            },
            Mode::LineComment if here == '\n' => mode = Mode::Code,
            Mode::LineComment => {}
            Mode::BlockComment(depth) => match (here, next) {
                ('/', '*') => {
                    mode = Mode::BlockComment(depth + 1);
                    step = 2;
                }
                ('*', '/') => {
                    mode = if depth == 1 { Mode::Code } else { Mode::BlockComment(depth - 1) };
                    step = 2;
                }
                _ => {}
            },
            Mode::Text => match here {
                '\\' => step = 2,
                '"' => mode = Mode::Code,
                _ => {}
            },
            Mode::RawText(hashes) => {
                if here == '"' && (1..=hashes).all(|offset| at(index + offset) == '#') {
                    mode = Mode::Code;
                    step = hashes + 1;
                }
            }
        }
        let end = (index + step).min(chars.len());
        if shown {
            out.push(here);
        } else {
            hide(&mut out, index, end);
        }
        index = end;
    }
    out
}

fn in_word(out: &str) -> bool {
    out.chars().next_back().is_some_and(|last| last.is_alphanumeric() || last == '_')
}

/// Whether what was written ends in the `b` or `c` of `br"…"`, standing alone.
fn ends_with_byte_prefix(out: &str) -> bool {
    let mut last = out.chars().rev();
    matches!(last.next(), Some('b' | 'c'))
        && !last.next().is_some_and(|before| before.is_alphanumeric() || before == '_')
}

/// The length of a character literal that starts here; `None` for a lifetime.
fn char_literal(chars: &[char], start: usize) -> Option<usize> {
    let at = |offset: usize| chars.get(start + offset).copied();
    if at(1)? == '\\' {
        // The longest escape is `'\u{10FFFF}'`.
        return (3..13).find(|offset| at(*offset) == Some('\'')).map(|offset| offset + 1);
    }
    (at(2)? == '\'').then_some(3)
}

/// For each line, whether it belongs to an item that carries the attribute: from the attribute to the brace that closes the
/// item, or to the `;` that ends it.
fn marked(code: &str, attribute: &str) -> Vec<bool> {
    let mut marks = Vec::new();
    let mut depth = 0_usize;
    let mut waiting = false;
    let mut inside: Option<usize> = None;
    for line in code.lines() {
        let mut mark = inside.is_some();
        let rest = match line.split_once(attribute) {
            Some((_, rest)) if inside.is_none() => {
                waiting = true;
                rest
            }
            _ => line,
        };
        mark |= waiting;
        for character in rest.chars() {
            match character {
                '{' => {
                    if waiting {
                        waiting = false;
                        inside = Some(depth);
                    }
                    depth += 1;
                }
                '}' => {
                    depth = depth.saturating_sub(1);
                    if inside == Some(depth) {
                        inside = None;
                    }
                }
                ';' if waiting => waiting = false,
                _ => {}
            }
        }
        marks.push(mark);
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_is_not() {
        for (text, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x\"y") + g"#, "f(      ) + g"),
            ("f(r#\"a\"b\"#) g", "f(        ) g"),
            ("f(br\"x\") g", "f(b    ) g"),
            ("'a' 'b: '\\'' '\\u{1F600}' x", "    'b:                  x"),
            ("r#type + bar\"x\"", "r#type + bar   "),
            ("\"a\nb\" c", "  \n   c"),
        ] {
            assert_eq!(blank(text), expected, "{text}");
        }
    }

    #[test]
    fn an_unfinished_literal_ends_with_the_file() {
        assert_eq!(blank("a \"b\\"), "a    ");
        assert_eq!(blank("/* a"), "    ");
        assert_eq!(blank("'"), "'");
    }

    #[test]
    fn test_items_are_marked_to_their_closing_brace() {
        let source = Source::read(
            "crates/fak-abi/src/x.rs",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nuse d;\nfn e() {}",
        );
        let marks: Vec<bool> = source.lines.iter().map(|line| line.test).collect();
        assert_eq!(marks, [false, true, true, true, true, false, true, true, false]);
        assert_eq!((source.krate.as_str(), source.target), ("fak-abi", Target::Product));
    }

    #[test]
    fn the_path_decides_the_target() {
        assert_eq!(Source::read("crates/fak-abi/tests/it/main.rs", "").target, Target::Tests);
        assert_eq!(Source::read("crates/fak-abi/benches/x.rs", "").target, Target::Tests);
        assert_eq!(Source::read("crates/fak-abi/examples/x.rs", "").target, Target::Example);
        assert_eq!(Source::read("xtask/src/tests/x.rs", "").target, Target::Product);
    }

    #[test]
    fn an_excuse_needs_a_reason() {
        let source =
            Source::read("xtask/src/x.rs", "// tidy: allow(rule): because\na\n// tidy: allow(rule): \nb");
        assert_eq!(source.excuse(2, "rule").as_deref(), Some("because"));
        assert_eq!(source.excuse(4, "rule"), None);
        assert_eq!(source.excuse(2, "other"), None);
    }
}
