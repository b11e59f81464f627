/* SPDX-License-Identifier: Apache-2.0
 *
 * A command as a subject: it reads its inputs from one .npz file and leaves
 * its results in another, whose names take the places of {in} and {out}. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attn_io.h"
#include "core/alloc.h"
#include "core/diag.h"
#include "subject/open.h"

extern char **environ;

enum { MOST_PARAMETERS = 32, MOST_COMMAND = 4096 };

typedef struct command {
    attn_subject subject;
    attn_parameter parameters[MOST_PARAMETERS];
    char *text, *names; /* names: cut into pieces */
    char *folder;       /* a temporary one */
    double timeout;
} command;

static void path_in(const command *c, const char *file, char *path,
                    size_t size)
{
    snprintf(path, size, "%s/%s", c->folder, file);
}

/* ---------------------------------------------------------------- inputs */

static void copy_elements(const attn_input *t, attn_array *array)
{
    const size_t size = attn_dtype_size(t->dtype);

    for (int64_t e = 0; e < array->count; e++) {
        int64_t rest = e, from = 0;

        for (int32_t a = t->rank - 1; a >= 0; a--) {
            from += rest % t->shape[a] * t->stride[a];
            rest /= t->shape[a];
        }
        if (t->rank > 0)
            from += rest * t->shape[0] * t->stride[0]; /* of a fifth axis */
        memcpy((char *)array->data + (size_t)e * size,
               (const char *)t->data + (size_t)from * size, size);
    }
}

static attn_status write_value(const command *c, const attn_value *v,
                               attn_array *array, attn_diag *diag)
{
    const char *name = c->parameters[v->parameter].name;
    const int64_t two = 2;

    if (v->kind == ATTN_VALUE_TENSOR) {
        int64_t shape[5] = {v->integer[0]};
        const int32_t fifth = v->integer[0] > 0;

        memcpy(shape + fifth, v->tensor.shape, sizeof v->tensor.shape);
        ATTN__TRY(attn_array_init(array, name, v->tensor.dtype,
                                  v->tensor.rank + fifth, shape, diag));
        copy_elements(&v->tensor, array);
        return ATTN_OK;
    }
    if (v->kind == ATTN_VALUE_REAL) {
        ATTN__TRY(attn_array_init(array, name, ATTN_F64, 0, NULL, diag));
        *(double *)array->data = v->real;
        return ATTN_OK;
    }
    if (v->kind == ATTN_VALUE_PAIR) {
        ATTN__TRY(attn_array_init(array, name, ATTN_I64, 1, &two, diag));
        memcpy(array->data, v->integer, sizeof v->integer);
        return ATTN_OK;
    }
    ATTN__TRY(attn_array_init(array, name, ATTN_I64, 0, NULL, diag));
    *(int64_t *)array->data = v->integer[0];
    return ATTN_OK;
}

static attn_status write_inputs(const command *c, const attn_value *values,
                                int32_t n, attn_diag *diag)
{
    attn_array arrays[MOST_PARAMETERS] = {{0}};
    char path[MOST_COMMAND];
    int64_t count = 0;
    attn_status status = ATTN_OK;

    for (int32_t x = 0; x < n && status == ATTN_OK; x++) {
        if (values[x].kind != ATTN_VALUE_NONE)
            status = write_value(c, &values[x], &arrays[count++], diag);
    }
    path_in(c, "in.npz", path, sizeof path);
    if (status == ATTN_OK)
        status = attn_npz_write(path, arrays, count, diag);
    while (count > 0)
        attn_array_free(&arrays[--count]);
    return status;
}

/* --------------------------------------------------------------- results */

/* An array that cannot be read, or holds no numbers, is passed over. False if
 * memory is short. */
static bool take_array(attn_file *file, int64_t index, attn_answer *answer)
{
    attn_result *r = &answer->results[answer->n_results];
    attn_array array;
    attn_diag diag;
    const attn_status status = attn_file_load(file, index, &array, &diag);
    bool is_numbers;

    if (status != ATTN_OK)
        return status != ATTN_E_NOMEM;
    is_numbers =
        array.dtype != ATTN_NONE && array.rank <= ATTN_RESULT_MAX_RANK;
    if (is_numbers)
        r->data = attn__alloc((size_t)array.count * sizeof *r->data + 1);
    if (r->data) {
        r->dtype = array.dtype;
        r->rank = array.rank;
        r->count = array.count;
        memcpy(r->shape, array.shape,
               (size_t)array.rank * sizeof r->shape[0]);
        for (int64_t e = 0; e < array.count; e++)
            r->data[e] = attn_array_value(&array, e);
        answer->n_results++;
    }
    attn_array_free(&array);
    return !is_numbers || r->data;
}

