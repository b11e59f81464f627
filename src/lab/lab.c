/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding an experiment by its name, and running it. */
#include <stdio.h>
#include <string.h>

#include "lab/workbench.h"

typedef struct experiment {
    const char *name, *about;
    bool (*run)(lab *l);
} experiment;

static const experiment experiments[] = {
#define X(name, function, about) {name, about, attn__lab_##function},
#include "lab/experiments.def"
#undef X
};

int64_t attn_lab_count(void)
{
    return (int64_t)(sizeof experiments / sizeof experiments[0]);
}

const char *attn_lab_name(int64_t index)
{
    return experiments[index].name;
}

const char *attn_lab_about(int64_t index)
{
    return experiments[index].about;
}

void attn_lab_data_init(attn_lab_data *data)
{
    memset(data, 0, sizeof *data);
    data->size = sizeof *data;
}

void attn_lab_free(attn_lab_result *result)
{
    void *block = result->memory;

    while (block) {
        void *next;

        memcpy(&next, block, sizeof next);
        attn_free(block);
        block = next;
    }
    memset(result, 0, sizeof *result);
}

static bool sizes_are_legal(lab *l)
{
    const attn_lab_data *d = l->data;

    if (d->size != sizeof *d)
        return attn__lab_refuse(l, ATTN_E_ARG, "data", "was not filled by "
                                "attn_lab_data_init");
    if (d->len < 0 || d->len > 4096)
        return attn__lab_refuse(l, ATTN_E_LIMIT, "len",
                                "is not in 0 to 4096");
    if (d->dim < 0 || d->dim > 1024)
        return attn__lab_refuse(l, ATTN_E_LIMIT, "dim",
                                "is not in 0 to 1024");
    if (d->heads < 0 || d->heads > 1024)
        return attn__lab_refuse(l, ATTN_E_LIMIT, "heads",
                                "is not in 0 to 1024");
    return true;
}

attn_status attn_lab_run(const char *name, const attn_lab_data *data,
                         attn_lab_result *result, attn_diag *diag)
{
    attn_diag unheard;
    lab l = {.data = data, .result = result, .diag = diag ? diag : &unheard,
             .random = data->seed};

    memset(result, 0, sizeof *result);
    result->value = "weight";
    memset(l.diag, 0, sizeof *l.diag);
    for (int64_t i = 0; i < attn_lab_count(); i++) {
        if (strcmp(experiments[i].name, name) != 0)
            continue;
        if (!sizes_are_legal(&l) || !experiments[i].run(&l)) {
            attn_lab_free(result);
            return l.status;
        }
        return ATTN_OK;
    }
    attn__lab_refuse(&l, ATTN_E_ARG, "name", "is no experiment");
    return l.status;
}
