/* What mruby's own tests need beside the library; linked only where those tests run. */

#include <mruby.h>

void mrb_init_test_driver(mrb_state*, mrb_bool verbose);
void mrb_mruby_proc_ext_gem_test(mrb_state*);
void mrb_mruby_error_gem_test(mrb_state*);

/* The driver's own `main`, which does not run, names these. */
const uint8_t mrbtest_assert_irep[1] = { 0 };
void mrbgemtest_init(mrb_state *mrb) { (void)mrb; }

/* Called within a method, so that an exception is one of the script. */
void
imori_define_test_helpers(mrb_state *mrb)
{
  mrb_init_test_driver(mrb, FALSE);
  mrb_mruby_proc_ext_gem_test(mrb);
  mrb_mruby_error_gem_test(mrb);
}
