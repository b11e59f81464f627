/* SPDX-License-Identifier: Apache-2.0
 *
 * Naming schemes, one row each. PREFIX may name the attention itself or the
 * block around it: a row's `within` is tried between the two. A scheme is the
 * model's if the file has all its weights of q, k and v. */
#include "model_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"

static const char *const parameters[] = {CLI_PARAMETERS};

enum { N_PARAMETERS = sizeof parameters / sizeof parameters[0] };
enum { W_Q, W_K, W_V, W_O, B_Q, B_K, B_V, B_O, W_QKV, B_QKV };

typedef struct scheme {
    const char *title, *within;
    bool linear; /* torch's (out, in) */
    const char *names[N_PARAMETERS]; /* NULL: there is none */
} scheme;

#define SPLIT(q, k, v, o)                                                     \
    {q ".weight", k ".weight", v ".weight", o ".weight",                      \
     q ".bias",   k ".bias",   v ".bias",   o ".bias"}

static const scheme schemes[] = {
    {"BERT", "attention.", true,
     SPLIT("self.query", "self.key", "self.value", "output.dense")},
    {"Llama", "self_attn.", true,
     SPLIT("q_proj", "k_proj", "v_proj", "o_proj")},
    {"BART", "self_attn.", true,
     SPLIT("q_proj", "k_proj", "v_proj", "out_proj")},
    {"DistilBERT", "attention.", true,
     SPLIT("q_lin", "k_lin", "v_lin", "out_lin")},
    {"GPT-2", "attn.", false,
     {[W_QKV] = "c_attn.weight", [B_QKV] = "c_attn.bias",
      [W_O] = "c_proj.weight", [B_O] = "c_proj.bias"}},
    {"nn.MultiheadAttention", "self_attn.", true,
     {[W_QKV] = "in_proj_weight", [B_QKV] = "in_proj_bias",
      [W_O] = "out_proj.weight", [B_O] = "out_proj.bias"}},
};

enum { N_SCHEMES = sizeof schemes / sizeof schemes[0] };

/* Gains that some models have behind the projections; which formula they go
 * into differs, so they are never taken unasked. */
static const char *const gains[] = {"q_norm.weight", "k_norm.weight"};

/* ------------------------------------------------------------------ names */

/* The index of "PREFIX.WITHIN NAME", -1 if there is none: exact case only. */
static int64_t find(const attn_file *file, const char *prefix,
                    const char *within, const char *name)
{
    const size_t n = strlen(prefix);
    char full[1100];
    int64_t index;

    snprintf(full, sizeof full, "%s%s%s%s", prefix,
             n > 0 && prefix[n - 1] != '.' ? "." : "", within, name);
    index = attn_file_find(file, full);
    if (index >= 0 && strcmp(attn_file_entry(file, index)->name, full) != 0)
        return -1;
    return index;
}

static bool fits(const attn_file *file, const char *prefix, const scheme *s,
                 const char *within)
{
    if (s->names[W_QKV])
        return find(file, prefix, within, s->names[W_QKV]) >= 0;
    return find(file, prefix, within, s->names[W_Q]) >= 0 &&
           find(file, prefix, within, s->names[W_K]) >= 0 &&
           find(file, prefix, within, s->names[W_V]) >= 0;
}

/* The scheme by which PREFIX has a layer; rows of the same names for q, k and
 * v are told apart by that of w_o. */
static const scheme *find_scheme(const attn_file *file, const char *prefix,
                                 const char **within)
{
    const scheme *found = NULL;

    for (int i = 0; i < 2 * N_SCHEMES; i++) {
        const scheme *s = &schemes[i / 2];
        const char *inner = i % 2 ? s->within : "";

        if (!fits(file, prefix, s, inner))
            continue;
        if (!found || find(file, prefix, inner, s->names[W_O]) >= 0) {
            found = s;
            *within = inner;
        }
        if (find(file, prefix, inner, s->names[W_O]) >= 0)
            break;
    }
    return found;
}

/* The prefix of the w_q, or w_qkv, that `name` is by some scheme; false if it
 * is none. */
static bool prefix_of(const char *name, char *prefix, size_t size)
{
    for (int i = 0; i < N_SCHEMES; i++) {
        const char *const *names = schemes[i].names;
        const char *end = names[W_QKV] ? names[W_QKV] : names[W_Q];
        const size_t n = strlen(name), m = strlen(end);

        if (n > m && n - m < size && strcmp(name + n - m, end) == 0) {
            memcpy(prefix, name, n - m);
            prefix[n - m - (name[n - m - 1] == '.')] = '\0';
            return true;
        }
    }
    return false;
}

/* No scheme fits: say which prefix would, as near to the given as can be. */
static int no_scheme(const cli_model *model, const attn_file *file,
                     const char *prefix)
{
    char near[256] = "", first[256] = "", text[300];
    size_t best = 0;
    bool any = false;

    for (int64_t i = 0; i < attn_file_count(file); i++) {
        char candidate[256];
        cli_nearest one = {prefix, strlen(prefix), NULL, 0};

        if (!prefix_of(attn_file_entry(file, i)->name, candidate,
                       sizeof candidate))
            continue;
        if (!any)
            strcpy(first, candidate);
        any = true;
        cli_nearest_offer(&one, candidate);
        if (one.best && (!near[0] || one.distance < best)) {
            strcpy(near, candidate);
            best = one.distance;
        }
    }
    snprintf(text, sizeof text, "%s%s%s", near[0] ? "; did you mean '"
             : any ? "; there is one at '" : "", near[0] ? near : first,
             near[0] ? "'?" : any ? "'" : "");
    return cli_fail(CLI_USAGE,
                    "--prefix: %s has no layer at '%s' by any naming scheme "
                    "known (--map w_q=NAME names tensors)%s",
                    model->path, prefix, text);
}

