//! Changes to mruby's source: memory faults of 3.2.0 that were mended later, and two wishes of ours.
//!
//! docs/internals/ruby.md lists the faults with their tests. A patch that does not match is skipped if the source is
//! another than the pinned one, where the fault is mended in another way or the code is different; `required` ones are
//! not skipped.

use std::{env, fs, path::Path};

/// A replacement of the one place in a file where a text stands.
struct Patch {
    file: &'static str,
    from: &'static str,
    to: &'static str,
    required: bool,
}

const PATCHES: &[Patch] = &[
    // Another thread sets the hook while the VM runs, so the load has to be atomic.
    Patch {
        file: "src/vm.c",
        from: "#define CODE_FETCH_HOOK(mrb, irep, pc, regs) if ((mrb)->code_fetch_hook) (mrb)->code_fetch_hook((mrb), (irep), (pc), (regs));",
        to: "#define CODE_FETCH_HOOK(mrb, irep, pc, regs) do { \\
  void (*imori_hook)(struct mrb_state*, const struct mrb_irep*, const mrb_code*, mrb_value*) = \\
    __atomic_load_n(&(mrb)->code_fetch_hook, __ATOMIC_RELAXED); \\
  if (__builtin_expect(imori_hook != NULL, 0)) imori_hook((mrb), (irep), (pc), (regs)); \\
} while (0)",
        required: true,
    },
    // A block that runs with a receiver without singleton class, as in `1.instance_exec { }`, ended the whole run when
    // it returned, because a fiber that C has resumed took it for a switch of fibers. `Fiber#transfer`, for which the
    // condition is, does not exist here.
    Patch {
        file: "src/vm.c",
        from: r#"        if (mrb->c->vmexec && !CI_TARGET_CLASS(ci)) {"#,
        to: r#"        if (FALSE) {"#,
        required: false,
    },
    // A block without its variables crashes, so that its last ones are saved even when the heap is full.
    Patch {
        file: "src/vm.c",
        from: r#"  mrb_value *p = (mrb_value *)mrb_malloc_simple(mrb, sizeof(mrb_value)*len);"#,
        to: r#"#ifdef MRB_USE_DEBUG_HOOK
  extern void *imori_allocate_reserved(mrb_state*, size_t);
  mrb_value *p = (mrb_value *)imori_allocate_reserved(mrb, sizeof(mrb_value)*len);
#else
  mrb_value *p = (mrb_value *)mrb_malloc_simple(mrb, sizeof(mrb_value)*len);
#endif"#,
        required: true,
    },
    // Keyword arguments of a missing method were read from behind the arguments.
    Patch {
        file: "src/vm.c",
        from: r#"  argv = &ci->stack[1];         /* maybe reallocated */
  argv[0] = args;
  if (ci->nk == 0) {
    argv[1] = blk;
  }
  else {
    mrb_assert(ci->nk == 15);
    argv[1] = argv[ci->n];
    argv[2] = blk;
  }
"#,
        to: r#"  argv = &ci->stack[1];         /* maybe reallocated */
  if (ci->nk == 0) {
    argv[1] = blk;
  }
  else {
    mrb_assert(ci->nk == 15);
    if (ci->n != CALL_MAXARGS) argv[1] = argv[ci->n];
    argv[2] = blk;
  }
  argv[0] = args;
"#,
        required: false,
    },
    // What stands for keyword arguments may be no hash.
    Patch {
        file: "src/vm.c",
        from: r#"        if (!mrb_nil_p(kdict) && mrb_hash_size(mrb, kdict) > 0) {"#,
        to: r#"        if (!mrb_nil_p(kdict) && mrb_hash_p(kdict) && mrb_hash_size(mrb, kdict) > 0) {"#,
        required: false,
    },
    // The arena grew while the new object was in no place that the collector knows.
    Patch {
        file: "src/gc.c",
        from: r#"  if (gc->free_heaps == NULL) {
    add_heap(mrb, gc);
  }

  p = gc->free_heaps->freelist;"#,
        to: r#"#ifndef MRB_GC_FIXED_ARENA
  if (gc->arena_idx >= gc->arena_capa) {
    int newcapa = gc->arena_capa * 3 / 2;
    gc->arena = (struct RBasic**)mrb_realloc(mrb, gc->arena, sizeof(struct RBasic*)*newcapa);
    gc->arena_capa = newcapa;
  }
