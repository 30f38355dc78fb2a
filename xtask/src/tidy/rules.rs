//! The rules. Each names the line, what is wrong with it, and what mends it.

use super::source::{Line, Source, Target};
use crate::layering;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Counted from 1.
    pub(super) line: usize,
    /// The rule's name, as an excuse cites it.
    pub(super) rule: &'static str,
    pub(super) what: String,
    pub(super) fix: &'static str,
}

/// More lines than this is more than one idea.
const LONGEST: usize = 600;

/// A rule about single lines.
struct LineRule {
    name: &'static str,
    /// Where it applies: the file, and the line of it.
    applies: fn(&Source, &Line) -> bool,
    /// Whether a line's code breaks it.
    broken: fn(&str) -> bool,
    what: &'static str,
    fix: &'static str,
}

const LINE_RULES: &[LineRule] = &[
    LineRule {
        name: "todo",
        applies: |_, _| true,
        broken: |code| has_macro(code, "todo") || has_macro(code, "unimplemented"),
        what: "unfinished code",
        fix: "finish it, or leave it out and say so in the documentation",
    },
    LineRule {
        name: "ignore",
        applies: |_, _| true,
        broken: |code| code.contains("#[ignore"),
        what: "a test that does not run",
        fix: "make it fast and sure enough to run always, or delete it",
    },
    LineRule {
        name: "sleep",
        applies: |_, line| line.test,
        broken: |code| has_call(code, "sleep") || has_call(code, "sleep_until"),
        what: "a test that waits for time to pass",
        fix: "wait for the event itself (a channel, a barrier, a yield), or move the injected clock",
    },
    LineRule {
        name: "unsafe",
        applies: |_, _| true,
        broken: |code| has_word(code, "unsafe"),
        what: "unsafe code",
        fix: "write it safely: the workspace forbids unsafe",
    },
    LineRule {
        name: "print",
        applies: |source, line| source.target == Target::Product && !line.test && !prints(&source.krate),
        broken: |code| {
            ["print", "println", "eprint", "eprintln", "dbg"].iter().any(|name| has_macro(code, name))
                || code.contains("io::stdout")
                || code.contains("io::stderr")
        },
        what: "a library that prints",
        fix: "return the text, emit an event, or take an `std::io::Write`",
    },
    LineRule {
        name: "files",
        applies: |source, line| {
            source.target == Target::Product && !line.test && layer(&source.krate) < Some(3)
        },
        broken: |code| {
            ["std::fs", "fs::", "File::", "OpenOptions", "env::var", "env::current_dir"]
                .iter()
                .any(|name| starts_word(code, name))
        },
        what: "a crate below L3 that looks at the machine",
        fix: "take the text, or an `std::io::Read`/`Write`, from the caller",
    },
    LineRule {
        name: "global",
        applies: |source, line| source.target == Target::Product && !line.test,
        broken: is_global_state,
        what: "mutable state of the whole process",
        fix: "keep it in the kernel, bus, store or arbiter that it belongs to: two kernels are independent",
    },
];

/// How many rules there are.
pub(super) const COUNT: usize = LINE_RULES.len() + 4;

/// Every broken rule of a file, by line.
pub(super) fn faults(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    faults.extend(too_long(source));
    faults.extend(without_opening(source));
    faults.extend(more_than_an_index(source));
    faults.extend(another_test_binary(source));
    for (index, line) in source.lines.iter().enumerate() {
        for rule in LINE_RULES {
            if (rule.applies)(source, line) && (rule.broken)(&line.code) {
                let what = format!("{}: `{}`", rule.what, line.raw.trim());
                faults.push(Fault { line: index + 1, rule: rule.name, what, fix: rule.fix });
            }
        }
    }
    faults.sort_by_key(|fault| fault.line);
    faults
}

fn too_long(source: &Source) -> Option<Fault> {
    (source.lines.len() > LONGEST).then(|| Fault {
        line: LONGEST + 1,
        rule: "length",
        what: format!("{} lines, {LONGEST} at most", source.lines.len()),
        fix: "split it: one idea a file",
    })
}

