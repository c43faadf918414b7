/*
 * The only C of Imori: a VM of mruby as src/ffi.rs sees it.
 *
 * mruby raises by `longjmp`, which must not pass a frame of Rust. So every function that Rust calls protects what may
 * raise, and every callback into Rust has returned before an exception is thrown here. Values cross as bytes, which
 * src/codec.rs describes; no pointer into the VM's heap leaves this file.
 */

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>

#include <mruby.h>
#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/compile.h>
#include <mruby/data.h>
#include <mruby/error.h>
#include <mruby/hash.h>
#include <mruby/internal.h>
#include <mruby/proc.h>
#include <mruby/string.h>
#include <mruby/variable.h>

/* Levels of arrays and hashes in one value, and bytes of one encoded value. */
#define DEPTH_MAX 64
#define ENCODED_BYTES_MAX (64u << 20)

enum step { STEP_FINISHED, STEP_FAILED, STEP_YIELDED, STEP_LOST };
enum reply { REPLY_VALUE, REPLY_ERROR, REPLY_OPERATION };
enum verdict { VERDICT_GO_ON, VERDICT_RAISE, VERDICT_LOSE };

/* Rust's side; none of these unwinds. */
extern int imori_ruby_call(void *host, uint32_t function, const uint8_t *arguments, size_t length, const uint8_t **reply, size_t *reply_length);
extern int imori_ruby_overdue(void *host);
extern void imori_ruby_claim(void *host, uint64_t handle);
extern void imori_ruby_release(void *host, uint64_t handle);

struct imori_vm {
  mrb_state *mrb;
  void *host;
  /* The heap in bytes, and its limits; zero is none. */
  size_t heap, heap_peak, heap_max, block_max;
  /* Fails the allocation of this number, for tests; zero is none. */
  size_t failing_allocation, allocations;
  /* Whether the block that is allocated may be over the limit. */
  mrb_bool is_reserved;
  /* What the last call returned to Rust. */
  uint8_t *out;
  size_t out_length, out_capacity;
  /* The exception that is described at present; the arena keeps it. */
  mrb_value failure;
  /* Object with the functions below, reachable from the prelude only; and what the VM has to keep alive. */
  mrb_value core, fibers, scripts, arguments, handle_classes;
  struct RClass *cpu_error, *cancelled_error;
  /* State of the step that runs. */
  mrb_int fiber;
  mrb_int script;
  mrb_bool is_pending, has_result, is_lost;
  enum step result;
  const uint8_t *outcome;
  size_t outcome_length;
  int outcome_reply;
  /* Where a lost VM is left to. */
  jmp_buf escape;
};

/* Memory. */

static void *
allocate(mrb_state *mrb, void *block, size_t size, void *user)
{
  struct imori_vm *vm = (struct imori_vm*)user;
  size_t before = block ? malloc_usable_size(block) : 0;
  void *moved;

  if (size == 0) {
    vm->heap -= before;
    free(block);
    return NULL;
  }
  if (size > before && !vm->is_reserved) {
    if (vm->block_max && size > vm->block_max) return NULL;
    if (vm->heap_max && vm->heap - before + size > vm->heap_max) return NULL;
    /* The next one fails too: mruby tries again after a collection. */
    if (vm->failing_allocation && ++vm->allocations >= vm->failing_allocation
        && vm->allocations <= vm->failing_allocation + 1) {
      return NULL;
    }
  }
  moved = realloc(block, size);
  if (!moved) return NULL;
  vm->heap = vm->heap - before + malloc_usable_size(moved);
  if (vm->heap > vm->heap_peak) vm->heap_peak = vm->heap;
  return moved;
}

/* What mruby takes here is small, and a fault if it cannot be had; called by a patch of src/vm.c. */
void *
imori_allocate_reserved(mrb_state *mrb, size_t size)
{
  struct imori_vm *vm = (struct imori_vm*)mrb->allocf_ud;
  void *block;

  vm->is_reserved = TRUE;
  block = mrb_malloc_simple(mrb, size);
  vm->is_reserved = FALSE;
  return block;
}

/* Values as bytes. */