static attn_outcome starve(attn_answer *answer)
{
    for (int32_t x = 0; x < answer->n_results; x++)
        attn__free(answer->results[x].data);
    answer->n_results = 0;
    snprintf(answer->message, sizeof answer->message, "out of memory");
    return ATTN_LOST;
}

/* Results by name where they have known ones, else in the file's order. */
static attn_outcome read_results(const command *c, attn_answer *answer)
{
    static const char *const known[] = {"o", "out", "output",  "y",  "dq",
                                        "dk", "dv",  "weights", "lse"};
    char path[MOST_COMMAND];
    attn_file *file;
    attn_diag diag;
    attn_status status;
    bool ok = true;

    path_in(c, "out.npz", path, sizeof path);
    status = attn_file_open(path, &file, &diag);
    if (status == ATTN_E_NOMEM)
        return starve(answer);
    if (status != ATTN_OK) {
        snprintf(answer->message, sizeof answer->message, "{out}: %s",
                 diag.message);
        return ATTN_RAISED;
    }
    for (size_t x = 0; ok && x < sizeof known / sizeof known[0]; x++) {
        const int64_t at = attn_file_find(file, known[x]);

        if (at >= 0 && answer->n_results < ATTN_RESULTS_MAX)
            ok = take_array(file, at, answer);
    }
    for (int64_t x = 0;
         ok && x < attn_file_count(file) && answer->n_results == 0; x++)
        ok = take_array(file, x, answer);
    attn_file_close(file);
    return ok ? ATTN_ANSWERED : starve(answer);
}

/* ------------------------------------------------------------------- run */

/* The command with the names of the files in it. */
static bool fill_in(const command *c, char *text, size_t size)
{
    size_t n = 0;

    for (const char *at = c->text; *at;) {
        const bool in = strncmp(at, "{in}", 4) == 0;
        const bool out = strncmp(at, "{out}", 5) == 0;

        if (n + strlen(c->folder) + 16 > size)
            return false;
        if (in || out) {
            n += (size_t)snprintf(text + n, size - n, "%s/%s.npz", c->folder,
                                  in ? "in" : "out");
            at += in ? 4 : 5;
        } else {
            text[n++] = *at++;
        }
    }
    text[n] = '\0';
    return true;
}

/* What it inherits: nothing to read, nowhere to print, and a process group of
 * its own, so that it can be ended as a whole. */
static bool prepare(posix_spawn_file_actions_t *actions,
                    posix_spawnattr_t *attributes)
{
    bool ok =
        posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP) == 0 &&
        posix_spawnattr_setpgroup(attributes, 0) == 0;

    for (int fd = 0; fd < 3; fd++)
        ok = ok && posix_spawn_file_actions_addopen(actions, fd, "/dev/null",
                                                    O_RDWR, 0) == 0;
    return ok;
}