#endif
  if (gc->free_heaps == NULL) {
    add_heap(mrb, gc);
  }

  p = gc->free_heaps->freelist;"#,
        required: false,
    },
    // A fiber without memory for its stack was left half made.
    Patch {
        file: "mrbgems/mruby-fiber/src/fiber.c",
        from: r#"  *c = mrb_context_zero;
  f->cxt = c;
"#,
        to: r#"  *c = mrb_context_zero;
"#,
        required: false,
    },
    // See above.
    Patch {
        file: "mrbgems/mruby-fiber/src/fiber.c",
        from: r#"  c->stbase = (mrb_value *)mrb_malloc(mrb, slen*sizeof(mrb_value));
"#,
        to: r#"  c->stbase = (mrb_value *)mrb_malloc_simple(mrb, slen*sizeof(mrb_value));
  c->cibase = (mrb_callinfo *)mrb_malloc_simple(mrb, FIBER_CI_INIT_SIZE*sizeof(mrb_callinfo));
  if (!c->stbase || !c->cibase) {
    mrb_free(mrb, c->stbase);
    mrb_free(mrb, c->cibase);
    mrb_free(mrb, c);
    mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
  }
  memset(c->cibase, 0, FIBER_CI_INIT_SIZE*sizeof(mrb_callinfo));
  f->cxt = c;
"#,
        required: false,
    },
    // See above.
    Patch {
        file: "mrbgems/mruby-fiber/src/fiber.c",
        from: r#"  c->cibase = (mrb_callinfo *)mrb_calloc(mrb, FIBER_CI_INIT_SIZE, sizeof(mrb_callinfo));
"#,
        to: r#""#,
        required: false,
    },
    // See above.
    Patch {
        file: "mrbgems/mruby-fiber/src/fiber.c",
        from: r#"#include <mruby/proc.h>
"#,
        to: r#"#include <mruby/proc.h>
#include <string.h>
"#,
        required: false,
    },
    // `5.divmod(2.5)` took the integer for a pointer to a float.
    Patch {
        file: "src/numeric.c",
        from: r#"  mrb_raise(mrb, E_TYPE_ERROR, "non integer divmod");
#else
  return flo_divmod(mrb, x);"#,
        to: r#"  mrb_raise(mrb, E_TYPE_ERROR, "non integer divmod");
#else
  return flo_divmod(mrb, mrb_float_value(mrb, (mrb_float)mrb_integer(x)));"#,
        required: false,
    },
    // An array that was put into itself was written beyond its end.
    Patch {
        file: "src/array.c",
        from: r#"      r = ary_dup(mrb, a);
      argv = ARY_PTR(r);
"#,
        to: r#"      r = ary_dup(mrb, a);
      argv = ARY_PTR(r);
      ary_modify(mrb, a);
"#,
        required: false,
    },
    // `Array#join` recurses in C.
    Patch {
        file: "src/array.c",
        from: r#"  mrb_ary_push(mrb, list, ary);

  result = mrb_str_new_capa(mrb, 64);
"#,
        to: r#"  if (RARRAY_LEN(list) >= 256) {
    mrb_raise(mrb, E_ARGUMENT_ERROR, "array is too deep to join");
  }
  mrb_ary_push(mrb, list, ary);

  result = mrb_str_new_capa(mrb, 64);
"#,
        required: false,
    },
    // A block that deletes entries had the iteration read beyond the table.
    Patch {
        file: "src/hash.c",
        from: r#"  ea_each(h_e_ea__, h_e_size__, entry_var, code);                             \
} while (0)
"#,
        to: r#"  hash_entry *entry_var = h_e_ea__;                                           \
  hash_entry *h_e_end__ = entry_var + (h_ar_p(h__) ? ar_ea_capa(h__) : ht_ea_capa(h__)); \
  for (; 0 < h_e_size__ && entry_var < h_e_end__; entry_var++) {              \
    if (entry_deleted_p(entry_var)) continue;                                 \
    --h_e_size__;                                                             \
    code;                                                                     \
  }                                                                           \
} while (0)
"#,
        required: false,
    },
    // See above: entries beyond the used ones count as deleted.
    Patch {
        file: "src/hash.c",
        from: r#"ea_resize(mrb_state *mrb, hash_entry *ea, uint32_t capa)
{
  return (hash_entry*)mrb_realloc(mrb, ea, sizeof(hash_entry) * capa);
}
"#,
        to: r#"ea_resize(mrb_state *mrb, hash_entry *ea, uint32_t old_capa, uint32_t capa)
{
  ea = (hash_entry*)mrb_realloc(mrb, ea, sizeof(hash_entry) * capa);
  for (uint32_t i = old_capa; i < capa; i++) entry_delete(&ea[i]);
  return ea;
}
"#,
        required: false,
    },
    // See above: entries beyond the used ones count as deleted.
    Patch {
        file: "src/hash.c",
        from: r#"    w_entry++;
  });
}