static mrb_bool
put(struct imori_vm *vm, const void *bytes, size_t length)
{
  if (length > ENCODED_BYTES_MAX - vm->out_length) return FALSE;
  if (vm->out_length + length > vm->out_capacity) {
    size_t capacity = vm->out_capacity ? vm->out_capacity : 256;
    uint8_t *out;
    while (capacity < vm->out_length + length) capacity *= 2;
    out = (uint8_t*)realloc(vm->out, capacity);
    if (!out) return FALSE;
    vm->out = out;
    vm->out_capacity = capacity;
  }
  if (length > 0) memcpy(vm->out + vm->out_length, bytes, length);
  vm->out_length += length;
  return TRUE;
}

static mrb_bool
put_tagged(struct imori_vm *vm, char tag, const void *bytes, size_t length)
{
  return put(vm, &tag, 1) && put(vm, bytes, length);
}

static mrb_bool
put_text(struct imori_vm *vm, char tag, const char *bytes, size_t length)
{
  uint32_t count = (uint32_t)length;
  return put_tagged(vm, tag, &count, sizeof count) && put(vm, bytes, length);
}

static mrb_bool
put_count(struct imori_vm *vm, char tag, size_t length)
{
  uint32_t count = (uint32_t)length;
  return put_tagged(vm, tag, &count, sizeof count);
}

struct handle {
  uint32_t class_index;
  uint64_t id;
};

static void
handle_free(mrb_state *mrb, void *data)
{
  struct imori_vm *vm = (struct imori_vm*)mrb->ud;
  struct handle *handle = (struct handle*)data;
  imori_ruby_release(vm->host, handle->id);
  mrb_free(mrb, handle);
}

static const mrb_data_type handle_type = { "Imori::Handle", handle_free };

struct hash_walk {
  struct imori_vm *vm;
  int depth;
  mrb_bool fits;
  uint32_t count;
};

static mrb_bool put_value(struct imori_vm *vm, mrb_value value, int depth);

static int
put_pair(mrb_state *mrb, mrb_value key, mrb_value value, void *data)
{
  struct hash_walk *walk = (struct hash_walk*)data;
  walk->fits = put_value(walk->vm, key, walk->depth) && put_value(walk->vm, value, walk->depth);
  walk->count++;
  return walk->fits ? 0 : 1;
}

/* Appends a value; false if it is too large or too deep. Calls no Ruby, and raises nothing. */
static mrb_bool
put_value(struct imori_vm *vm, mrb_value value, int depth)
{
  mrb_state *mrb = vm->mrb;

  if (depth > DEPTH_MAX) return FALSE;
  switch (mrb_type(value)) {
  case MRB_TT_FALSE:
    return put(vm, mrb_nil_p(value) ? "n" : "f", 1);
  case MRB_TT_TRUE:
    return put(vm, "t", 1);
  case MRB_TT_INTEGER: {
    int64_t number = mrb_integer(value);
    return put_tagged(vm, 'i', &number, sizeof number);
  }
  case MRB_TT_FLOAT: {
    double number = mrb_float(value);
    return put_tagged(vm, 'd', &number, sizeof number);
  }
  case MRB_TT_SYMBOL: {
    mrb_int length;
    const char *name = mrb_sym_name_len(mrb, mrb_symbol(value), &length);
    return put_text(vm, 'y', name ? name : "", name ? (size_t)length : 0);
  }
  case MRB_TT_STRING:
    return put_text(vm, 's', RSTRING_PTR(value), (size_t)RSTRING_LEN(value));
  case MRB_TT_ARRAY:
    if (!put_count(vm, 'a', (size_t)RARRAY_LEN(value))) return FALSE;
    for (mrb_int i = 0; i < RARRAY_LEN(value); i++) {
      if (!put_value(vm, RARRAY_PTR(value)[i], depth + 1)) return FALSE;
    }
    return TRUE;
  case MRB_TT_HASH: {
    struct hash_walk walk = { vm, depth + 1, TRUE, 0 };
    size_t at;
    if (!put_count(vm, 'h', 0)) return FALSE;
    at = vm->out_length - sizeof(uint32_t);
    mrb_hash_foreach(mrb, mrb_hash_ptr(value), put_pair, &walk);
    memcpy(vm->out + at, &walk.count, sizeof walk.count);
    return walk.fits;
  }
  case MRB_TT_CDATA:
    if (DATA_TYPE(value) == &handle_type && DATA_PTR(value)) {
      struct handle *handle = (struct handle*)DATA_PTR(value);
      return put_tagged(vm, 'H', &handle->class_index, sizeof handle->class_index)
        && put(vm, &handle->id, sizeof handle->id);
    }
    /* fall through */
  default: {
    const char *name = mrb_obj_classname(mrb, value);
    return put_text(vm, 'o', name ? name : "Object", strlen(name ? name : "Object"));
  }
  }
}