static bool spawn(char *text, pid_t *pid)
{
    char shell[] = "sh", flag[] = "-c";
    char *const argv[] = {shell, flag, text, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    bool ok;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return false;
    }
    ok = prepare(&actions, &attributes) &&
         posix_spawn(pid, "/bin/sh", &actions, &attributes, argv, environ) ==
             0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return ok;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static attn_outcome wait_for(pid_t pid, double timeout, int *status)
{
    const double until = now() + timeout;
    const struct timespec pause = {0, 1000000};

    for (;;) {
        const pid_t ended = waitpid(pid, status, WNOHANG);

        if (ended == pid)
            return ATTN_ANSWERED;
        if (now() > until || (ended < 0 && errno != EINTR)) {
            kill(-pid, SIGKILL);
            while (waitpid(pid, status, 0) < 0 && errno == EINTR)
                continue;
            return ended < 0 ? ATTN_CRASHED : ATTN_TIMED_OUT;
        }
        nanosleep(&pause, NULL);
    }
}

static attn_outcome judge_end(const command *c, int status,
                              attn_answer *answer)
{
    const size_t size = sizeof answer->message;

    if (WIFSIGNALED(status)) {
        snprintf(answer->message, size, "it was ended by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
        return ATTN_CRASHED;
    }
    if (WEXITSTATUS(status) != 0) {
        snprintf(answer->message, size, "it ended with code %d",
                 WEXITSTATUS(status));
        return ATTN_RAISED;
    }
    return read_results(c, answer);
}

static attn_outcome call(void *ctx, const attn_value *values, int32_t n,
                         attn_answer *answer)
{
    command *c = ctx;
    char text[MOST_COMMAND], path[MOST_COMMAND];
    const size_t size = sizeof answer->message;
    double start;
    attn_diag diag;
    attn_outcome outcome;
    pid_t pid;
    int status = 0;

    path_in(c, "out.npz", path, sizeof path);
    unlink(path);
    if (write_inputs(c, values, n, &diag) != ATTN_OK) {
        snprintf(answer->message, size, "{in}: %s", diag.message);
        return ATTN_LOST;
    }
    if (!fill_in(c, text, sizeof text) || !spawn(text, &pid)) {
        snprintf(answer->message, size, "it cannot be started");
        return ATTN_LOST;
    }
    start = now();
    outcome = wait_for(pid, c->timeout, &status);
    answer->seconds = now() - start;
    if (outcome == ATTN_TIMED_OUT)
        snprintf(answer->message, size, "no answer within %g s", c->timeout);
    return outcome == ATTN_ANSWERED ? judge_end(c, status, answer) : outcome;
}

/* ----------------------------------------------------------- open, close */

static void remove_folder(const command *c)
{
    char path[MOST_COMMAND];

    path_in(c, "in.npz", path, sizeof path);
    unlink(path);
    path_in(c, "out.npz", path, sizeof path);
    unlink(path);
    rmdir(c->folder);
}

static void close_command(void *ctx)
{
    command *c = ctx;

    if (c->folder && c->folder[0])
        remove_folder(c);
    attn__free(c->text);
    attn__free(c->names);
    attn__free(c->folder);
    attn__free(c);
}

/* "q, k, v, mask": the words between commas. */
static void list_parameters(command *c)
{
    for (char *item = strtok(c->names, ","); item; item = strtok(NULL, ",")) {
        if (c->subject.n_parameters == MOST_PARAMETERS)
            break;
        item += strspn(item, " \t");
        item[strcspn(item, " \t")] = '\0';
        c->parameters[c->subject.n_parameters++].name = item;
    }
    c->subject.parameters = c->parameters;
}

static attn_status make_folder(command *c, const char *scratch,
                               attn_diag *diag)
{
    const size_t size = strlen(scratch) + 32;

    c->folder = attn__calloc(size, 1);
    if (!c->folder)
        return attn__fail(diag, ATTN_E_NOMEM, "subject", "out of memory");
    snprintf(c->folder, size, "%s/attn-doctor-XXXXXX", scratch);
    if (!mkdtemp(c->folder)) {
        c->folder[0] = '\0';
        return attn__fail(diag, ATTN_E_IO, "subject",
                          "no temporary folder can be made in %.80s",
                          scratch);
    }
    return ATTN_OK;
}

static attn_status fill_command(command *c, const char *text,
                                const attn_subject_options *options,
                                attn_diag *diag)
{
    const char *names = options->signature ? options->signature : "q, k, v";

    c->text = attn__strdup(text);
    c->names = attn__strdup(names);
    c->timeout = options->timeout > 0 ? options->timeout : 10;
    ATTN__REQUIRE(c->text && c->names, diag, ATTN_E_NOMEM, "subject",
                  "out of memory");
    ATTN__REQUIRE(strstr(text, "{in}") && strstr(text, "{out}"), diag,
                  ATTN_E_ARG, "subject", "the command needs {in} and {out}");
    ATTN__TRY(
        make_folder(c, options->scratch ? options->scratch : ".", diag));
    c->subject = (attn_subject){.name = c->text, .ctx = c, .call = call};
    list_parameters(c);
    return ATTN_OK;
}

attn_status attn_subject_open_command(const char *text,
                                      const attn_subject_options *options,
                                      attn_subject **subject, attn_diag *diag)
{
    attn__opened *opened = attn__calloc(1, sizeof *opened);
    command *c = attn__calloc(1, sizeof *c);
    attn_status status;

    *subject = NULL;
    status = opened && c ? fill_command(c, text, options, diag)
                         : attn__fail(diag, ATTN_E_NOMEM, "subject",
                                      "out of memory");
    if (status != ATTN_OK) {
        if (c)
            close_command(c);
        attn__free(opened);
        return status;
    }
    *opened = (attn__opened){.subject = c->subject, .close = close_command};
    *subject = &opened->subject;
    return attn__ok(diag);
}