fn without_opening(source: &Source) -> Option<Fault> {
    let first =
        source.lines.iter().map(|line| line.raw.trim()).find(|line| !line.is_empty()).unwrap_or_default();
    let opens = first.starts_with("//!") || first.starts_with("#![doc = include_str!");
    (!opens).then(|| Fault {
        line: 1,
        rule: "opening",
        what: "this module does not say what lives in it".to_owned(),
        fix: "open it with `//!`: what lives here, and what does not",
    })
}

/// A `lib.rs` holds docs, module declarations and re-exports.
fn more_than_an_index(source: &Source) -> Option<Fault> {
    if !source.path.ends_with("src/lib.rs") {
        return None;
    }
    let (index, line) = source
        .lines
        .iter()
        .enumerate()
        .find(|(_, line)| !line.test && !line.doctest && defines(&line.code))?;
    Some(Fault {
        line: index + 1,
        rule: "index",
        what: format!("lib.rs is more than an index: `{}`", line.raw.trim()),
        fix: "move it to a module of its own and re-export it",
    })
}

/// Integration tests are modules of one program, `tests/it`, so that a crate is linked once.
fn another_test_binary(source: &Source) -> Option<Fault> {
    let inside = source.path.strip_prefix("crates/")?.split_once("/tests/")?.1;
    (!inside.starts_with("it/")).then(|| Fault {
        line: 1,
        rule: "binary",
        what: "a test program besides `tests/it`".to_owned(),
        fix: "make it a module of tests/it/main.rs",
    })
}

/// Whether a line opens an item other than a module declaration, a `use` or an attribute.
fn defines(code: &str) -> bool {
    let mut words = code
        .split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty());
    let first = words.find(|word| {
        !matches!(*word, "pub" | "crate" | "super" | "in" | "async" | "const" | "unsafe" | "extern")
    });
    let item = matches!(
        first,
        Some("fn" | "struct" | "enum" | "trait" | "impl" | "type" | "static" | "union" | "macro_rules")
    );
    let constant = code.trim_start().trim_start_matches("pub ").starts_with("const ");
    let module_with_body = first == Some("mod") && code.contains('{');
    item || constant || module_with_body
}

fn layer(krate: &str) -> Option<u8> {
    layering::place(krate).map(|place| place.layer)
}

/// The programs: they talk to people.
fn prints(krate: &str) -> bool {
    layer(krate) >= layer("fak-cli")
}

/// `static mut`, a `static` with interior mutability, or a macro that makes one.
fn is_global_state(code: &str) -> bool {
    const CELLS: &[&str] = &[
        "Mutex", "RwLock", "Atomic", "OnceLock", "OnceCell", "LazyLock", "LazyCell", "Cell<", "RefCell",
        "DashMap", "ArcSwap", "Once",
    ];
    if has_macro(code, "thread_local") || has_word(code, "lazy_static") {
        return true;
    }
    let Some((before, after)) = code.split_once("static ") else {
        return false;
    };
    // `&'static T` and `T: 'static` are lifetimes.
    if before.ends_with('\'')
        || before.chars().next_back().is_some_and(|last| last.is_alphanumeric() || last == '_')
    {
        return false;
    }
    after.trim_start().starts_with("mut ") || CELLS.iter().any(|cell| after.contains(cell))
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The texts that follow each occurrence of `name` that begins a word.
fn after<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(name).filter_map(move |(index, _)| {
        let (before, rest) = code.split_at_checked(index)?;
        let begins = !before.chars().next_back().is_some_and(is_word);
        begins.then(|| rest.strip_prefix(name)).flatten()
    })
}

fn starts_word(code: &str, name: &str) -> bool {
    after(code, name).next().is_some()
}

fn has_word(code: &str, name: &str) -> bool {
    after(code, name).any(|rest| !rest.starts_with(is_word))
}

fn has_macro(code: &str, name: &str) -> bool {
    after(code, name).any(|rest| rest.starts_with('!'))
}