static void
encode(struct imori_vm *vm, mrb_value value)
{
  mrb_state *mrb = vm->mrb;

  vm->out_length = 0;
  if (!put_value(vm, value, 0)) {
    mrb_raise(mrb, E_ARGUMENT_ERROR, "value is over 64 levels deep or 64 MiB large; pass a smaller one");
  }
}

static uint32_t
take_count(const uint8_t **at)
{
  uint32_t count;
  memcpy(&count, *at, sizeof count);
  *at += sizeof count;
  return count;
}

/* Makes the value of bytes that Rust wrote. Raises if there is no memory. */
static mrb_value
decode(struct imori_vm *vm, const uint8_t **at)
{
  mrb_state *mrb = vm->mrb;
  uint8_t tag = *(*at)++;

  switch (tag) {
  case 't':
    return mrb_true_value();
  case 'f':
    return mrb_false_value();
  case 'i': {
    int64_t number;
    memcpy(&number, *at, sizeof number);
    *at += sizeof number;
    return mrb_int_value(mrb, number);
  }
  case 'd': {
    double number;
    memcpy(&number, *at, sizeof number);
    *at += sizeof number;
    return mrb_float_value(mrb, number);
  }
  case 'y':
  case 's': {
    uint32_t count = take_count(at);
    const char *bytes = (const char*)*at;
    *at += count;
    if (tag == 'y') return mrb_symbol_value(mrb_intern(mrb, bytes, count));
    return mrb_str_new(mrb, bytes, count);
  }
  case 'a': {
    uint32_t count = take_count(at);
    mrb_value array = mrb_ary_new_capa(mrb, count);
    int arena = mrb_gc_arena_save(mrb);
    for (uint32_t i = 0; i < count; i++) {
      mrb_ary_push(mrb, array, decode(vm, at));
      mrb_gc_arena_restore(mrb, arena);
    }
    return array;
  }
  case 'h': {
    uint32_t count = take_count(at);
    mrb_value hash = mrb_hash_new_capa(mrb, count);
    int arena = mrb_gc_arena_save(mrb);
    for (uint32_t i = 0; i < count; i++) {
      mrb_value key = decode(vm, at);
      mrb_value value = decode(vm, at);
      mrb_hash_set(mrb, hash, key, value);
      mrb_gc_arena_restore(mrb, arena);
    }
    return hash;
  }
  case 'H': {
    struct handle *handle = (struct handle*)mrb_malloc(mrb, sizeof *handle);
    mrb_value class;
    struct RData *object;
    handle->class_index = take_count(at);
    memcpy(&handle->id, *at, sizeof handle->id);
    *at += sizeof handle->id;
    class = mrb_ary_ref(mrb, vm->handle_classes, handle->class_index);
    /* An object without data, if there is no memory for it, so that nothing is freed twice. */
    object = mrb_data_object_alloc(mrb, mrb_class_ptr(class), NULL, &handle_type);
    object->data = handle;
    imori_ruby_claim(vm->host, handle->id);
    return mrb_obj_value(object);
  }
  default:
    return mrb_nil_value();
  }
}

/* Raises the error that bytes hold: an array of class name and message. */
static mrb_noreturn void
raise_encoded(struct imori_vm *vm, const uint8_t *bytes)
{
  mrb_state *mrb = vm->mrb;
  mrb_value error = decode(vm, &bytes);
  mrb_value path = mrb_ary_ref(mrb, error, 0);
  mrb_value message = mrb_ary_ref(mrb, error, 1);
  mrb_value class = mrb_obj_value(mrb->object_class);
  const char *at = RSTRING_PTR(path), *end = at + RSTRING_LEN(path);

  while (at < end) {
    const char *colon = at;
    mrb_sym name;
    while (colon < end && *colon != ':') colon++;
    name = mrb_intern(mrb, at, colon - at);
    if (!mrb_const_defined_at(mrb, class, name)) break;
    class = mrb_const_get(mrb, class, name);
    if (!mrb_class_p(class) && !mrb_module_p(class)) break;
    at = colon + 2;
  }
  if (at < end || !mrb_class_p(class) || MRB_INSTANCE_TT(mrb_class_ptr(class)) != MRB_TT_EXCEPTION) {
    class = mrb_obj_value(E_RUNTIME_ERROR);
  }
  mrb_exc_raise(mrb, mrb_exc_new_str(mrb, mrb_class_ptr(class), message));
}

