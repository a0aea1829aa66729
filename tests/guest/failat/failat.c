// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * failat: makes one call of a function fail, in a kernel without fault injection.
 *
 * modprobe failat func=NAME nth=N [value=-12] [scope=urdma_probe]
 *
 * While a task is inside SCOPE, its Nth call of NAME returns VALUE and does nothing. Other tasks
 * and calls outside SCOPE are not affected. The parameter `calls` counts the calls since SCOPE was
 * last entered, `failed` those that were made to fail.
 */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/linkage.h>
#include <linux/module.h>
#include <linux/objtool.h>
#include <linux/sched.h>

static char *func = "";
module_param(func, charp, 0444);
MODULE_PARM_DESC(func, "function that fails");
static char *scope = "urdma_probe";
module_param(scope, charp, 0444);
MODULE_PARM_DESC(scope, "function inside of which it fails");
static unsigned int nth = 1;
module_param(nth, uint, 0444);
MODULE_PARM_DESC(nth, "which of its calls fails");
static long value = -ENOMEM;
module_param(value, long, 0444);
MODULE_PARM_DESC(value, "what it returns then");
static unsigned int calls;
module_param(calls, uint, 0444);
MODULE_PARM_DESC(calls, "calls so far (result)");
static unsigned int failed;
module_param(failed, uint, 0444);
MODULE_PARM_DESC(failed, "calls that were made to fail (result)");

/* The task inside the scope; one at a time. */
static struct task_struct *inside;

static int scope_enter(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	calls = 0;
	WRITE_ONCE(inside, current);
	return 0;
}

static int scope_leave(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	WRITE_ONCE(inside, NULL);
	return 0;
}

/* Runs instead of the function: it returns to the caller at once. */
void failat_return(void);
asm(".text\n"
    ".type failat_return, @function\n"
    ".globl failat_return\n"
    "failat_return:\n" ANNOTATE_NOENDBR "\n" ASM_RET "\n"
    ".size failat_return, .-failat_return\n");

static int func_enter(struct kprobe *p, struct pt_regs *regs)
{
	/* A probe that the kernel implements by a breakpoint runs like an NMI. */
	if ((in_interrupt() && !in_nmi()) || READ_ONCE(inside) != current || ++calls != nth)
		return 0;
	failed++;
	pr_info("failat: call %u of %s\n", nth, func);
	regs_set_return_value(regs, value);
	instruction_pointer_set(regs, (unsigned long)failat_return);
	return 1;
}

/* With this handler the kernel never optimises the probe to a jump, which could not skip the
 * function. */
static void func_after(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
}

static struct kretprobe scope_probe = {
	.entry_handler = scope_enter,
	.handler = scope_leave,
};

static struct kprobe func_probe = {
	.pre_handler = func_enter,
	.post_handler = func_after,
};

static int __init failat_init(void)
{
	int err;

	scope_probe.kp.symbol_name = scope;
	func_probe.symbol_name = func;
	err = register_kretprobe(&scope_probe);
	if (err)
		return err;
	err = register_kprobe(&func_probe);
	if (err)
		unregister_kretprobe(&scope_probe);
	return err;
}

static void __exit failat_exit(void)
{
	unregister_kprobe(&func_probe);
	unregister_kretprobe(&scope_probe);
}

module_init(failat_init);
module_exit(failat_exit);
MODULE_DESCRIPTION("Makes a chosen call of a function fail, for tests");
/* The kernel accepts no licence string for Apache-2.0; the SPDX line above names the licences. */
MODULE_LICENSE("GPL");
