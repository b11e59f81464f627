/* SPDX-License-Identifier: Apache-2.0
 *
 * CPU facts. The compiler's own probe (__builtin_cpu_supports) also asks
 * XGETBV, so a level that the operating system does not save is not offered.
 */
#define _DEFAULT_SOURCE /* syscall */
#include "core/cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static attn__cpu facts;
static bool amx_granted;
static pthread_once_t facts_once = PTHREAD_ONCE_INIT;
static pthread_once_t amx_once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
/* CPUID leaf 7: AMX-BF16 is EDX bit 22, AMX-TILE bit 24. XCR0 bits 17 and 18:
 * the system saves tile configuration and data. */
static int has_amx(void)
{
    unsigned a, b, c, d, low, high;

    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return 0;
    if (!(d >> 22 & 1) || !(d >> 24 & 1))
        return 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low >> 17 & 3) == 3;
}

static unsigned probe_features(void)
{
    unsigned features = 0;

    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        features |= ATTN__CPU_AVX2_FMA;
    if (features && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        features |= ATTN__CPU_AVX512;
    if ((features & ATTN__CPU_AVX512) && has_amx())
        features |= ATTN__CPU_AMX_BF16;
    if (features && ATTN__EMULATE)
        features |= ATTN__CPU_AVX512 | ATTN__CPU_AMX_BF16;
    return features;
}

static void probe_model(char *model, size_t size)
{
    unsigned words[12];

    snprintf(model, size, "x86-64");
    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1],
                         &words[4 * i + 2], &words[4 * i + 3]))
            return;
    snprintf(model, size, "%.48s", (const char *)words);
}
#else
static unsigned probe_features(void)
{
    return 0;
}

static void probe_model(char *model, size_t size)
{
    snprintf(model, size, "%s", "unknown");
}
#endif

static attn_isa best_level(unsigned features)
{
    if (features & ATTN__CPU_AMX_BF16)
        return ATTN_ISA_AMX;
    if (features & ATTN__CPU_AVX512)
        return ATTN_ISA_AVX512;
    if (features & ATTN__CPU_AVX2_FMA)
        return ATTN_ISA_AVX2;
    return ATTN_ISA_SCALAR;
}

attn_isa attn__isa_from_name(const char *name)
{
    static const attn_isa levels[] = {ATTN_ISA_SCALAR, ATTN_ISA_AVX2,
                                      ATTN_ISA_AVX512, ATTN_ISA_AMX};

    for (size_t i = 0; name && i < sizeof levels / sizeof levels[0]; i++)
        if (strcmp(name, attn_isa_name(levels[i])) == 0)
            return levels[i];
    return ATTN_ISA_BEST;
}

static void probe(void)
{
    const attn_isa limit = attn__isa_from_name(getenv("ATTN_ISA"));

    facts.features = probe_features();
    probe_model(facts.model, sizeof facts.model);
    facts.best = facts.isa = best_level(facts.features);
    if (limit != ATTN_ISA_BEST && limit < facts.isa)
        facts.isa = limit;
}

const attn__cpu *attn__cpu_facts(void)
{
    pthread_once(&facts_once, probe);
    return &facts;
}

static void ask_for_amx(void)
{
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* asm/prctl.h */

    amx_granted =
        ATTN__EMULATE ||
        syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#endif
}

bool attn__cpu_may_use_amx(void)
{
    pthread_once(&amx_once, ask_for_amx);
    return amx_granted;
}

attn_isa attn_cpu_isa(void)
{
    return attn__cpu_facts()->isa;
}

const char *attn_isa_name(attn_isa isa)
{
    static const char *const names[] = {"best", "scalar", "avx2", "avx512",
                                        "amx"};
    const size_t index = (size_t)isa;

    return index < sizeof names / sizeof names[0] ? names[index] : "unknown";
}

size_t attn_cpu_describe(char *text, size_t size)
{
    const attn__cpu *cpu = attn__cpu_facts();
    const int n = snprintf(text, size, "%s: level %s (the CPU offers%s%s%s%s)",
                           cpu->model, attn_isa_name(cpu->isa), " scalar",
                           cpu->features & ATTN__CPU_AVX2_FMA ? " avx2" : "",
                           cpu->features & ATTN__CPU_AVX512 ? " avx512" : "",
                           cpu->features & ATTN__CPU_AMX_BF16 ? " amx" : "");

    return n < 0 ? 0 : (size_t)n;
}