/* Native functions. */

static mrb_value
call_native(struct imori_vm *vm, uint32_t function, mrb_value self, const mrb_value *arguments, mrb_int count)
{
  mrb_state *mrb = vm->mrb;
  const uint8_t *reply = NULL;
  size_t length = 0;
  mrb_bool fits;

  vm->out_length = 0;
  fits = put_count(vm, 'a', (size_t)count + 1);
  /* Only a handle tells a function more than its class does. */
  fits = fits && (mrb_type(self) == MRB_TT_CDATA ? put_value(vm, self, 0) : put(vm, "n", 1));
  for (mrb_int i = 0; fits && i < count; i++) {
    fits = put_value(vm, arguments[i], 1);
  }
  if (!fits) {
    mrb_raise(mrb, E_ARGUMENT_ERROR, "arguments are over 64 levels deep or 64 MiB large; pass smaller ones");
  }
  switch (imori_ruby_call(vm->host, function, vm->out, vm->out_length, &reply, &length)) {
  case REPLY_VALUE:
    return decode(vm, &reply);
  case REPLY_OPERATION:
    vm->is_pending = TRUE;
    return mrb_nil_value();
  case REPLY_ERROR:
    raise_encoded(vm, reply);
  default:
    mrb_raise(mrb, E_RUNTIME_ERROR, "a native function has failed");
  }
}

/* The body of every native method that returns at once. */
static mrb_value
native_method(mrb_state *mrb, mrb_value self)
{
  struct imori_vm *vm = (struct imori_vm*)mrb->ud;
  const mrb_value *arguments;
  mrb_int count;
  uint32_t function = (uint32_t)mrb_integer(mrb_proc_cfunc_env_get(mrb, 0));

  mrb_get_args(mrb, "*", &arguments, &count);
  return call_native(vm, function, self, arguments, count);
}

/* core.define(module, name, function): a native method that returns at once. */
static mrb_value
core_define(mrb_state *mrb, mrb_value self)
{
  mrb_value class, function;
  mrb_sym name;
  mrb_method_t method;

  mrb_get_args(mrb, "Cno", &class, &name, &function);
  MRB_METHOD_FROM_PROC(method, mrb_proc_new_cfunc_with_env(mrb, native_method, 1, &function));
  mrb_define_method_raw(mrb, mrb_class_ptr(class), name, method);
  return mrb_nil_value();
}

/* core.native(function, self, arguments): what the wrapper of a function that may await calls. */
static mrb_value
core_native(mrb_state *mrb, mrb_value self)
{
  mrb_int function;
  mrb_value receiver, arguments;

  mrb_get_args(mrb, "ioA", &function, &receiver, &arguments);
  return call_native((struct imori_vm*)mrb->ud, (uint32_t)function, receiver, RARRAY_PTR(arguments), RARRAY_LEN(arguments));
}

/* core.handle_class(class): instances of the class are handles, which only Rust makes. */
static mrb_value
core_handle_class(mrb_state *mrb, mrb_value self)
{
  struct imori_vm *vm = (struct imori_vm*)mrb->ud;
  mrb_value class;

  mrb_get_args(mrb, "C", &class);
  MRB_SET_INSTANCE_TT(mrb_class_ptr(class), MRB_TT_CDATA);
  mrb_undef_class_method(mrb, mrb_class_ptr(class), "new");
  mrb_undef_class_method(mrb, mrb_class_ptr(class), "allocate");
  mrb_ary_push(mrb, vm->handle_classes, class);
  return mrb_nil_value();
}

/* The run of a script, in a fiber that the prelude made. */

static mrb_value
core_pending(mrb_state *mrb, mrb_value self)
{
  return mrb_bool_value(((struct imori_vm*)mrb->ud)->is_pending);
}

/* core.in_run_itself?: whether no fiber of the script's own runs. */
static mrb_value
core_in_run_itself(mrb_state *mrb, mrb_value self)
{
  struct imori_vm *vm = (struct imori_vm*)mrb->ud;
  mrb_value fiber = mrb_ary_ref(mrb, vm->fibers, vm->fiber);
  return mrb_bool_value(mrb->c == mrb->root_c || (mrb_fiber_p(fiber) && ((struct RFiber*)mrb_ptr(fiber))->cxt == mrb->c));
}

