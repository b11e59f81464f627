/* SPDX-License-Identifier: Apache-2.0
 *
 * attn doctor: examine somebody's attention and name its bug. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn_io.h"
#include "attn_subject.h"
#include "cli.h"
#include "doctor_picture.h"
#include "picture_out.h"
#include "print_arrays.h"
#include "progress.h"
#include "words.h"

typedef struct doctor {
    attn_doctor_options options;
    attn_subject_options subject;
    const char *dump, *command, *demo, *picture;
    bool json, list;
} doctor;

/* ---------------------------------------------------------------- options */

static int set_json(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    ((doctor *)target)->json = true;
    return CLI_GO;
}

static int set_list(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    ((doctor *)target)->list = true;
    return CLI_GO;
}

static int set_expect(void *target, const char *name, const char *value)
{
    (void)name;
    ((doctor *)target)->options.expect = value ? value : "";
    return CLI_GO;
}

static int set_kind(void *target, const char *name, const char *value)
{
    static const char *const kinds[] = {"auto",    "attention", "multi_head",
                                        "rope",    "softmax",   "backward",
                                        "decode",  "merge"};
    int kind;
    const int code = cli_choice(name, value, kinds, 8, &kind);

    if (code == CLI_GO)
        ((doctor *)target)->options.kind = (attn_kind)kind;
    return code;
}

static int set_dtype(void *target, const char *name, const char *value)
{
    static const char *const types[] = {"f64",     "f32",     "f16",
                                        "float64", "float32", "float16"};
    static const attn_dtype dtypes[] = {ATTN_F64, ATTN_F32, ATTN_F16};
    int type;
    const int code = cli_choice(name, value, types, 6, &type);

    if (code == CLI_GO)
        ((doctor *)target)->options.dtype = dtypes[type % 3];
    return code;
}

static int set_layout(void *target, const char *name, const char *value)
{
    (void)name;
    ((doctor *)target)->options.layout = value;
    return CLI_GO;
}

static int set_seed(void *target, const char *name, const char *value)
{
    int64_t seed;
    const int code = cli_integer(name, value, 0, INT64_MAX, &seed);

    if (code == CLI_GO)
        ((doctor *)target)->options.seed = (uint64_t)seed;
    return code;
}

static int set_python(void *target, const char *name, const char *value)
{
    (void)name;
    ((doctor *)target)->subject.python = value;
    return CLI_GO;
}

static int set_signature(void *target, const char *name, const char *value)
{
    (void)name;
    ((doctor *)target)->subject.signature = value;
    return CLI_GO;
}

static int set_dump(void *target, const char *name, const char *value)
{
    (void)name;
    ((doctor *)target)->dump = value;
    return CLI_GO;
}

static int set_exec(void *target, const char *name, const char *value)
{
    (void)name;
    ((doctor *)target)->command = value;
    return CLI_GO;
}

static int set_demo(void *target, const char *name, const char *value)
{
    (void)name;
    ((doctor *)target)->demo = value;
    return CLI_GO;
}

static int set_picture(void *target, const char *name, const char *value)
{
    (void)name;
    ((doctor *)target)->picture = value;
    return cli_picture_path("--picture", value);
}

static int set_timeout(void *target, const char *name, const char *value)
{
    return cli_number(name, value, &((doctor *)target)->subject.timeout);
}

static const cli_option table[] = {
    {"expect", "=WORDS",
     "what it is meant to compute, as in\n"
     "causal=bottom_right,window=2:0,mask_true=keep\n"
     "(empty: the defaults); without it, find out",
     set_expect},
    {"kind", "=KIND",
     "attention, multi_head, rope, softmax, backward,\n"
     "decode or merge; else guessed from the names",
     set_kind},
    {"layout", "=LAYOUT", "bhsd, bshd, hsd, shd, sd, bsd, bse, se, bhds,\n"
                          "hds, bds, ds, sbhd, sbd or sbe; else found\n"
                          "by trying", set_layout},
    {"dtype", "=TYPE", "of the inputs: f64 (default), f32 or f16", set_dtype},
    {"seed", "=N", "of the inputs (default 0)", set_seed},
    {"timeout", "=SECONDS", "for one call (default 10)", set_timeout},
    {"dump", "=FILE.npz", "examine one case: q k v o, or do dq dk dv",
     set_dump},
    {"exec", "=COMMAND", "examine a command, as in './prog {in} {out}'",
     set_exec},
    {"signature", "=WORDS",
     "of a C symbol: 'q f32[n,d], k f32[m,d], v f32[m,e],\n"
     "out f32[n,e], n int, m int, d int, e int';\n"
     "of a command: the names of its inputs",
     set_signature},
    {"python", "=PROGRAM", "the Python that runs it (default python3)",
     set_python},
    {"json", NULL, "the report as JSON", set_json},
    {"picture", "=A.png|A.svg",
     "draw the head that is most wrong, beside the right one", set_picture},
    {"demo", "=FAULT", "make that bug, and show what is said", set_demo},
    {"list", NULL, "list the faults that it knows", set_list},
};

static const char about[] =
    "Calls the attention FILE.py:FUNCTION, or LIBRARY.so:SYMBOL, on small\n"
    "questions and says which attention it is and, if it is wrong, names the\n"
    "bug and the fix.\n"
    "Exit codes: 0 correct, 1 a fault, 3 undecided or unusable.\n";

/* ----------------------------------------------------------------- report */

static int list_faults(void)
{
    for (int32_t x = 0; x < attn_doctor_n_entries(); x++) {
        const attn_fault_entry *e = attn_doctor_entry(x);

        printf("%s\n    %s.\n    Fix: %s\n", e->id, e->says, e->fix);
    }
    return CLI_OK;
}