fn has_call(code: &str, name: &str) -> bool {
    after(code, name).any(|rest| rest.starts_with('('))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> Vec<&'static str> {
        faults(&Source::read(path, text)).into_iter().map(|fault| fault.rule).collect()
    }

    fn line(path: &str, code: &str) -> Vec<&'static str> {
        broken(path, &format!("//! Opening.\n{code}\n"))
    }

    const LOW: &str = "crates/fak-abi/src/x.rs";
    const CLI: &str = "crates/fak-cli/src/x.rs";
    const TEST: &str = "crates/fak-abi/tests/it/x.rs";

    #[test]
    fn each_rule_is_broken_by_what_it_forbids() {
        for (path, code, rule) in [
            (LOW, "fn f() { todo!() }", "todo"),
            (LOW, "fn f() { unimplemented!() }", "todo"),
            (TEST, "#[ignore = \"slow\"]", "ignore"),
            (TEST, "std::thread::sleep(x);", "sleep"),
            (LOW, "unsafe { f() }", "unsafe"),
            (LOW, "println!();", "print"),
            (LOW, "let out = std::io::stdout();", "print"),
            (LOW, "use std::fs;", "files"),
            (LOW, "let file = File::open(path);", "files"),
            ("crates/fak-agenttopo/src/x.rs", "let text = fs::read(path);", "files"),
            (LOW, "static mut N: u8 = 0;", "global"),
            (LOW, "pub static N: AtomicU64 = AtomicU64::new(0);", "global"),
            (CLI, "static N: LazyLock<u8> = LazyLock::new(f);", "global"),
            (LOW, "thread_local! { }", "global"),
        ] {
            assert_eq!(line(path, code), [rule], "{code}");
        }
    }

    #[test]
    fn what_only_looks_like_it_passes() {
        for (path, code) in [
            (LOW, "// todo!() unsafe println!()"),
            (LOW, "let text = \"unsafe println!()\";"),
            (LOW, "fn print(x: &'static Mutex<u8>) {}"),
            (LOW, "static NAME: &str = \"\";"),
            (LOW, "#[cfg(test)] mod tests { fn f() { println!(); } }"),
            (LOW, "reader.read_to_string(&mut text)"),
            (LOW, "async fn f(timer: &dyn Timer) { timer.sleep(d).await }"),
            (CLI, "println!(); let text = fs::read(path);"),
            (TEST, "static N: AtomicU64 = AtomicU64::new(0); println!(); let f = File::open(p);"),
            ("crates/fak-abi/examples/x.rs", "println!();"),
        ] {
            assert_eq!(line(path, code), [""; 0], "{code}");
        }
    }

    #[test]
    fn a_module_opens_with_what_lives_in_it() {
        assert_eq!(broken(LOW, "\nfn f() {}"), ["opening"]);
        assert_eq!(broken(LOW, ""), ["opening"]);
        assert_eq!(broken(LOW, "#![doc = include_str!(\"../README.md\")]"), [""; 0]);
    }

    #[test]
    fn a_crate_has_one_test_program() {
        assert_eq!(broken("crates/fak-abi/tests/other.rs", "//! Opening."), ["binary"]);
        assert_eq!(broken("crates/fak-abi/tests/it/other.rs", "//! Opening."), [""; 0]);
    }

    #[test]
    fn a_file_has_a_longest_length() {
        let text = |lines: usize| format!("//! Opening.{}", "\n// x".repeat(lines - 1));
        assert_eq!(broken(LOW, &text(LONGEST)), [""; 0]);
        assert_eq!(broken(LOW, &text(LONGEST + 1)), ["length"]);
    }

    #[test]
    fn a_library_root_is_an_index() {
        let lib = "crates/fak-abi/src/lib.rs";
        let index = "#![warn(x)]\nmod a;\npub mod b;\npub use self::{\n    a::A,\n    b::fn_like,\n};\n#[cfg(doctest)]\nstruct Readme;";
        assert_eq!(line(lib, index), [""; 0]);
        for code in [
            "fn f() {}",
            "pub const N: u8 = 0;",
            "pub(crate) struct S;",
            "mod a { }",
            "impl T for S {}",
            "pub async fn f() {}",
        ] {
            assert_eq!(line(lib, code), ["index"], "{code}");
        }
    }
}
