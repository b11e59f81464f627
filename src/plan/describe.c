/* SPDX-License-Identifier: Apache-2.0
 *
 * Every hidden choice of a plan, and every kernel that there is to choose from,
 * in words. */
#include "kernels/gemm.h"
#include "plan/plan.h"

#include <stdarg.h>
#include <stdio.h>

/* A text that may be longer than its buffer: `used` counts on. */
typedef struct text {
    char *at;
    size_t size, used;
} text;

static void add(text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(text *t, const char *format, ...)
{
    va_list args;
    int n;

    /* Like snprintf: what did not fit is counted, so that a caller can ask for
     * the size first. */
    va_start(args, format);
    n = vsnprintf(t->used < t->size ? t->at + t->used : NULL,
                  t->used < t->size ? t->size - t->used : 0, format, args);
    va_end(args);
    t->used += n > 0 ? (size_t)n : 0;
}

/* Why it is this level and not a better one: the caller's limit, the
 * environment's, the CPU, or the problem. */
static const char *reason(const attn__plan *plan, const attn__kernel_row *row)
{
    const attn__cpu *cpu = attn__cpu_facts();

    if (plan->desc.isa_limit != ATTN_ISA_BEST &&
        plan->desc.isa_limit < cpu->isa)
        return "best below isa_limit";
    if (row->isa < cpu->isa)
        return "the best here that fits this problem";
    return cpu->isa < cpu->best ? "best below ATTN_ISA"
                                : "the level of this CPU";
}

/* How backward forms dq. */
static void describe_dq(const attn__plan *plan, text *t)
{
    const attn__dq_shares shares = attn__dq_shares_of(plan);

    if (shares.heads == 0)
        add(t, "dq by its own kernel: %s\n",
            plan->desc.inputs & ATTN_WITH_PAGES
                ? "keys lie in pages"
                : "its shares would take too much memory");
    else
        add(t,
            "dq beside dk and dv, keys in %lld groups, %lld KV heads at a "
            "time; by its own kernel where threads outnumber these\n",
            (long long)shares.groups, (long long)shares.heads);
}

/* One line a choice, in the order in which they are made. The text is for
 * people and may change with any version; its length, without the terminator,
 * is returned as snprintf does. */
size_t attn_plan_describe(const attn_plan *plan, char *buffer, size_t size)
{
    static const char *const passes[] = {"forward", "backward", "weights"};
    text t = {buffer, size, 0};
    attn__plan body;

    if (size > 0)
        buffer[0] = '\0';
    if (attn__plan_open(plan, &body, NULL) != ATTN_OK) {
        add(&t, "not a plan\n");
        return t.used;
    }
    for (int pass = 0; pass < ATTN__N_PASSES; pass++) {
        const attn__kernel_row *row = &attn__kernels[body.kernel[pass]];

        if ((pass == ATTN__PASS_fwd || pass == ATTN__PASS_decode) &&
            pass != (int)attn__forward_pass(&body.desc))
            continue;
        add(&t, "kernel %s: tile of %zu rows, %s accumulators; %s\n",
            row->name, row->tile.tile_rows,
            row->tile.real_size == 8 ? "fp64" : "fp32", reason(&body, row));
    }
    add(&t, "keys in blocks of %d from key 0; %lld rows share a pass\n",
        ATTN__BLOCK_KEYS, (long long)body.macro_rows);
    if (attn__forward_pass(&body.desc) == ATTN__PASS_decode)
        add(&t, "forward by the decode kernel, since len_q <= %d; keys in "
                "segments of %d\n",
            ATTN__DECODE_QUERIES, ATTN__SEGMENT_KEYS);
    describe_dq(&body, &t);
    for (int pass = 0; pass < 3; pass++) {
        attn_workspace w;

        if (attn__workspace_of(&body, (attn_pass)pass, 1, &w))
            add(&t, "workspace %s: %zu bytes shared + %zu a thread\n",
                passes[pass], w.shared, w.slot);
    }
    return t.used;
}

/* A kernel may be absent for two reasons that ask for different cures. */
static const char *availability(unsigned needs, attn_isa isa)
{
    const attn__cpu *cpu = attn__cpu_facts();

    return (needs & ~cpu->features) ? "not on this CPU"
           : isa > cpu->isa         ? "above ATTN_ISA"
                                    : "available";
}

size_t attn_kernels_describe(char *buffer, size_t size)
{
    text t = {buffer, size, 0};

    if (size > 0)
        buffer[0] = '\0';
    for (size_t i = 0; i < attn__n_kernels; i++) {
        const attn__kernel_row *row = &attn__kernels[i];

        add(&t, "%-20s %-6s tile %2zu rows, budget %.2g, %s\n", row->name,
            attn_isa_name(row->isa), row->tile.tile_rows, row->budget,
            availability(row->needs, row->isa));
    }
    for (size_t i = 0; i < attn__n_gemm_rows; i++) {
        const attn__gemm_row *row = &attn__gemm_rows[i];

        add(&t, "%-20s %-6s budget %.2g, %s\n", row->name,
            attn_isa_name(row->isa), row->budget,
            availability(row->needs, row->isa));
    }
    return t.used;
}