/* core.abandon: the operation cannot be awaited here. */
static mrb_value
core_abandon(mrb_state *mrb, mrb_value self)
{
  ((struct imori_vm*)mrb->ud)->is_pending = FALSE;
  return mrb_nil_value();
}

/* core.outcome: returns, or raises, what the operation became. */
static mrb_value
core_outcome(mrb_state *mrb, mrb_value self)
{
  struct imori_vm *vm = (struct imori_vm*)mrb->ud;
  const uint8_t *outcome = vm->outcome;

  vm->outcome = NULL;
  if (!outcome) mrb_raise(mrb, vm->cancelled_error, "the run was cancelled");
  if (vm->outcome_reply != REPLY_VALUE) raise_encoded(vm, outcome);
  return decode(vm, &outcome);
}

/* core.run: the script's code takes the place of this call. */
static mrb_value
core_run(mrb_state *mrb, mrb_value self)
{
  struct imori_vm *vm = (struct imori_vm*)mrb->ud;
  mrb_value script = mrb_ary_ref(mrb, vm->scripts, vm->script);

  mrb_vm_ci_target_class_set(mrb->c->ci, mrb->object_class);
  /* No method's name for the script in backtraces. */
  mrb->c->ci->mid = 0;
  return mrb_exec_irep(mrb, mrb_top_self(mrb), mrb_proc_ptr(script));
}

static mrb_value
core_arguments(mrb_state *mrb, mrb_value self)
{
  struct imori_vm *vm = (struct imori_vm*)mrb->ud;
  return mrb_ary_ref(mrb, vm->arguments, vm->fiber);
}

/* Imori.set_global(name, value): sets a global variable by its name; nil removes it. */
static mrb_value
imori_set_global(mrb_state *mrb, mrb_value self)
{
  mrb_sym name;
  mrb_value value;
  mrb_int length;
  const char *text;

  mrb_get_args(mrb, "no", &name, &value);
  text = mrb_sym_name_len(mrb, name, &length);
  if (!text || length < 2 || text[0] != '$') mrb_raise(mrb, E_ARGUMENT_ERROR, "the name of a global variable begins with `$`");
  if (mrb_nil_p(value)) mrb_gv_remove(mrb, name);
  else mrb_gv_set(mrb, name, value);
  return value;
}

static mrb_value
core_finish(mrb_state *mrb, mrb_value self)
{
  struct imori_vm *vm = (struct imori_vm*)mrb->ud;
  mrb_value value = mrb_get_arg1(mrb);

  encode(vm, value);
  vm->result = STEP_FINISHED;
  vm->has_result = TRUE;
  return mrb_nil_value();
}

static void
put_failure(struct imori_vm *vm, mrb_value exception, mrb_value message)
{
  mrb_state *mrb = vm->mrb;
  const char *class = mrb_obj_classname(mrb, exception);
  mrb_value lines = mrb_exception_p(exception) ? mrb_exc_backtrace(mrb, exception) : mrb_nil_value();
  mrb_bool fits;

  vm->out_length = 0;
  fits = put_count(vm, 'a', 3) && put_text(vm, 's', class ? class : "Exception", strlen(class ? class : "Exception"));
  fits = fits && put_value(vm, mrb_string_p(message) ? message : mrb_nil_value(), 0);
  fits = fits && put_value(vm, mrb_array_p(lines) ? lines : mrb_nil_value(), 0);
  if (!fits) {
    vm->out_length = 0;
    put(vm, "n", 1);
  }
}

/* core.fail(exception, message) */
static mrb_value
core_fail(mrb_state *mrb, mrb_value self)
{
  struct imori_vm *vm = (struct imori_vm*)mrb->ud;
  mrb_value exception, message;

  mrb_get_args(mrb, "oo", &exception, &message);
  put_failure(vm, exception, message);
  vm->result = STEP_FAILED;
  vm->has_result = TRUE;
  return mrb_nil_value();
}

extern void imori_define_test_helpers(mrb_state *mrb);

static mrb_value
test_helpers_body(mrb_state *mrb, void *data)
{
  (void)data;
  imori_define_test_helpers(mrb);
  return mrb_nil_value();
}

/* The interruption. */