/* ---------------------------------------------------------------- loading */

/* Add tensor `index` as `name`. */
static int take(cli_inputs *inputs, attn_file *file, int64_t index,
                const char *name, const char *path)
{
    attn_array array;
    attn_diag diag;
    char *renamed;

    if (cli_input(inputs, name)) {
        cli_note("%s: of the inputs, not of the model", name);
        return CLI_GO;
    }
    if (attn_file_load(file, index, &array, &diag) != ATTN_OK)
        return cli_file_refused(path, &diag);
    renamed = attn_realloc(array.name, strlen(name) + 1);
    if (!renamed) {
        attn_array_free(&array);
        return cli_no_memory();
    }
    strcpy(array.name = renamed, name);
    return cli_inputs_add(inputs, &array);
}

/* Tensors are offered by their whole names, and by what follows PREFIX. */
static int no_tensor(const cli_model *model, const attn_file *file,
                     const char *prefix, int map)
{
    const size_t n = strlen(prefix);
    const char *word = model->maps[map].tensor;
    cli_nearest nearest = {word, strlen(word), NULL, 0};
    char text[128];

    for (int64_t i = 0; i < attn_file_count(file); i++) {
        const char *name = attn_file_entry(file, i)->name;

        cli_nearest_offer(&nearest, name);
        if (n > 0 && strncmp(name, prefix, n) == 0)
            cli_nearest_offer(&nearest, name + n + (name[n] == '.'));
    }
    cli_nearest_text(&nearest, "", text, sizeof text);
    return cli_fail(CLI_USAGE, "--map: %s has no tensor '%s'%s", model->path,
                    word, text);
}

/* Those of --map, under PREFIX or by their whole names. */
static int take_maps(const cli_model *model, cli_inputs *inputs,
                     attn_file *file, const char *prefix)
{
    int code = CLI_GO;

    for (int i = 0; i < model->n_maps && code == CLI_GO; i++) {
        const char *tensor = model->maps[i].tensor;
        int64_t index = find(file, prefix, "", tensor);

        if (index < 0)
            index = find(file, "", "", tensor);
        code = index < 0 ? no_tensor(model, file, prefix, i)
                         : take(inputs, file, index, model->maps[i].name,
                                model->path);
    }
    return code;
}

static bool is_mapped(const cli_model *model, const char *name)
{
    for (int i = 0; i < model->n_maps; i++)
        if (strcmp(model->maps[i].name, name) == 0)
            return true;
    return false;
}

static void note_gains(const attn_file *file, const char *prefix,
                       const char *within)
{
    for (int i = 0; i < 2; i++)
        if (find(file, prefix, within, gains[i]) >= 0)
            cli_note("%s%s: in the model, not applied; --map g_%c=%s%s "
                     "applies it as u g / sqrt(mean(u^2) + 1e-6)", within,
                     gains[i], "qk"[i], within, gains[i]);
}

/* What --map leaves, by the naming scheme. */
static int take_scheme(cli_model *model, cli_inputs *inputs, attn_file *file,
                       const char *prefix)
{
    const char *within = "";
    const scheme *s = find_scheme(file, prefix, &within);
    int code = CLI_GO;

    if (!s)
        return no_scheme(model, file, prefix);
    if (model->linear && !s->linear)
        cli_note("--linear: ignored, weights of %s are (in, out)", s->title);
    model->linear = s->linear;
    for (int i = 0; i < N_PARAMETERS && code == CLI_GO; i++) {
        const int64_t index = s->names[i] && !is_mapped(model, parameters[i])
                                  ? find(file, prefix, within, s->names[i])
                                  : -1;

        if (index >= 0)
            code = take(inputs, file, index, parameters[i], model->path);
    }
    if (!is_mapped(model, "g_q") && !is_mapped(model, "g_k"))
        note_gains(file, prefix, within);
    return code;
}

int cli_model_read(cli_model *model, cli_inputs *inputs)
{
    const char *prefix = model->prefix ? model->prefix : "";
    const bool whole = is_mapped(model, "w_qkv") ||
                       (is_mapped(model, "w_q") && is_mapped(model, "w_k") &&
                        is_mapped(model, "w_v"));
    attn_file *file;
    attn_diag diag;
    int code;

    if (attn_file_open(model->path, &file, &diag) != ATTN_OK)
        return cli_file_refused(model->path, &diag);
    code = take_maps(model, inputs, file, prefix);
    if (code == CLI_GO && !whole)
        code = take_scheme(model, inputs, file, prefix);
    attn_file_close(file);
    return code;
}

int cli_map_parse(const char *name, const char *text, cli_model *model)
{
    const char *equals = strchr(text, '=');
    cli_nearest nearest = {text, equals ? (size_t)(equals - text) : 0, NULL, 0};
    char hint[64];

    if (!equals || !equals[1])
        return cli_fail(CLI_USAGE, "--%s: '%s' is not w_q=NAME or the like",
                        name, text);
    for (int i = 0; i < N_PARAMETERS; i++)
        cli_nearest_offer(&nearest, parameters[i]);
    if (!nearest.best || nearest.distance > 0) {
        cli_nearest_text(&nearest, "", hint, sizeof hint);
        return cli_fail(CLI_USAGE, "--%s: '%.*s' is no array of a layer%s",
                        name, (int)nearest.n, text, hint);
    }
    for (int i = 0; i < model->n_maps; i++)
        if (model->maps[i].name == nearest.best) {
            model->maps[i].tensor = equals + 1;
            return CLI_GO;
        }
    model->maps[model->n_maps].name = nearest.best;
    model->maps[model->n_maps++].tensor = equals + 1;
    return CLI_GO;
}
