//! The reader and the writer against `serde_json`, the reference, on random documents and on mutilated ones.

use proptest::prelude::*;

use super::*;

/// A random document: its text (odd white space and escapes included) and what the reference reads in it.
fn document() -> impl Strategy<Value = String> {
    let string = prop_oneof![
        "[ -~]{0,8}",
        "\\PC{0,6}",
        prop::collection::vec(
            prop_oneof![
                Just('<'),
                Just('&'),
                Just('\u{2028}'),
                Just('\u{2029}'),
                Just('é'),
                Just('漢'),
                Just('😀'),
                Just('"'),
                Just('\\'),
                Just('\n'),
                Just('\u{1}'),
                Just('\u{7f}'),
            ],
            0..6
        )
        .prop_map(|chars| chars.into_iter().collect::<String>()),
    ]
    .boxed();
    let quoted = (string, any::<bool>()).prop_map(|(s, ascii)| {
        if ascii {
            let units: String = s.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
            format!("\"{units}\"")
        } else {
            serde_json::to_string(&s).unwrap()
        }
    });
    let quoted = quoted.boxed();
    let leaf = prop_oneof![
        quoted.clone(),
        any::<u64>().prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| format!("{n:e}")),
        Just("-0".to_owned()),
        Just("18446744073709551616".to_owned()),
        Just("true".to_owned()),
        Just("null".to_owned()),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let space = prop_oneof![Just(""), Just(" "), Just("\n\t\r ")];
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..6), space.clone())
                .prop_map(|(items, space)| format!("[{space}{}{space}]", items.join(&format!("{space},")))),
            (prop::collection::vec((quoted.clone(), inner), 0..6), space).prop_map(|(items, space)| {
                let members: Vec<String> =
                    items.iter().map(|(name, value)| format!("{name}{space}:{value}")).collect();
                format!("{{{space}{}{space}}}", members.join(&format!("{space},{space}")))
            }),
        ]
    })
}

fn same(ours: &Value, theirs: &serde_json::Value) -> bool {
    match (ours.kind(), theirs) {
        (Kind::Null, serde_json::Value::Null) => true,
        (Kind::Bool(a), serde_json::Value::Bool(b)) => a == b,
        (Kind::String(a), serde_json::Value::String(b)) => **a == **b,
        (Kind::Number(a), serde_json::Value::Number(b)) => match a {
            Number::U64(n) => b.as_u64() == Some(*n) || (*n == 0 && b.as_f64() == Some(0.0)),
            Number::I64(n) => b.as_i64() == Some(*n),
            Number::F64(n) => b.is_f64() && b.as_f64() == Some(*n),
        },
        (Kind::Array(a), serde_json::Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Kind::Object(a), serde_json::Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|m| b.get(&*m.name).is_some_and(|theirs| same(&m.value, theirs)))
        }
        _ => false,
    }
}

fn is_stricter(problem: &Problem) -> bool {
    matches!(problem, Problem::DuplicateMember { .. } | Problem::TooDeep { .. } | Problem::TooLarge { .. })
}

fn compare(text: &[u8]) -> Result<(), TestCaseError> {
    let ours = Document::parse(text, &Limits::default());
    let theirs = serde_json::from_slice::<serde_json::Value>(text);
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => {
            let ours = ours.into_value();
            prop_assert!(same(&ours, &theirs));
            // What is written must read back as the same tree, and be a fixed point of writing.
            let mut once = Vec::new();
            write_value(&mut once, &ours);
            let again = Document::parse(&once, &Limits::default()).unwrap().into_value();
            let mut twice = Vec::new();
            write_value(&mut twice, &again);
            prop_assert_eq!(&once, &twice);
            prop_assert!(!once.iter().any(|b| matches!(b, b'<' | b'>' | b'&' | 0..0x20)));
        }
        (Err(_), Err(_)) => {}
        (Err(ours), Ok(_)) => prop_assert!(is_stricter(ours.problem()), "we refuse: {}", ours),
        (Ok(_), Err(theirs)) => {
            prop_assert!(false, "we accept what the reference refuses: {theirs}");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn whole_documents_read_alike(text in document()) {
        compare(text.as_bytes())?;
    }

    #[test]
    fn mutilated_documents_are_refused_alike(
        text in document(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            any::<u8>(),
            prop::sample::select(b"{}[],:\"\\u0dD8eE+-. \n".to_vec()),
        ]), 1..4),
    ) {
        let mut text = text.into_bytes();
        for (index, byte) in edits {
            if !text.is_empty() {
                let index = index.index(text.len());
                text[index] = byte;
            }
        }
        compare(&text)?;
    }

    #[test]
    fn a_stream_hands_out_what_the_document_holds(items in prop::collection::vec(document(), 0..5)) {
        let text = format!("[{}]", items.join(" ,\n"));
        prop_assume!(Document::parse(text.as_bytes(), &Limits::default()).is_ok());
        let mut stream = Stream::new(text.as_bytes(), Limits::default());
        stream.begin_array().unwrap();
        let mut got = Vec::new();
        while stream.next_element().unwrap() {
            got.push(String::from_utf8(stream.capture().unwrap().text().to_vec()).unwrap());
        }
        stream.end().unwrap();
        prop_assert_eq!(got, items);
    }
}

#[test]
fn the_strict_refusals() {
    let deep = "[".repeat(65) + &"]".repeat(65);
    let many: String = (0..40).map(|i| format!("\"m{}\":0,", i % 39)).collect();
    let many = format!("{{{many}\"last\":1}}");
    for (text, problem, path) in [
        (r#"{"a":{"b":1,"b":2}}"#.as_bytes(), Problem::DuplicateMember { name: "b".into() }, "/a"),
        (br#"{"a":1,"\u0061":2}"#, Problem::DuplicateMember { name: "a".into() }, ""),
        (many.as_bytes(), Problem::DuplicateMember { name: "m0".into() }, ""),
        (b"[1,\"\xff\"]", Problem::InvalidUtf8, ""),
        (br#"["\ud800"]"#, Problem::LoneSurrogate, "/0"),
        (br#"{"n":[0,1e400]}"#, Problem::NumberOutOfRange, "/n/1"),
        (b"{} {}", Problem::TrailingData, ""),
        (deep.as_bytes(), Problem::TooDeep { limit: 64 }, &"/0".repeat(64)),
    ] {
        let error = Document::parse(text, &Limits::default()).unwrap_err();
        assert_eq!((error.problem(), error.path()), (&problem, path));
    }
    let small = Limits { bytes: 3, ..Limits::default() };
    let error = Document::parse(b"1234", &small).unwrap_err();
    assert_eq!(*error.problem(), Problem::TooLarge { limit: 3 });
}