static void
overdue_hook(struct mrb_state *mrb, const struct mrb_irep *irep, const mrb_code *pc, mrb_value *regs)
{
  struct imori_vm *vm = (struct imori_vm*)mrb->ud;

  __atomic_store_n(&mrb->code_fetch_hook, NULL, __ATOMIC_RELAXED);
  switch (imori_ruby_overdue(vm->host)) {
  case VERDICT_GO_ON:
    return;
  case VERDICT_RAISE:
    mrb_raise(mrb, vm->cpu_error, "the script is over its limit of CPU time");
  default:
    longjmp(vm->escape, 1);
  }
}

/* Makes the VM ask for a verdict before its next instruction. The only function that another thread may call. */
void
imori_vm_interrupt(struct imori_vm *vm)
{
  __atomic_store_n(&vm->mrb->code_fetch_hook, overdue_hook, __ATOMIC_RELAXED);
}

/* Entries from Rust. */

struct job {
  struct imori_vm *vm;
  const char *file;
  const char *text;
  size_t length;
  mrb_int slot;
  mrb_int other;
  const uint8_t *bytes;
};

static mrb_value
failure_body(mrb_state *mrb, void *data)
{
  struct imori_vm *vm = ((struct job*)data)->vm;
  struct RObject *message = mrb_exception_p(vm->failure) ? mrb_exc_ptr(vm->failure)->mesg : NULL;

  put_failure(vm, vm->failure, message ? mrb_obj_value(message) : mrb_nil_value());
  return mrb_nil_value();
}

/* Runs a job. Returns STEP_FINISHED, STEP_FAILED with the exception in `out`, or STEP_LOST. */
static enum step
protect(struct imori_vm *vm, mrb_protect_error_func *body, struct job *job)
{
  mrb_state *mrb = vm->mrb;
  mrb_bool is_error = FALSE;
  int arena = mrb_gc_arena_save(mrb);
  mrb_value result;
  struct REnv *env;

  if (vm->is_lost) return STEP_LOST;
  if (setjmp(vm->escape)) {
    vm->is_lost = TRUE;
    return STEP_LOST;
  }
  result = mrb_protect_error(mrb, body, job, &is_error);
  mrb->c = mrb->root_c;
  /* Blocks of a text that ran here keep its variables, which are on the stack until now. */
  if ((env = mrb_vm_ci_env(mrb->c->ci))) {
    mrb_vm_ci_env_set(mrb->c->ci, NULL);
    mrb_env_unshare(mrb, env, TRUE);
  }
  /* A yield to the root leaves these changed, and no VM is there to put them right. */
  mrb->c->ci->cci = 0;
  mrb->c->ci->u.target_class = mrb->object_class;
  mrb->exc = NULL;
  if (is_error) {
    struct job failure = { vm, NULL, NULL, 0, 0, 0, NULL };
    mrb_bool is_again = FALSE;
    vm->failure = result;
    mrb_protect_error(mrb, failure_body, &failure, &is_again);
    if (is_again) {
      vm->out_length = 0;
      put(vm, "n", 1);
    }
    mrb->exc = NULL;
  }
  mrb_gc_arena_restore(mrb, arena);
  return is_error ? STEP_FAILED : STEP_FINISHED;
}

static mrb_value
compile_body(mrb_state *mrb, void *data)
{
  struct job *job = (struct job*)data;
  struct imori_vm *vm = job->vm;
  mrbc_context *context = mrbc_context_new(mrb);
  struct mrb_parser_state *parser;
  struct RProc *proc = NULL;

  context->capture_errors = TRUE;
  context->no_exec = TRUE;
  mrbc_filename(mrb, context, job->file);
  parser = mrb_parse_nstring(mrb, job->text, job->length, context);
  vm->out_length = 0;
  if (parser && parser->nerr == 0 && parser->tree) {
    proc = mrb_generate_code(mrb, parser);
  }
  if (proc) {
    MRB_PROC_SET_TARGET_CLASS(proc, mrb->object_class);
    mrb_ary_set(mrb, vm->scripts, job->slot, mrb_obj_value(proc));
  }
  else {
    int64_t line = 0, column = 0;
    const char *message = "the text cannot be compiled";
    if (parser && parser->nerr > 0 && parser->error_buffer[0].message) {
      line = parser->error_buffer[0].lineno;
      column = parser->error_buffer[0].column;
      message = parser->error_buffer[0].message;
    }
    put_count(vm, 'a', 3);
    put_tagged(vm, 'i', &line, sizeof line);
    put_tagged(vm, 'i', &column, sizeof column);
    put_text(vm, 's', message, strlen(message));
  }
  if (parser) mrb_parser_free(parser);
  mrbc_context_free(mrb, context);
  mrb->exc = NULL;
  return mrb_nil_value();
}

