/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pem.hpp - PEMAPI in C++17: the handles of pem.h and trace.h with owners, callbacks of any
 * callable, errors as exceptions
 *
 * Header-only, over the C functions and nothing else; pem.h is the contract, and what is said there
 * is not said again. Plain data (pem_statistic, pem_event, pem_histogram, ...) stays C's. Handles
 * are move-only; each holds on to its session, so they may be destroyed in any order, and the
 * session closes with the last of them. That is one reference count for each handle made, and none
 * for an event: what runs for each event is the callable, called through one pointer.
 *
 * A call that fails throws pem::error. Where exceptions are off (-fno-exceptions) it ends the
 * program, unless PEM_THROW is defined before this header: PEM_THROW(code, text) must not return.
 * What a callback throws ends the program too: it would unwind through the observed program's C.
 */
#ifndef PEM_PEM_HPP
#define PEM_PEM_HPP

#include <pem/pem.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

namespace pem
{
inline namespace api
{

/* What went wrong: what() is the library's sentence, code() the errno. */
class error : public std::runtime_error
{
      public:
	error(int code, const char *text)
	    : std::runtime_error(*text ? text : std::strerror(code)), code_(code)
	{
	}
	int code() const noexcept
	{
		return code_;
	}

      private:
	int code_;
};

#ifndef PEM_THROW
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define PEM_THROW(code, text) throw ::pem::error((code), (text))
#else
#define PEM_THROW(code, text) std::abort()
#endif
#endif

namespace impl
{
[[noreturn]] inline void fail(int code, const char *text)
{
	(void)code;
	(void)text;
	PEM_THROW(code, text);
}
/* Result of a call that returns -errno. */
inline int check(int result, const pem_error &why = {})
{
	if (result < 0)
		fail(-result, why.text);
	return result;
}
/* For a call that has no pem_error: what an errno of it means, and the next step. */
struct reason {
	int code;
	const char *text;
};
inline int check_call(int result, std::initializer_list<reason> reasons)
{
	for (const reason &of : reasons)
		if (result == -of.code)
			fail(of.code, of.text);
	return check(result);
}
constexpr reason observed_by_eight = {
	EUSERS, "eight sessions observe this process already: end one of them"};
constexpr reason no_such_event = {EINVAL, "the set has no event of this number"};
constexpr reason not_kept = {ENODATA,
			     "the statistics do not keep this: call keep() before enable()"};
/* Result of a call that returns NULL with errno. */
template <typename T> T *check(T *handle, const pem_error &why)
{
	if (!handle)
		fail(errno, why.text);
	return handle;
}
} // namespace impl

/* Elements that somebody else owns, in one piece. Converts to std::span where there is one. */
template <typename T> class span
{
      public:
	span() = default;
	span(T *data, std::size_t size) : data_(data), size_(size)
	{
	}
	T *data() const noexcept
	{
		return data_;
	}
	std::size_t size() const noexcept
	{
		return size_;
	}
	bool empty() const noexcept
	{
		return size_ == 0;
	}
	T *begin() const noexcept
	{
		return data_;
	}
	T *end() const noexcept
	{
		return data_ + size_;
	}
	T &operator[](std::size_t i) const
	{
		return data_[i];
	}

      private:
	T *data_ = nullptr;
	std::size_t size_ = 0;
};

/*
 * Where events count, built up: pem::context().process(pid).on_cpu(0). Unrestricted at first, and
 * as {}. A handle gets events of this process only once a context names it (this_process(),
 * this_thread()), or a synchronous callback is there.
 */
struct context : pem_context {
	context() noexcept : pem_context{}
	{
		size = sizeof(pem_context);
	}
	context(const pem_context &all) noexcept : pem_context(all)
	{
	}
	static context this_process()
	{
		return context().process(static_cast<std::uint32_t>(::getpid()));
	}
	static context this_thread()
	{
		return this_process().thread(static_cast<std::uint32_t>(::gettid()));
	}
	context &process(std::uint32_t id, bool with_children = false)
	{
		pid = id;
		follow = with_children;
		return *this;
	}
	context &thread(std::uint32_t id)
	{
		tid = id;
		return *this;
	}
	context &on_cpu(std::uint32_t number)
	{
		one_cpu = 1;
		cpu = number;
		return *this;
	}
	context &named(std::string_view name)
	{
		std::size_t n = name.copy(program, sizeof(program) - 1);
		program[n] = '\0';
		return *this;
	}
	context &in_cgroup(std::uint64_t id)
	{
		cgroup = id;
		return *this;
	}
	context &in_ns(std::uint32_t inode)
	{
		in_namespace = inode;
		return *this;
	}
};

/* Index of a field, to look up once and use for each record. Throws ENOENT. */
inline unsigned field(const pem_event &event, const char *name)
{
	int index = pem_event__field(&event, name);

	if (index < 0)
		impl::fail(ENOENT,
			   (std::string(event.name) + " has no field '" + name + "'").c_str());
	return static_cast<unsigned>(index);
}

/*
 * A record while it is delivered; valid as long as the C one is: until the callback returns, or the
 * trace's next.
 */
class record
{
      public:
	explicit record(const pem_record &of) noexcept : of_(&of)
	{
	}
	const pem_event &event() const noexcept
	{
		return *of_->event;
	}
	std::string_view name() const
	{
		return of_->event->name;
	}
	std::uint64_t clock() const noexcept
	{
		return of_->clock;
	}
	std::uint64_t time_ns() const noexcept
	{
		return of_->time_ns;
	}
	std::uint32_t pid() const noexcept
	{
		return of_->pid;
	}
	std::uint32_t tid() const noexcept
	{
		return of_->tid;
	}
	std::uint32_t cpu() const noexcept
	{
		return of_->cpu;
	}
	/* By index (pem::field); by name a search through the event's names at each call. */
	template <typename T> T get(unsigned index) const
	{
		if constexpr (std::is_floating_point_v<T>)
			return static_cast<T>(pem_record__f64(of_, index));
		else if constexpr (std::is_convertible_v<const char *, T>)
			return T(pem_record__string(of_, index));
		else if constexpr (std::is_signed_v<T>)
			return static_cast<T>(pem_record__i64(of_, index));
		else
			return static_cast<T>(pem_record__u64(of_, index));
	}
	template <typename T> T get(const char *name) const
	{
		return get<T>(field(event(), name));
	}
	/* A list's or array's elements. Throws EINVAL if these are no T. */
	template <typename T> span<const T> list(unsigned index) const
	{
		const pem_field &f = event().fields[index];
		const void *elements = nullptr;
		std::uint32_t count = pem_record__list(of_, index, &elements);

		if (count && pem_type__bytes(static_cast<pem_type>(f.element_type)) != sizeof(T))
			impl::fail(EINVAL, "a list's elements are of another size");
		return {static_cast<const T *>(elements), count};
	}
	/* What the labels call the value, or "". */
	std::string words(unsigned index) const
	{
		std::string text(pem_record__words(of_, index, nullptr, 0), '\0');

		if (!text.empty())
			pem_record__words(of_, index, text.data(), text.size() + 1);
		return text;
	}
	/* A key that records which belong together have in common. */
	std::uint64_t key(pem_role address) const
	{
		return pem_record__key(of_, address);
	}
	const pem_record &c() const noexcept
	{
		return *of_;
	}

      private:
	const pem_record *of_;
};

namespace impl
{
struct session_state {
	pem_session *handle = nullptr;
	std::function<void(pem_log_level, const char *)> log;
	std::string hardware;

	session_state() = default;
	session_state(const session_state &) = delete;
	session_state &operator=(const session_state &) = delete;
	~session_state()
	{
		pem_session__close(handle);
	}
};
using session_owner = std::shared_ptr<session_state>;

/* A handle and the session it is of: the handle ends first. */
template <typename T, void (*release)(T *)> class handle
{
      public:
	handle() = default;
	handle(T *of, session_owner session) : session_(std::move(session)), of_(of)
	{
	}
	handle(handle &&other) noexcept
	{
		swap(other);
	}
	handle &operator=(handle &&other) noexcept
	{
		handle(std::move(other)).swap(*this);
		return *this;
	}
	handle(const handle &) = delete;
	handle &operator=(const handle &) = delete;
	~handle()
	{
		release(of_);
	}
	explicit operator bool() const noexcept
	{
		return of_ != nullptr;
	}
	T *c() const noexcept
	{
		return of_;
	}
	void swap(handle &other) noexcept
	{
		std::swap(of_, other.of_);
		session_.swap(other.session_);
	}

      private:
	session_owner session_;
	T *of_ = nullptr;
};
} // namespace impl

/* A set of events, and their predicate. */
class event_set
{
      public:
	std::size_t size() const
	{
		return pem_event_set__count(handle_.c());
	}
	const pem_event &operator[](std::size_t i) const
	{
		return *pem_event_set__event(handle_.c(), i);
	}
	/* For handles registered with it from then on; nullptr takes it back. Returns the set. */
	event_set &where(const char *predicate) &
	{
		pem_error why = {};

		impl::check(pem_event_set__where(handle_.c(), predicate, &why), why);
		return *this;
	}
	event_set &&where(const char *predicate) &&
	{
		return std::move(where(predicate));
	}
	/* Of those of its events that match a pattern. Returns the set. */
	event_set &where_of(const char *pattern, const char *predicate) &
	{
		pem_error why = {};

		impl::check(pem_event_set__where_of(handle_.c(), pattern, predicate, &why), why);
		return *this;
	}
	event_set &&where_of(const char *pattern, const char *predicate) &&
	{
		return std::move(where_of(pattern, predicate));
	}
	/* The predicate of event i as it was written first, or "". */
	std::string predicate(std::size_t i) const
	{
		const char *text = pem_event_set__predicate(handle_.c(), i);

		return text ? text : "";
	}
	pem_event_set *c() const noexcept
	{
		return handle_.c();
	}

      private:
	friend class session;
	explicit event_set(impl::handle<pem_event_set, pem_event_set__free> &&h)
	    : handle_(std::move(h))
	{
	}
	impl::handle<pem_event_set, pem_event_set__free> handle_;
};

class statistics
{
      public:
	statistics() = default; /* of nothing: only to be assigned to */
	void enable()
	{
		impl::check_call(pem_statistics__enable(c()), {impl::observed_by_eight});
	}
	void disable()
	{
		pem_statistics__disable(c());
	}
	void reset()
	{
		pem_statistics__reset(c());
	}
	/*
	 * One value for each event of the set; they are this object's, until it reads again.
	 * Allocates nothing.
	 */
	span<const pem_statistic> read()
	{
		int n = pem_statistics__read(c(), values_.data(), values_.size());

		return {values_.data(), static_cast<std::size_t>(impl::check(n))};
	}
	/* Of PEM_STATISTIC_VARIANCE, _HISTOGRAM, _TOP; before enable. Returns the handle. */
	statistics &keep(unsigned what)
	{
		impl::check_call(
			pem_statistics__keep(c(), what),
			{{EINVAL, "nothing can be kept: name an attribute when the statistics are "
				  "registered, and one of PEM_STATISTIC_VARIANCE, _HISTOGRAM and "
				  "_TOP"},
			 {EBUSY,
			  "the statistics were enabled already: call keep() before enable()"},
			 {ENOTSUP, "all of these events are counters, which keep nothing more"},
			 {ENOSPC,
			  "the session keeps more of 16 events already: make a set of fewer"}});
		return *this;
	}
	pem_histogram histogram(std::size_t i = 0)
	{
		pem_histogram of = {};

		of.size = sizeof(of);
		impl::check_call(pem_statistics__histogram(c(), i, &of),
				 {impl::no_such_event, impl::not_kept});
		return of;
	}
	/*
	 * The most frequent values of event i into room; returns the part of room that was filled.
	 */
	span<pem_top> top(std::size_t i, span<pem_top> room)
	{
		if (!room.empty())
			room[0].size = sizeof(room[0]);
		int n = pem_statistics__top(c(), i, room.data(), room.size());

		return {room.data(), static_cast<std::size_t>(impl::check_call(
					     n, {impl::no_such_event, impl::not_kept}))};
	}
	/*
	 * function(const pem_statistic &part, const pem_statistic_owner &whose) for each thread or
	 * CPU.
	 */
	template <typename F> void each(std::size_t i, F &&function)
	{
		using callable = std::remove_reference_t<F>;

		int n = pem_statistics__each(
			c(), i,
			[](const pem_statistic *part, const pem_statistic_owner *whose,
			   void *arg) noexcept { (*static_cast<callable *>(arg))(*part, *whose); },
			const_cast<std::remove_const_t<callable> *>(std::addressof(function)));

		if (n < 0)
			impl::fail(-n,
				   n == -EINVAL && i >= values_.size()
					   ? impl::no_such_event.text
					   : "the event is not available: the session's log has "
					     "the reason");
	}
	pem_statistics *c() const noexcept
	{
		return handle_.c();
	}

      private:
	friend class session;
	statistics(impl::handle<pem_statistics, pem_statistics__unregister> &&h, std::size_t events)
	    : handle_(std::move(h)), values_(events)
	{
		if (events)
			values_[0].size = sizeof(values_[0]);
	}
	impl::handle<pem_statistics, pem_statistics__unregister> handle_;
	std::vector<pem_statistic> values_;
};

/*
 * A callable and its registration. Destroying it waits for calls under way in other threads, then
 * destroys the callable; so the callable may not destroy it: it may disable it.
 */
class callback
{
      public:
	callback() = default;
	void enable()
	{
		pem_callback__enable(c());
	}
	void disable()
	{
		pem_callback__disable(c());
	}
	pem_callback_counts counts()
	{
		pem_callback_counts of = {};

		of.size = sizeof(of);
		impl::check(pem_callback__counts(c(), &of));
		return of;
	}
	void settle()
	{
		impl::check(pem_callback__settle(c()));
	}
	pem_callback *c() const noexcept
	{
		return handle_.c();
	}

	callback(callback &&) = default;
	callback &operator=(callback &&other) noexcept
	{
		handle_ = std::move(other.handle_); /* before its callable goes */
		callable_ = std::move(other.callable_);
		return *this;
	}

      private:
	friend class session;
	using erased = std::unique_ptr<void, void (*)(void *)>;
	callback(impl::handle<pem_callback, pem_callback__unregister> &&h, erased &&callable)
	    : callable_(std::move(callable)), handle_(std::move(h))
	{
	}
	erased callable_{nullptr, [](void *) {}};
	impl::handle<pem_callback, pem_callback__unregister> handle_; /* destroyed first */
};

class log
{
      public:
	log() = default;
	void enable()
	{
		impl::check_call(
			pem_log__enable(c()),
			{impl::observed_by_eight,
			 {EINVAL,
			  "the log is finished, and a session has one: open another session"}});
	}
	void disable()
	{
		pem_log__disable(c());
	}
	/* Complete the trace; the destructor does too, but can't say what failed. */
	void finish()
	{
		pem_error why = {};

		impl::check(pem_log__finish(c(), &why), why);
	}
	pem_log *c() const noexcept
	{
		return handle_.c();
	}

      private:
	friend class session;
	explicit log(impl::handle<pem_log, pem_log__unregister> &&h) : handle_(std::move(h))
	{
	}
	impl::handle<pem_log, pem_log__unregister> handle_;
};

/* As struct pem_session_options has them. */
struct session_options {
	std::uint32_t chunk_bytes = 0, chunk_count = 0; /* 0: the library's default */
	bool overwrite = false; /* a flight recorder */
	/* Sentences for people; called from the session's threads. */
	std::function<void(pem_log_level, const char *)> log;
	bool progress = false, by_process = false;
	std::uint32_t sample_hz = 0;
	pem_stacks sample_stacks = PEM_STACKS_NONE;
	bool coarse_clock = false;
	std::string hardware; /* "": there is no simulated machine */
	std::uint32_t drain_threads = 0;
	bool compress = false;
};

/* As struct pem_run_options has them; follow is the contrary of no_follow. */
struct run_options {
	bool preload_libc = true, follow = true;
	std::uint32_t runner_words = 0;
	bool no_preload = false, own_group = false;
};

namespace impl
{
/* A command and its options, as C takes them. */
class command
{
      public:
	command(const std::vector<std::string> &words, const run_options &options)
	{
		for (const std::string &word : words)
			argv_.push_back(const_cast<char *>(word.c_str()));
		argv_.push_back(nullptr);
		options_.size = sizeof(options_);
		options_.preload_libc = options.preload_libc;
		options_.no_follow = !options.follow;
		options_.runner_words = options.runner_words;
		options_.no_preload = options.no_preload;
		options_.own_group = options.own_group;
	}
	char *const *argv() const
	{
		return argv_.data();
	}
	const pem_run_options *options() const
	{
		return &options_;
	}

      private:
	std::vector<char *> argv_;
	pem_run_options options_ = {};
};
} // namespace impl

class session
{
      public:
	explicit session(session_options options = {})
	    : state_(std::make_shared<impl::session_state>())
	{
		pem_session_options o = {};
		pem_error why = {};

		o.size = sizeof(o);
		o.chunk_bytes = options.chunk_bytes;
		o.chunk_count = options.chunk_count;
		o.overwrite = options.overwrite;
		o.progress = options.progress;
		o.by_process = options.by_process;
		o.sample_hz = options.sample_hz;
		o.sample_stacks = options.sample_stacks;
		o.coarse_clock = options.coarse_clock;
		o.drain_threads = options.drain_threads;
		o.compress = options.compress;
		state_->hardware = std::move(options.hardware);
		o.hardware = state_->hardware.empty() ? nullptr : state_->hardware.c_str();
		state_->log = std::move(options.log);
		if (state_->log) {
			o.log = [](pem_log_level level, const char *text, void *arg) noexcept {
				static_cast<impl::session_state *>(arg)->log(level, text);
			};
			o.log_arg = state_.get();
		}
		state_->handle = impl::check(pem_session__open(&o, &why), why);
	}
	session(session &&) = default;
	session &operator=(session &&) = default;

	const pem_model &model() const
	{
		return *pem_session__model(c());
	}
	/* If not, and reason is given, it says why. */
	bool can_deliver(const pem_event &event, std::string *reason = nullptr)
	{
		pem_error why = {};
		bool can = pem_session__can_deliver(c(), &event, &why);

		if (!can && reason)
			*reason = why.text;
		return can;
	}
	/*
	 * Which source delivers it: "module", "BPF", "counters" or "stub". "": none; and reason, if
	 * given, says why.
	 */
	std::string source_of(const pem_event &event, std::string *reason = nullptr)
	{
		pem_error why = {};
		const char *name = pem_session__source_of(c(), &event, &why);

		if (!name && reason)
			*reason = why.text;
		return name ? name : "";
	}
	/* The installed sources, in the order in which they are asked for an event; at most 64. */
	std::vector<pem_source_state> sources()
	{
		std::vector<pem_source_state> states(64);

		states[0].size = sizeof(states[0]);
		states.resize(static_cast<std::size_t>(
			impl::check(pem_session__sources(c(), states.data(), states.size()))));
		return states;
	}
	/* Know the events of a model, of specs, or of a program: as in pem.h. */
	int add_model(std::string_view text, const char *origin)
	{
		pem_error why = {};

		return impl::check(
			pem_session__add_model(c(), text.data(), text.size(), origin, &why), why);
	}
	int add_specs(const char *path)
	{
		pem_error why = {};

		return impl::check(pem_session__add_specs(c(), path, &why), why);
	}
	int describe(const char *program)
	{
		pem_error why = {};

		return impl::check(pem_session__describe(c(), PEM_ANY, program, &why), why);
	}
	int describe(pid_t process)
	{
		pem_error why = {};

		return impl::check(pem_session__describe(c(), static_cast<std::uint32_t>(process),
							 nullptr, &why),
				   why);
	}
	/*
	 * Know the events of places that no spec describes; events() does so itself. How many the
	 * pattern names.
	 */
	int add_probes(const char *pattern)
	{
		pem_error why = {};

		return impl::check(pem_session__add_probes(c(), pattern, &why), why);
	}
	/*
	 * What pem.ko reads at events of the kernel, and how it looks at memory: as in pem.h,
	 * before anything is enabled.
	 */
	void set_counters(const char *names)
	{
		pem_error why = {};

		impl::check(pem_session__set_counters(c(), names, &why), why);
	}
	/* Before anything is enabled, and after set_counters(). */
	void count_at(const event_set &set)
	{
		pem_error why = {};

		impl::check(pem_session__count_at(c(), set.c(), &why), why);
	}
	/* How this machine counts an event; false: it is not the event of a counter here. */
	bool counted_as(const pem_event &event, pem_counted_as &found)
	{
		found.size = sizeof(found);
		int result = pem_session__counted_as(c(), &event, &found);

		if (result != -ENOENT)
			impl::check(result);
		return result == 0;
	}
	/* The turn in which each event of a set is counted; 0: it takes no counter. */
	std::vector<std::uint32_t> counter_turns(const event_set &set)
	{
		std::vector<const pem_event *> events;
		std::vector<std::uint32_t> turns(set.size());

		for (std::size_t i = 0; i < set.size(); i++)
			events.push_back(&set[i]);
		impl::check(pem_session__counter_turns(c(), events.data(), events.size(),
						       turns.data()));
		return turns;
	}
	/* What one event of each kind costs on this machine; at most 64 kinds. */
	std::vector<pem_event_cost> costs()
	{
		std::vector<pem_event_cost> all(64);

		all[0].size = sizeof(all[0]);
		all.resize(static_cast<std::size_t>(
			impl::check(pem_session__costs(c(), all.data(), all.size()))));
		return all;
	}
	void set_page_sampling(std::uint32_t interval_us, std::uint64_t region_bytes)
	{
		impl::check_call(
			pem_session__set_page_sampling(c(), interval_us, region_bytes),
			{{EINVAL,
			  "page sampling takes an interval of 1000 us or more, and regions of a "
			  "power of two from 4096 to 2^40 bytes"},
			 {EBUSY, "a handle of the session was enabled already: call "
				 "set_page_sampling() before"}});
	}

	event_set events(std::initializer_list<const char *> patterns)
	{
		return events({patterns.begin(), patterns.size()});
	}
	event_set events(span<const char *const> patterns)
	{
		pem_error why = {};

		return event_set({impl::check(pem_event_set__new(c(), patterns.data(),
								 patterns.size(), &why),
					      why),
				  state_});
	}

	/* attribute: a field to sum up, or nullptr: only count. */
	statistics register_statistics(const event_set &set, const context &where = context(),
				       const char *attribute = nullptr)
	{
		pem_error why = {};
		pem_statistics *of =
			pem_session__register_statistics(c(), set.c(), &where, attribute, &why);

		return {{impl::check(of, why), state_}, set.size()};
	}

	/* function(pem::record), in the producing thread of this process. */
	template <typename F>
	callback register_callback(const event_set &set, const context &where, F &&function)
	{
		auto callable = erase(std::forward<F>(function));
		pem_error why = {};
		pem_callback *of = pem_session__register_callback(
			c(), set.c(), &where, call<std::decay_t<F>>, callable.get(), &why);

		return {{impl::check(of, why), state_}, std::move(callable)};
	}
	/*
	 * function(pem::record), on a thread of the session's, for events of any observed process
	 * and the kernel.
	 */
	template <typename F>
	callback register_async_callback(const event_set &set, const context &where, F &&function,
					 std::uint64_t max_delay_us = 0)
	{
		auto callable = erase(std::forward<F>(function));
		pem_async_options o = {sizeof(o), max_delay_us};
		pem_error why = {};
		pem_callback *of = pem_session__register_async_callback(
			c(), set.c(), &where, call<std::decay_t<F>>, callable.get(), &o, &why);

		return {{impl::check(of, why), state_}, std::move(callable)};
	}
	log register_log(const event_set &set, const char *directory,
			 const context &where = context())
	{
		pem_error why = {};

		return api::log({impl::check(pem_session__register_log(c(), set.c(), &where,
								       directory, &why),
					     why),
				 state_});
	}

	void snapshot(const char *directory, const char *cause = nullptr)
	{
		pem_error why = {};

		impl::check(pem_session__snapshot(c(), directory, cause, &why), why);
	}
	void set_budget(double share)
	{
		impl::check_call(
			pem_session__set_budget(c(), share),
			{{EINVAL, "a budget is a share of the programs' CPU time, from 0 (no "
				  "limit) to 1"}});
	}
	/*
	 * Returns how many processes were found that have raised application events. why_none gets
	 * a sentence if a process is named that can raise none, or none of those that are enabled,
	 * and "" otherwise.
	 */
	int attach(const context &who, std::string *why_none = nullptr)
	{
		pem_error why = {};
		int found = impl::check(pem_session__attach(c(), &who, &why), why);

		if (why_none)
			*why_none = why.text;
		return found;
	}
	std::vector<pem_statistic_owner> processes()
	{
		std::vector<pem_statistic_owner> all;
		std::size_t n = 0;

		do { /* more may come between two calls */
			all.resize(n);
			if (n)
				all[0].size = sizeof(all[0]);
			n = static_cast<std::size_t>(
				impl::check(pem_session__processes(c(), all.data(), all.size())));
		} while (n > all.size());
		all.resize(n);
		return all;
	}
	pid_t run(const std::vector<std::string> &command, run_options options = {})
	{
		impl::command of(command, options);
		pem_error why = {};

		return impl::check(pem_session__run(c(), of.argv(), of.options(), &why), why);
	}
	/*
	 * Work for at most timeout_ms. true: the command ended, and *wait_status (as of waitpid) is
	 * set. false: the time is up. Throws with code EINTR once the session was interrupted, and
	 * with ECHILD if the command could not be started and nothing else is observed.
	 */
	bool poll(int timeout_ms, int *wait_status = nullptr)
	{
		int status = 0, result = pem_session__poll(c(), timeout_ms, &status);

		if (result == -ECHILD)
			impl::fail(
				ECHILD,
				"the command of this session could not be started; open a second "
				"session for another");
		if (result == -EINTR)
			impl::fail(EINTR, "the session was interrupted");
		impl::check(result);
		if (result == 1 && wait_status)
			*wait_status = status;
		return result == 1;
	}
	std::uint64_t elapsed_ns() const
	{
		return pem_session__elapsed_ns(c());
	}
	void interrupt() noexcept
	{
		pem_session__interrupt(c());
	}
	pem_session *c() const noexcept
	{
		return state_->handle;
	}

      private:
	template <typename F> static void call(const pem_record *of, void *arg) noexcept
	{
		(*static_cast<F *>(arg))(record(*of));
	}
	template <typename F> static callback::erased erase(F &&function)
	{
		using callable = std::decay_t<F>;

		static_assert(std::is_invocable_v<callable &, record>,
			      "a callback takes a pem::record");
		return {new callable(std::forward<F>(function)),
			[](void *of) { delete static_cast<callable *>(of); }};
	}
	impl::session_owner state_;
};

/* Replace this process by a command that sessions can attach to later. Returns by throwing alone.
 */
[[noreturn]] inline void exec(const std::vector<std::string> &command, run_options options = {})
{
	impl::command of(command, options);
	pem_error why = {};

	impl::fail(-pem_run__exec(of.argv(), of.options(), &why), why.text);
}
/* Take pem's own capabilities from programs that this thread starts. */
inline void drop_capabilities()
{
	impl::check(pem_run__drop_capabilities());
}
/* The folder in which this user's programs and consumers find each other. */
inline std::string runtime_dir()
{
	std::string path(4096, '\0');

	impl::check(pem_runtime_dir(path.data(), path.size()));
	path.resize(std::strlen(path.c_str()));
	return path;
}
/* The id of a version 2 control group, for context::in_cgroup(). */
inline std::uint64_t cgroup_id(const char *path)
{
	std::uint64_t id = 0;

	impl::check(pem_cgroup_id(path, &id));
	return id;
}
inline const char *version() noexcept
{
	return pem_version();
}
inline std::uint64_t clock_hz()
{
	return pem_clock__hz();
}

/* Flight recorders of this user's, in whatever process. */
inline std::vector<pem_recorder> recorders()
{
	std::vector<pem_recorder> all;
	std::size_t n = 0;

	do { /* more may come between two calls */
		all.resize(n);
		if (n)
			all[0].size = sizeof(all[0]);
		n = static_cast<std::size_t>(impl::check(pem_recorders(all.data(), all.size())));
	} while (n > all.size());
	all.resize(n);
	return all;
}
/* Of another process; one of this process needs another thread that polls. */
inline void snapshot(const pem_recorder &of, const char *directory, const char *cause = nullptr,
		     int timeout_ms = 30000)
{
	pem_error why = {};

	impl::check(pem_recorder__snapshot(&of, directory, cause, timeout_ms, &why), why);
}

/* A trace to be read from begin to end: for (pem::record r : trace). One pass at a time. */
class trace
{
      public:
	explicit trace(const char *directory)
	{
		pem_error why = {};

		of_.reset(impl::check(pem_trace__open(directory, &why), why));
		record_.size = sizeof(record_);
	}
	const pem_trace_info &info() const
	{
		return *pem_trace__info(c());
	}
	const pem_model &model() const
	{
		return *pem_trace__model(c());
	}
	std::string_view process_name(std::uint32_t pid) const
	{
		return pem_trace__process_name(c(), pid);
	}
	std::string_view thread_name(std::uint32_t tid) const
	{
		return pem_trace__thread_name(c(), tid);
	}
	std::uint64_t torn_packets() const
	{
		return pem_trace__torn_packets(c());
	}
	pem_balance balance() const
	{
		return pem_trace__total_balance(c());
	}
	pem_balance balance(const pem_event &event) const
	{
		return pem_trace__event_balance(c(), &event);
	}
	std::vector<pem_trace_producer> producers() const
	{
		std::vector<pem_trace_producer> all;

		for (std::size_t i = 0; i < pem_trace__producer_count(c()); i++)
			all.push_back(*pem_trace__producer(c(), i));
		return all;
	}
	std::vector<pem_trace_loss> losses() const
	{
		std::vector<pem_trace_loss> all(pem_trace__loss_count(c()));

		for (std::size_t i = 0; i < all.size(); i++) {
			all[i].size = sizeof(all[i]);
			impl::check(pem_trace__loss(c(), i, &all[i]));
		}
		return all;
	}
	/* Let another thread read ahead of this one. */
	void read_ahead()
	{
		impl::check(pem_trace__read_ahead(c()));
	}
	/* Complete the trace of a recorder that was killed. */
	static void recover(const char *directory)
	{
		pem_error why = {};

		impl::check(pem_trace__recover(directory, &why), why);
	}
	/* Copy a trace, with its streams decompressed. */
	static void unpack(const char *directory, const char *to)
	{
		pem_error why = {};

		impl::check(pem_trace__unpack(directory, to, &why), why);
	}
	pem_trace *c() const noexcept
	{
		return of_.get();
	}

	class iterator
	{
	      public:
		using iterator_category = std::input_iterator_tag;
		using value_type = record;
		using difference_type = std::ptrdiff_t;
		using pointer = const record *;
		using reference = record;
		iterator() = default;
		explicit iterator(trace *of) : of_(of)
		{
			++*this;
		}
		record operator*() const
		{
			return record(of_->record_);
		}
		iterator &operator++()
		{
			pem_error why = {};

			if (!impl::check(pem_trace__next(of_->c(), &of_->record_, &why), why))
				of_ = nullptr;
			return *this;
		}
		void operator++(int)
		{
			++*this;
		}
		bool operator==(const iterator &other) const
		{
			return of_ == other.of_;
		}
		bool operator!=(const iterator &other) const
		{
			return of_ != other.of_;
		}

	      private:
		trace *of_ = nullptr;
	};
	/* From the first record again. */
	iterator begin()
	{
		impl::check(pem_trace__rewind(c()));
		return iterator(this);
	}
	iterator end()
	{
		return {};
	}

      private:
	struct closer {
		void operator()(pem_trace *of) const
		{
			pem_trace__close(of);
		}
	};
	std::unique_ptr<pem_trace, closer> of_;
	pem_record record_ = {};
};

} // namespace api
} // namespace pem
#endif
