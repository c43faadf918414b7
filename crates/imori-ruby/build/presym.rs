//! Numbers the names that mruby's C code spells, so that none is looked up while a script runs.
//!
//! mruby's own build does this in Ruby, with preprocessed files. Here the macros are found in the text of the files: a
//! name that is found in a comment takes a number for nothing, and one that is not found does not compile.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use crate::source;

/// The macros, and what a name has before and after it.
const MACROS: &[(&str, &str, &str)] = &[
    ("SYM", "", ""),
    ("SYM_B", "", "!"),
    ("SYM_Q", "", "?"),
    ("SYM_E", "", "="),
    ("IVSYM", "@", ""),
    ("CVSYM", "@@", ""),
    ("ERROR_SYM", "", ""),
];

/// The names of operators, as `MRB_OPSYM` takes them.
const OPERATORS: &[(&str, &str)] = &[
    ("not", "!"),
    ("mod", "%"),
    ("and", "&"),
    ("mul", "*"),
    ("add", "+"),
    ("sub", "-"),
    ("div", "/"),
    ("lt", "<"),
    ("gt", ">"),
    ("xor", "^"),
    ("tick", "`"),
    ("or", "|"),
    ("neg", "~"),
    ("neq", "!="),
    ("nmatch", "!~"),
    ("andand", "&&"),
    ("pow", "**"),
    ("plus", "+@"),
    ("minus", "-@"),
    ("lshift", "<<"),
    ("le", "<="),
    ("eq", "=="),
    ("match", "=~"),
    ("ge", ">="),
    ("rshift", ">>"),
    ("aref", "[]"),
    ("oror", "||"),
    ("cmp", "<=>"),
    ("eqq", "==="),
    ("aset", "[]="),
];

/// The C constants of names, in the order in which mruby looks for a name: by its length, then by its bytes.
type Names = BTreeMap<(usize, String), String>;

/// Writes `mruby/presym/id.h` and `table.h` below `include`, for all C files of these folders.
pub(crate) fn write_headers(folders: &[PathBuf], include: &Path) {
    // The compiler passes the names of operators through a macro of its own.
    let operators = OPERATORS.iter();
    let mut names: Names = operators
        .map(|(name, text)| ((text.len(), String::from(*text)), format!("MRB_OPSYM__{name}")))
        .collect();
    for folder in folders {
        for file in source::files_below(folder) {
            // mruby has a few comments that are not UTF-8.
            let text = fs::read(&file).expect("the copy is readable");
            collect(&String::from_utf8_lossy(&text), &mut names);
        }
    }
    let (mut ids, mut lengths, mut texts) = (String::new(), String::new(), String::new());
    for (number, ((length, name), constant)) in (1..).zip(&names) {
        writeln!(ids, "  {constant} = {number},").expect("a String takes all");
        writeln!(lengths, "  {length},").expect("a String takes all");
        writeln!(texts, "  \"{name}\",").expect("a String takes all");
    }
    let count = names.len();
    let folder = include.join("mruby/presym");
    fs::create_dir_all(&folder).expect("OUT_DIR is writable");
    let write = |name: &str, text: String| fs::write(folder.join(name), text).expect("OUT_DIR is writable");
    write("id.h", format!("enum mruby_presym {{\n{ids}}};\n\n#define MRB_PRESYM_MAX {count}\n"));
    write(
        "table.h",
        format!(
            "static const uint16_t presym_length_table[] = {{\n{lengths}}};\n\n\
             static const char * const presym_name_table[] = {{\n{texts}}};\n"
        ),
    );
}

/// Adds the names of a text.
fn collect(text: &str, names: &mut Names) {
    for (at, _) in text.match_indices("MRB_") {
        let Some((head, rest)) = text[at..].split_once('(') else { return };
        let Some((arguments, _)) = rest.split_once(')') else { return };
        // `MRB_SYM_2(mrb, name)` is for another variable than `mrb`.
        let kind = head.trim_start_matches("MRB_").trim_end_matches("_2");
        let name = arguments.rsplit(',').next().unwrap_or_default().trim();
        let Some((_, before, after)) = MACROS.iter().find(|(known, ..)| *known == kind) else { continue };
        let spelled = format!("{before}{name}{after}");
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_name {
            let kind = if kind == "ERROR_SYM" { "SYM" } else { kind };
            names.insert((spelled.len(), spelled), format!("MRB_{kind}__{name}"));
        }
    }
}
