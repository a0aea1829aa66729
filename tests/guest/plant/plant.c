// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * plant: makes a mistake on purpose, to show that the debug kernel finds it.
 *
 * modprobe plant what=MISTAKE
 *
 * Each mistake is made once, while the module loads, in a function that is named after it:
 * plant_uaf (use after free), plant_locks (two mutexes in both orders), plant_leak (memory without
 * a pointer to it), plant_shift (a shift by more than the width), plant_sleep (an allocation that
 * may sleep, with a spinlock held), plant_dma (a mapping is undone that does not exist). None of
 * them harms the kernel.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *what = "";
module_param(what, charp, 0444);
MODULE_PARM_DESC(what, "the mistake: uaf, locks, leak, shift, sleep or dma");

/* Of a value that the compiler must not work out. */
static volatile unsigned int width = 40;

static noinline int plant_uaf(void)
{
	u32 *p = kzalloc(64, GFP_KERNEL);
	u32 gone;

	if (!p)
		return -ENOMEM;
	kfree(p);
	gone = READ_ONCE(p[1]);
	pr_info("plant: read %u from memory that was freed\n", gone);
	return 0;
}

static DEFINE_MUTEX(plant_lock_a);
static DEFINE_MUTEX(plant_lock_b);

/* One task takes both orders one after the other: it never deadlocks here, but two tasks could. */
static noinline int plant_locks(void)
{
	mutex_lock(&plant_lock_a);
	mutex_lock(&plant_lock_b);
	mutex_unlock(&plant_lock_b);
	mutex_unlock(&plant_lock_a);

	mutex_lock(&plant_lock_b);
	mutex_lock(&plant_lock_a);
	mutex_unlock(&plant_lock_a);
	mutex_unlock(&plant_lock_b);
	return 0;
}

/* Several, because a stale value on a stack may look like a pointer to one. */
static noinline int plant_leak(void)
{
	unsigned int i;
	void *p;

	for (i = 0; i < 8; i++) {
		p = kmalloc(200, GFP_KERNEL);
		if (!p)
			return -ENOMEM;
		memset(p, 0, 200);
		OPTIMIZER_HIDE_VAR(p);
	}
	return 0;
}

static noinline int plant_shift(void)
{
	u32 one = width - 39;

	pr_info("plant: 1 << %u is %u\n", width, one << width);
	return 0;
}

static noinline int plant_sleep(void)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	kfree(kmalloc(16, GFP_KERNEL));
	spin_unlock(&lock);
	return 0;
}

static noinline int plant_dma(void)
{
	struct platform_device *dev;

	dev = platform_device_register_simple("plant", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	if (!dma_set_mask_and_coherent(&dev->dev, DMA_BIT_MASK(64)))
		dma_unmap_page(&dev->dev, 0x100000, PAGE_SIZE, DMA_TO_DEVICE);
	platform_device_unregister(dev);
	return 0;
}

static const struct {
	const char *name;
	int (*make)(void);
} mistakes[] = {
	{ "uaf", plant_uaf },	  { "locks", plant_locks }, { "leak", plant_leak },
	{ "shift", plant_shift }, { "sleep", plant_sleep }, { "dma", plant_dma },
};

static int __init plant_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mistakes); i++)
		if (!strcmp(what, mistakes[i].name))
			return mistakes[i].make();
	return -EINVAL;
}

static void __exit plant_exit(void)
{
}

module_init(plant_init);
module_exit(plant_exit);
MODULE_DESCRIPTION("Makes a chosen mistake, for tests of the debug kernel");
/* The kernel accepts no licence string for Apache-2.0; the SPDX line above names the licences. */
MODULE_LICENSE("GPL");