/*
 * Compiles `text` into the slot of a script. STEP_FINISHED with an empty `out` is success; with `out` it is an error of
 * syntax: line, column, message. STEP_FAILED is an exception, as for lack of memory.
 */
enum step
imori_vm_compile(struct imori_vm *vm, const char *file, const char *text, size_t length, size_t slot)
{
  struct job job = { vm, file, text, length, (mrb_int)slot, 0, NULL };
  enum step step;
  vm->out_length = 0;
  step = protect(vm, compile_body, &job);
  return step;
}

static mrb_value
release_body(mrb_state *mrb, void *data)
{
  struct job *job = (struct job*)data;
  mrb_ary_set(mrb, job->other ? job->vm->fibers : job->vm->scripts, job->slot, mrb_nil_value());
  return mrb_nil_value();
}

/* Forgets a script, or a fiber, so that the collector frees it. */
void
imori_vm_forget(struct imori_vm *vm, size_t slot, int is_fiber)
{
  struct job job = { vm, NULL, NULL, 0, (mrb_int)slot, is_fiber, NULL };
  protect(vm, release_body, &job);
}

static mrb_value
top_body(mrb_state *mrb, void *data)
{
  struct job *job = (struct job*)data;
  struct imori_vm *vm = job->vm;
  mrb_value script = mrb_ary_ref(mrb, vm->scripts, job->slot);
  mrb_value value = mrb_top_run(mrb, mrb_proc_ptr(script), job->other ? vm->core : mrb_top_self(mrb), 0);

  if (mrb->exc) mrb_exc_raise(mrb, mrb_obj_value(mrb->exc));
  encode(vm, value);
  return mrb_nil_value();
}

/* Runs a compiled script without a fiber; `is_core` makes the functions of the core its methods. */
enum step
imori_vm_run(struct imori_vm *vm, size_t slot, int is_core)
{
  struct job job = { vm, NULL, NULL, 0, (mrb_int)slot, is_core, NULL };
  vm->is_pending = FALSE;
  return protect(vm, top_body, &job);
}

static mrb_value
step_body(mrb_state *mrb, void *data)
{
  struct job *job = (struct job*)data;
  struct imori_vm *vm = job->vm;
  mrb_value fiber = mrb_ary_ref(mrb, vm->fibers, job->slot);

  if (job->bytes) {
    const uint8_t *at = job->bytes;
    mrb_ary_set(mrb, vm->arguments, job->slot, decode(vm, &at));
    if (mrb_nil_p(fiber)) {
      fiber = mrb_funcall(mrb, vm->core, "worker", 0);
      mrb_ary_set(mrb, vm->fibers, job->slot, fiber);
    }
  }
  return mrb_fiber_resume(mrb, fiber, 0, NULL);
}

static enum step
step(struct imori_vm *vm, struct job *job)
{
  enum step protected;

  vm->fiber = job->slot;
  vm->is_pending = FALSE;
  vm->has_result = FALSE;
  protected = protect(vm, step_body, job);
  vm->outcome = NULL;
  if (protected != STEP_FINISHED) return protected;
  return vm->has_result ? vm->result : STEP_YIELDED;
}

/* Runs a script in a fiber until it ends or awaits. STEP_FAILED without a result means that the fiber is dead. */
enum step
imori_vm_start(struct imori_vm *vm, size_t fiber, size_t script, const uint8_t *arguments)
{
  struct job job = { vm, NULL, NULL, 0, (mrb_int)fiber, 0, arguments };
  vm->script = (mrb_int)script;
  return step(vm, &job);
}

/* Continues a fiber with what its operation became; without `outcome` it is cancelled. */
enum step
imori_vm_resume(struct imori_vm *vm, size_t fiber, int reply, const uint8_t *outcome)
{
  struct job job = { vm, NULL, NULL, 0, (mrb_int)fiber, 0, NULL };
  vm->outcome = outcome;
  vm->outcome_reply = reply;
  return step(vm, &job);
}

/* Defines what mruby's own tests need. */
enum step
imori_vm_define_test_helpers(struct imori_vm *vm)
{
  return protect(vm, test_helpers_body, NULL);
}