/*"#,
        to: r#"    w_entry++;
  });
  for (hash_entry *end = ea + n_used; w_entry < end; w_entry++) entry_delete(w_entry);
}

/*"#,
        required: false,
    },
    // See above: entries beyond the used ones count as deleted.
    Patch {
        file: "src/hash.c",
        from: r#"  *capap = ea_next_capa_for(*capap, max_capa);
  return ea_resize(mrb, ea, *capap);"#,
        to: r#"  uint32_t old_capa = *capap;
  *capap = ea_next_capa_for(old_capa, max_capa);
  return ea_resize(mrb, ea, old_capa, *capap);"#,
        required: false,
    },
    // See above: entries beyond the used ones count as deleted.
    Patch {
        file: "src/hash.c",
        from: r#"    hash_entry *ea = ea_resize(mrb, NULL, size);"#,
        to: r#"    hash_entry *ea = ea_resize(mrb, NULL, 0, size);"#,
        required: false,
    },
    // A block that adds entries moved the table under the iteration.
    Patch {
        file: "src/hash.c",
        from: r#"    if (func(mrb, entry->key, entry->val, data) != 0) return;
"#,
        to: r#"    int n__ = 0;
    h_check_modified(mrb, h, {
      n__ = func(mrb, entry->key, entry->val, data);
    });
    if (n__ != 0) return;
"#,
        required: false,
    },
    // The search read beyond the string, and took a time that is the product of both lengths.
    Patch {
        file: "src/string.c",
        from: r#"  return mrb_memsearch_qs((const unsigned char *)x0, m, (const unsigned char *)y0, n);
"#,
        to: r#"  {
    extern void *memmem(const void*, size_t, const void*, size_t);
    const unsigned char *found = (const unsigned char *)memmem(y0, (size_t)n, x0, (size_t)m);
    return found ? (mrb_int)(found - y) : -1;
  }
"#,
        required: false,
    },
    // The position of a replacement was not checked.
    Patch {
        file: "src/string.c",
        from: r#"  mrb_get_args(mrb, "ssi", &p, &plen, &match, &mlen, &found);
  result = mrb_str_new(mrb, 0, 0);"#,
        to: r#"  mrb_get_args(mrb, "ssi", &p, &plen, &match, &mlen, &found);
  if (found < 0 || RSTRING_LEN(self) < found) {
    mrb_raise(mrb, E_RUNTIME_ERROR, "argument out of range");
  }
  result = mrb_str_new(mrb, 0, 0);"#,
        required: false,
    },
    // CVE-2025-7207: a scope without code had no registers for its variables.
    Patch {
        file: "mrbgems/mruby-compiler/core/codegen.c",
        from: r#"  s->nlocals = s->sp;
  if (nlv) {"#,
        to: r#"  s->nlocals = s->nregs = s->sp;
  if (nlv) {"#,
        required: false,
    },
    // The arguments moved while members were set.
    Patch {
        file: "mrbgems/mruby-struct/src/struct.c",
        from: r#"  mrb_get_args(mrb, "*!", &argv, &argc);"#,
        to: r#"  mrb_get_args(mrb, "*", &argv, &argc);"#,
        required: false,
    },
    // A `to_s` that changes the format freed it while it was read.
    Patch {
        file: "mrbgems/mruby-sprintf/src/sprintf.c",
        from: r#"  mrb_ensure_string_type(mrb, fmt);
  p = RSTRING_PTR(fmt);"#,
        to: r#"  mrb_ensure_string_type(mrb, fmt);
  fmt = mrb_str_dup(mrb, fmt);
  p = RSTRING_PTR(fmt);"#,
        required: false,
    },
    // A width or precision of a float near 2 GiB overflowed the length.
    Patch {
        file: "mrbgems/mruby-sprintf/src/sprintf.c",
        from: r#"        if (need > MRB_INT_MAX - ((flags&FPREC) ? prec : 6)) {"#,
        to: r#"        if (need > INT_MAX - ((flags&FPREC) ? prec : 6)) {"#,
        required: false,
    },
    // See above.
    Patch {
        file: "mrbgems/mruby-sprintf/src/sprintf.c",
        from: r#"        if ((mrb_int)need > MRB_INT_MAX - 20) {"#,
        to: r#"        if ((mrb_int)need > INT_MAX - 20) {"#,
        required: false,
    },
    // A negative length, such as `Random#bytes(-1)` gives, was taken for the length of a short string.
    Patch {
        file: "src/string.c",
        from: r#"str_new(mrb_state *mrb, const char *p, mrb_int len)
{
  if (RSTR_EMBEDDABLE_P(len)) {"#,
        to: r#"str_new(mrb_state *mrb, const char *p, mrb_int len)
{
  str_check_too_big(mrb, len);
  if (RSTR_EMBEDDABLE_P(len)) {"#,
        required: false,
    },
    // See above.
    Patch {
        file: "src/string.c",
        from: r#"mrb_str_new_capa(mrb_state *mrb, mrb_int capa)
{
  struct RString *s = mrb_obj_alloc_string(mrb);
"#,
        to: r#"mrb_str_new_capa(mrb_state *mrb, mrb_int capa)
{
  str_check_too_big(mrb, capa);
  struct RString *s = mrb_obj_alloc_string(mrb);
"#,
        required: false,
    },
    // The search by characters took the product of both lengths too.
    Patch {
        file: "src/string.c",
        from: r#"  /* Based on Quick Search algorithm (Boyer-Moore-Horspool algorithm) */

  ptrdiff_t qstable[1 << CHAR_BIT];

  /* Preprocessing */
  {
    mrb_int i;

    for (i = 0; i < 1 << CHAR_BIT; i++) {
      qstable[i] = slen;
    }
    for (i = 0; i < slen; i++) {
      qstable[(unsigned char)s[i]] = slen - (i + 1);
    }
  }

  /* Searching */
  while (p < pend && pend - p >= slen) {
    const char *pivot;

    if (memcmp(p, s, slen) == 0) {
      return off;
    }

    pivot = p + qstable[(unsigned char)p[slen - 1]];
    if (pivot >= pend || pivot < p /* overflowed */) { return -1; }

    do {
      p += mrb_utf8len(p, pend);
      off++;
    } while (p < pivot);
  }

