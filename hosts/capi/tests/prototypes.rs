//! The header's prototypes of the three forms of every collective, against the descriptions that the forms are made from.

/// The files that describe collectives by `forms!`.
const DESCRIBED: [&str; 3] =
    [include_str!("../src/moves.rs"), include_str!("../src/typed.rs"), include_str!("../src/reductions.rs")];

/// For a parameter's type in Rust its type in C, up to the name.
const TYPES: [(&str, &str); 9] = [
    ("c_int", "int "),
    ("u32", "uint32_t "),
    ("u64", "uint64_t "),
    ("*const u64", "const uint64_t *"),
    ("*const c_void", "const void *"),
    ("*mut c_void", "void *"),
    ("*const COp", "const unisono_op *"),
    ("*const Type", "const unisono_type *"),
    ("*const *const Type", "const unisono_type *const *"),
];

fn parameter(rust: &str) -> String {
    let (name, kind) = rust.split_once(": ").unwrap_or_else(|| panic!("{rust:?} is not a parameter"));
    let known = TYPES.iter().find(|(rust, _)| *rust == kind);
    let (_, c) = known.unwrap_or_else(|| panic!("{name} is of type {kind}, which this test does not know"));
    // `type` is a keyword in Rust.
    let name = if kind.ends_with("Type") { name.replace("datatype", "type") } else { name.to_string() };
    format!("{c}{name}")
}

/// The prototypes of a description `blocking, start, init: make(parameters)`.
fn prototypes(description: &str) -> [String; 3] {
    let (names, make) = description.split_once(": ").expect("names and a function");
    let parameters = make.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).expect("its parameters");
    let mut all = vec!["unisono_comm *comm".to_string()];
    all.extend(parameters.split(',').map(str::trim).filter(|rust| !rust.is_empty()).map(parameter));
    let mut forms = names.split(", ");
    let mut prototype = |more: &[&str]| {
        let parameters: Vec<_> = all.iter().map(String::as_str).chain(more.iter().copied()).collect();
        format!("int {}({});", forms.next().expect("three names"), parameters.join(", "))
    };
    [prototype(&[]), prototype(&["unisono_request **request"]), prototype(&["unisono_request **request"])]
}

/// The text with each line break and indentation replaced by a space.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_header_declares_the_parameters_of_every_form() {
    let header = on_one_line(include_str!("../include/unisono.h"));
    for source in DESCRIBED {
        let (_, rest) = source.split_once("\nforms! {\n").expect("the descriptions");
        let (descriptions, _) = rest.split_once("\n}\n").expect("their end");
        let code: String = descriptions.lines().filter(|line| !line.trim().starts_with("///")).collect();
        let descriptions: Vec<_> = code.split(';').map(on_one_line).filter(|text| !text.is_empty()).collect();
        assert!(!descriptions.is_empty());
        for prototype in descriptions.iter().flat_map(|description| prototypes(description)) {
            assert!(header.contains(&prototype), "unisono.h does not say: {prototype}");
        }
    }
}
