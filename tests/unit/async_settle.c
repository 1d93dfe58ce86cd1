// SPDX-License-Identifier: MIT
/* async_settle.c - waiting until an asynchronous callback was called for all events from before */
#include "async_fixture.h"

static void settle_waits_for_all_from_before(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 1000000);
	struct raiser r = raiser_start(1);
	unsigned round;

	(void)state;
	for (round = 1; round <= 5; round++) {
		raise_ticks(&r, 1000);
		assert_int_equal(pem_callback__settle(cb), 0);
		assert_int_equal(seen_count(), round * 1000);
	}
	raiser_end(&r);
}

static int settled, refused;

/* Its first two events each take until 'leave' has their number. */
static void stay_for_each(struct seen *s)
{
	int number = (int)seen_count() + 1;

	put(&refused, pem_callback__settle(s->self));
	put(&inside, number);
	while (__atomic_load_n(&leave, __ATOMIC_ACQUIRE) < number)
		usleep(100);
}

static void *settle(void *callback)
{
	put(&settled, -(int)gettid());
	put(&settled, pem_callback__settle(callback) ? 2 : 1);
	return NULL;
}

/* Wait until the thread that settles sleeps between two looks. */
static void wait_until_it_waits(void)
{
	char path[64], state = 0;
	FILE *file;

	while (state != 'S') {
		usleep(100);
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
			 -__atomic_load_n(&settled, __ATOMIC_ACQUIRE));
		file = fopen(path, "re");
		if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		if (file)
			fclose(file);
	}
}

static void settle_does_not_wait_for_later_events(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 100);
	struct raiser r = raiser_start(1);
	pthread_t thread;

	(void)state;
	put(&leave, 0);
	put(&settled, 0);
	also_do(stay_for_each);
	raise_ticks(&r, 1);
	wait_until(&inside, 1);
	assert_int_equal(pthread_create(&thread, NULL, settle, cb), 0);
	wait_until_it_waits();
	raise_ticks(&r, 1);
	put(&leave, 1);
	wait_until(&inside, 2);
	pthread_join(thread, NULL); /* while the second event is not over */
	assert_int_equal(settled, 1);
	assert_int_equal(refused, -EDEADLK);
	put(&leave, 2);
	assert_int_equal(pem_callback__settle(cb), 0);
	assert_int_equal(seen_count(), 2);
	raiser_end(&r);
	pem_callback__disable(cb);
	assert_int_equal(pem_callback__settle(cb), 0);
}

static void settle_returns_in_a_child(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 100);
	struct raiser r = raiser_start(1);
	int status;
	pid_t child;

	(void)state;
	put(&inside, 0);
	put(&leave, 0);
	also_do(stay);
	raise_ticks(&r, 2);
	wait_until(&inside, 1);
	child = fork();
	if (!child) {
		alarm(20); /* an error would block it */
		_exit(-pem_callback__settle(cb));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	put(&leave, 1);
	also_do(NULL);
	raiser_end(&r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, async_set_up, async_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(settle_waits_for_all_from_before),
		TEST(settle_does_not_wait_for_later_events),
		TEST(settle_returns_in_a_child),
	};

	alarm(600); /* what is never called back is waited for */
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