int imori_vm_has_result(const struct imori_vm *vm) { return vm->has_result; }
int imori_vm_is_pending(const struct imori_vm *vm) { return vm->is_pending; }
size_t imori_vm_heap(const struct imori_vm *vm) { return vm->heap; }
size_t imori_vm_heap_peak(const struct imori_vm *vm) { return vm->heap_peak; }
const uint8_t *imori_vm_out(const struct imori_vm *vm, size_t *length) { *length = vm->out_length; return vm->out; }

void
imori_vm_limit(struct imori_vm *vm, size_t heap_max, size_t block_max)
{
  vm->heap_max = heap_max;
  vm->block_max = block_max;
}

void
imori_vm_fail_allocation(struct imori_vm *vm, size_t number)
{
  vm->allocations = 0;
  vm->failing_allocation = number;
}

void
imori_vm_collect(struct imori_vm *vm)
{
  if (!vm->is_lost) mrb_full_gc(vm->mrb);
}

static mrb_value
open_body(mrb_state *mrb, void *data)
{
  struct imori_vm *vm = ((struct job*)data)->vm;
  struct RClass *imori;
  mrb_value *kept[] = { &vm->core, &vm->fibers, &vm->scripts, &vm->arguments, &vm->handle_classes };

  vm->core = mrb_obj_new(mrb, mrb->object_class, 0, NULL);
  for (size_t i = 1; i < sizeof kept / sizeof *kept; i++) *kept[i] = mrb_ary_new(mrb);
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) mrb_gc_register(mrb, *kept[i]);

  imori = mrb_define_module(mrb, "Imori");
  vm->cpu_error = mrb_define_class_under(mrb, imori, "CpuLimitError", mrb->eException_class);
  vm->cancelled_error = mrb_define_class_under(mrb, imori, "CancelledError", mrb->eException_class);
  mrb_define_class_under(mrb, imori, "Handle", mrb->object_class);
  mrb_define_module_function(mrb, imori, "arguments", core_arguments, MRB_ARGS_NONE());
  mrb_define_module_function(mrb, imori, "set_global", imori_set_global, MRB_ARGS_REQ(2));

  {
    struct RClass *core = mrb_singleton_class_ptr(mrb, vm->core);
    mrb_define_method(mrb, core, "define", core_define, MRB_ARGS_REQ(3));
    mrb_define_method(mrb, core, "native", core_native, MRB_ARGS_REQ(3));
    mrb_define_method(mrb, core, "handle_class", core_handle_class, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, core, "pending?", core_pending, MRB_ARGS_NONE());
    mrb_define_method(mrb, core, "in_run_itself?", core_in_run_itself, MRB_ARGS_NONE());
    mrb_define_method(mrb, core, "abandon", core_abandon, MRB_ARGS_NONE());
    mrb_define_method(mrb, core, "outcome", core_outcome, MRB_ARGS_NONE());
    mrb_define_method(mrb, core, "run", core_run, MRB_ARGS_NONE());
    mrb_define_method(mrb, core, "finish", core_finish, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, core, "fail", core_fail, MRB_ARGS_REQ(2));
  }
  return mrb_nil_value();
}

/* Opens a VM without limits. NULL if there is no memory. */
struct imori_vm *
imori_vm_open(void *host)
{
  struct imori_vm *vm = (struct imori_vm*)calloc(1, sizeof *vm);
  struct job job = { vm, NULL, NULL, 0, 0, 0, NULL };

  if (!vm) return NULL;
  vm->host = host;
  vm->mrb = mrb_open_allocf(allocate, vm);
  if (!vm->mrb) {
    free(vm);
    return NULL;
  }
  vm->mrb->ud = vm;
  if (protect(vm, open_body, &job) != STEP_FINISHED) {
    mrb_close(vm->mrb);
    free(vm->out);
    free(vm);
    return NULL;
  }
  return vm;
}

/* Frees a VM, lost or not, with all its memory. */
void
imori_vm_close(struct imori_vm *vm)
{
  mrb_state *mrb = vm->mrb;

  __atomic_store_n(&mrb->code_fetch_hook, NULL, __ATOMIC_RELAXED);
  mrb->c = mrb->root_c;
  mrb->jmp = NULL;
  mrb->exc = NULL;
  mrb_close(mrb);
  free(vm->out);
  free(vm);
}