static int list_as_json(void)
{
    cli_json_begin("doctor-list-1");
    fputs(", \"faults\": [", stdout);
    for (int32_t x = 0; x < attn_doctor_n_entries(); x++) {
        const attn_fault_entry *e = attn_doctor_entry(x);

        printf("%s\n  {\"id\": \"%s\", \"says\": ", x > 0 ? "," : "", e->id);
        cli_json_string(e->says);
        fputs(", \"fix\": ", stdout);
        cli_json_string(e->fix);
        putchar('}');
    }
    puts("\n]}");
    return CLI_OK;
}

static int code_of(attn_verdict verdict)
{
    return verdict == ATTN_VERDICT_CORRECT ? CLI_OK
           : verdict == ATTN_VERDICT_FAULT ? CLI_FINDING
                                           : CLI_INPUT;
}

static int show(const doctor *d, attn_report *report)
{
    int code = code_of(attn_report_verdict(report));

    fputs(d->json ? attn_report_json(report) : attn_report_text(report),
          stdout);
    if (d->picture) {
        const int drawn = cli_doctor_draw(report, d->picture);

        code = drawn == CLI_GO ? code : drawn;
    }
    attn_report_free(report);
    return code;
}

/* The subject's call, counted on its way for whoever waits. */
typedef struct counted {
    const attn_subject *of;
    int64_t n;
} counted;

static attn_outcome count_call(void *ctx, const attn_value *values, int32_t n,
                               attn_answer *answer)
{
    counted *c = ctx;

    cli_progress("question", c->n++, 0);
    return c->of->call(c->of->ctx, values, n, answer);
}

static int examine(const doctor *d, const attn_subject *subject)
{
    counted counter = {subject, 0};
    attn_subject watched = *subject;
    attn_report *report;
    attn_diag diag;

    watched.ctx = &counter;
    watched.call = count_call;
    if (attn_doctor_examine(&watched, &d->options, &report, &diag) != ATTN_OK)
        return cli_refused(&diag);
    cli_progress_end();
    return show(d, report);
}

/* ------------------------------------------------------------------- dump */

/* The arrays of numbers that a file holds; at most 64. */
enum { MOST_ARRAYS = 64 };

static int examine_arrays(const doctor *d, const attn_array *arrays, int n)
{
    attn_dump_array list[MOST_ARRAYS];
    attn_report *report;
    attn_diag diag;
    int count = 0;

    for (int x = 0; x < n; x++) {
        const attn_array *a = &arrays[x];

        if (a->dtype == ATTN_NONE || a->rank > 4)
            continue;
        list[count++] = (attn_dump_array){
            .name = a->name,
            .tensor = attn_in_dense(a->data, a->dtype, a->rank, a->shape)};
    }
    if (attn_doctor_examine_dump(d->dump, list, count, &d->options, &report,
                                 &diag) != ATTN_OK)
        return cli_refused(&diag);
    return show(d, report);
}

static int examine_dump(const doctor *d)
{
    attn_array arrays[MOST_ARRAYS];
    attn_file *file;
    attn_diag diag;
    int64_t count;
    int n = 0, code = CLI_GO;

    if (attn_file_open(d->dump, &file, &diag) != ATTN_OK)
        return cli_file_refused(d->dump, &diag);
    count = attn_file_count(file);
    for (int64_t x = 0; x < count && n < MOST_ARRAYS && code == CLI_GO; x++) {
        if (attn_file_entry(file, x)->status != ATTN_OK)
            continue;
        if (attn_file_load(file, x, &arrays[n], &diag) == ATTN_OK)
            n++;
        else
            code = cli_file_refused(d->dump, &diag);
    }
    attn_file_close(file);
    if (code == CLI_GO)
        code = examine_arrays(d, arrays, n);
    while (n > 0)
        attn_array_free(&arrays[--n]);
    return code;
}

static int examine_subject(const doctor *d, const char *what)
{
    attn_subject_options options = d->subject;
    const char *folder = getenv("TMPDIR");
    attn_subject *subject;
    attn_diag diag;
    attn_status status;
    int code;

    options.scratch = folder && *folder ? folder : "/tmp";
    status = d->command
                 ? attn_subject_open_command(d->command, &options, &subject,
                                             &diag)
                 : attn_subject_open(what, &options, &subject, &diag);
    if (status != ATTN_OK)
        return cli_refused(&diag);
    code = examine(d, subject);
    attn_subject_close(subject);
    return code;
}

static int examine_demo(const doctor *d)
{
    attn_subject *subject;
    attn_diag diag;
    int code;

    if (attn_doctor_demo(d->demo, &subject, &diag) != ATTN_OK)
        return cli_refused(&diag);
    code = examine(d, subject);
    attn_doctor_demo_free(subject);
    return code;
}

int cmd_doctor(int argc, char **argv)
{
    doctor d = {0};
    const cli_group group = {"Options:", table,
                             sizeof table / sizeof table[0], &d};
    const cli_usage usage = {
        "attn doctor FILE.py:FUNCTION|LIBRARY.so:SYMBOL [OPTION]...", about,
        &group, 1};
    int n, code;

    attn_doctor_options_init(&d.options);
    attn_subject_options_init(&d.subject);
    code = cli_parse(&usage, argc, argv, &n);
    if (code != CLI_GO)
        return code;
    if (d.list)
        return d.json ? list_as_json() : list_faults();
    if (n + !!d.dump + !!d.command + !!d.demo != 1)
        return cli_fail(CLI_USAGE, "one subject: FILE.py:FUNCTION, "
                                   "LIBRARY.so:SYMBOL, --dump or --exec");
    if (d.demo)
        return examine_demo(&d);
    return d.dump ? examine_dump(&d) : examine_subject(&d, argv[0]);
}
