/* SPDX-License-Identifier: Apache-2.0
 *
 * How calls run: the pool of the process, memory for each calling thread, and
 * the interpreter's lock let go. */
#ifndef ATTN_BINDING_EXECUTION_H
#define ATTN_BINDING_EXECUTION_H

#include "attention_call.h"

#include <atomic>
#include <memory>
#include <thread>

namespace binding {

/* The pool of the process: made by the first call that needs it, never
 * destroyed (its threads sleep), and forgotten in the child of a fork, which
 * has none of its threads. */
inline std::atomic<attn_pool *> shared_pool{nullptr};

inline int64_t all_threads()
{
    static const int64_t n = std::min<int64_t>(
        std::max(1u, std::thread::hardware_concurrency()), 1024);

    return n;
}

/* For who does not say: as many as there is work for. Waking one takes about
 * the time of 2^19 multiply-adds. */
inline int64_t threads_for(const attn_desc &d)
{
    const double rows = static_cast<double>(d.batch) *
                        static_cast<double>(d.heads_q) *
                        static_cast<double>(d.len_q);
    const double work = rows * static_cast<double>(d.len_k) *
                        static_cast<double>(d.dim_qk + d.dim_v);

    return std::max<int64_t>(
        1, static_cast<int64_t>(std::min(work / 0x1p19,
                                         static_cast<double>(all_threads()))));
}

inline attn_pool *pool()
{
    attn_pool *found = shared_pool.load(std::memory_order_acquire);

    if (found)
        return found;
    attn_pool *made = attn_pool_create(all_threads());

    if (made && !shared_pool.compare_exchange_strong(found, made)) {
        attn_pool_destroy(made); /* another thread was faster */
        return found;
    }
    return made;
}

/* Kept between calls, one for each thread that calls; larger ones are not. */
inline constexpr size_t kept_workspace = size_t{32} << 20;

class workspace {
public:
    explicit workspace(const attn_workspace &need) : size_(need.size)
    {
        thread_local std::unique_ptr<char[]> kept;
        thread_local size_t kept_size = 0;
        const size_t room = need.size + need.alignment;

        if (room > kept_workspace) {
            own_.reset(new char[room]);
        } else if (room > kept_size) {
            kept.reset();
            kept_size = 0;
            kept.reset(new char[room]);
            kept_size = room;
        }
        char *start = own_ ? own_.get() : kept.get();
        const auto past = reinterpret_cast<uintptr_t>(start) % need.alignment;

        data_ = start + (past ? need.alignment - past : 0);
    }

    void give(attn_exec *exec) const
    {
        exec->workspace = data_;
        exec->workspace_size = size_;
    }

private:
    std::unique_ptr<char[]> own_;
    char *data_;
    size_t size_;
};

/* Run `call` with the exec it needs, and without the interpreter's lock. */
template <class Call>
void execute(int64_t threads, const attn_workspace &need, attn_pass pass,
             Call call)
{
    const workspace memory(need);
    attn_exec exec;
    attn_diag diag;
    attn_status status;

    attn_exec_init(&exec);
    exec.threads = threads;
    memory.give(&exec);
    if (threads > 1) {
        exec.ctx = pool();
        exec.parallel_for = exec.ctx ? attn_pool_parallel_for : nullptr;
    }
    {
        nb::gil_scoped_release unlocked;

        status = call(&exec, &diag);
    }
    if (pass == ATTN_FORWARD && std::strcmp(diag.field, "o") == 0)
        std::strcpy(diag.field, "out"); /* as Python spells it there */
    check(status, diag);
}

/* Plan and run one pass of attention. */
template <class Call>
void run(const problem &p, attn_pass pass, Call call)
{
    const int64_t threads = p.threads ? p.threads : threads_for(p.desc);
    attn_plan plan;
    attn_workspace need;
    attn_diag diag;

    check(attn_plan_init(&plan, &p.desc, &diag), diag);
    check(attn_plan_workspace(&plan, pass, threads, &need, &diag), diag);
    execute(threads, need, pass, [&](attn_exec *exec, attn_diag *said) {
        return call(&plan, exec, said);
    });
}

} // namespace binding

#endif