"#,
        to: r#"  extern void *memmem(const void*, size_t, const void*, size_t);
  const char *found = (const char*)memmem(p, (size_t)(pend - p), s, (size_t)slen);

  while (found) {
    while (p < found) {
      p += mrb_utf8len(p, pend);
      off++;
    }
    if (p == found) return off;
    /* The bytes found begin within a character. */
    found = p < pend ? (const char*)memmem(p, (size_t)(pend - p), s, (size_t)slen) : NULL;
  }

"#,
        required: false,
    },
    // `2.5 << 2**62` doubled a number for years.
    Patch {
        file: "src/numeric.c",
        from: r#"    while (width--) {
      val *= 2;"#,
        to: r#"    while (width-- && !isinf(val) && val != 0) {
      val *= 2;"#,
        required: false,
    },
];

/// Applies all patches to the copy of the source in `mruby`.
pub(crate) fn apply(mruby: &Path) {
    let is_pinned = env::var_os("IMORI_MRUBY_SOURCE").is_none();
    for patch in PATCHES {
        let file = mruby.join(patch.file);
        let text = fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("cannot read `{}`: {error}", file.display()));
        match text.matches(patch.from).count() {
            1 => fs::write(&file, text.replacen(patch.from, patch.to, 1)).expect("OUT_DIR is writable"),
            0 if !is_pinned && !patch.required => {}
            found => panic!(
                "a patch of `{}` matches {found} places; mend build/patches.rs:\n{}",
                patch.file, patch.from
            ),
        }
    }
}
