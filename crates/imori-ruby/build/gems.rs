//! The gems that scripts have, and the C table that starts them.

use std::{fmt::Write, path::Path};

/// The gems, each after the ones that it needs.
///
/// None of them reaches files, processes, sockets or the heap, and none evaluates text, loads bytecode or ends the
/// process. `mruby-metaprog` is here because of `send`, `define_singleton_method` and `instance_variable_get`.
pub(crate) const GEMS: &[&str] = &[
    "mruby-sprintf",
    "mruby-math",
    "mruby-time",
    "mruby-struct",
    "mruby-fiber",
    "mruby-enum-ext",
    "mruby-string-ext",
    "mruby-numeric-ext",
    "mruby-array-ext",
    "mruby-hash-ext",
    "mruby-range-ext",
    "mruby-proc-ext",
    "mruby-symbol-ext",
    "mruby-random",
    "mruby-object-ext",
    "mruby-kernel-ext",
    "mruby-class-ext",
    "mruby-enumerator",
    "mruby-enum-lazy",
    "mruby-error",
    "mruby-pack",
    "mruby-metaprog",
    "mruby-catch",
];

/// The C name of a gem's bytecode.
pub(crate) fn bytecode_symbol(gem: &str) -> String {
    format!("gem_{}_irep", gem.replace('-', "_"))
}

/// The C file with `mrb_init_mrblib`, `mrb_init_mrbgems` and `mrb_final_mrbgems`, which mruby calls.
pub(crate) fn table(mruby: &Path) -> String {
    let mut declared =
        String::from("#include <mruby.h>\n#include <mruby/irep.h>\n\nextern const uint8_t mrblib_irep[];\n");
    let mut begun = String::new();
    let mut ended = String::new();
    for gem in GEMS {
        let name = gem.replace('-', "_");
        let folder = mruby.join("mrbgems").join(gem);
        begun += "  ai = mrb_gc_arena_save(mrb);\n";
        if folder.join("src").is_dir() {
            write!(
                declared,
                "void mrb_{name}_gem_init(mrb_state*);\nvoid mrb_{name}_gem_final(mrb_state*);\n"
            )
            .expect("a String takes all");
            writeln!(begun, "  mrb_{name}_gem_init(mrb);").expect("a String takes all");
            ended.insert_str(0, &format!("  mrb_{name}_gem_final(mrb);\n"));
        }
        if folder.join("mrblib").is_dir() {
            let symbol = bytecode_symbol(gem);
            writeln!(declared, "extern const uint8_t {symbol}[];").expect("a String takes all");
            writeln!(begun, "  load(mrb, {symbol});").expect("a String takes all");
        }
        begun += "  mrb_gc_arena_restore(mrb, ai);\n";
    }
    format!(
        "{declared}
/* An exception in the library's own Ruby ends the opening of the VM. */
static void load(mrb_state *mrb, const uint8_t *bytecode)
{{
  mrb_load_irep(mrb, bytecode);
  if (mrb->exc) mrb_exc_raise(mrb, mrb_obj_value(mrb->exc));
}}

void mrb_init_mrblib(mrb_state *mrb) {{ load(mrb, mrblib_irep); }}

void mrb_final_mrbgems(mrb_state *mrb)
{{
{ended}}}

void mrb_init_mrbgems(mrb_state *mrb)
{{
  int ai;
{begun}  mrb_state_atexit(mrb, mrb_final_mrbgems);
}}
"
    )
}
