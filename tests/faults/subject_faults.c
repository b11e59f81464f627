/* SPDX-License-Identifier: Apache-2.0
 *
 * subject_faults: subjects in other processes are opened, called twice and
 * closed, while the k-th operation fails, for every k: allocations by the
 * hook; starting, waiting, sending and receiving by --wrap. What is
 * interrupted or falls short must not be noticed; what fails must give a
 * status or an outcome and say why; and nothing may stay behind: no memory, no
 * descriptor, no child, no file.
 *
 * With -c as the first word it is the child itself, which speaks the protocol
 * as a Python function would. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attn_subject.h"
#include "subject/child.h"
#include "subject/protocol.h"

/* ------------------------------------------------------- what can fail */

typedef enum kind {
    MEMORY,
    PAIR,  /* socketpair */
    SPAWN, /* posix_spawn, posix_spawnp */
    FORK,
    WAIT, /* waitpid */
    POLL,
    SEND,
    RECV,
    FOLDER, /* mkdtemp */
    N_KINDS
} kind;

static const char *const kind_names[] = {
    "allocation", "socketpair", "spawn", "fork",  "waitpid",
    "poll",       "send",       "recv",  "mkdtemp"};

#include "strike.h"

static const char *const manner_names[] = {
    "fails", "and all after it fail", "is interrupted", "is short"};

static int live; /* blocks of the hook not freed */

static void *hooked_realloc(void *ptr, size_t size)
{
    void *block = strikes(MEMORY) ? NULL : realloc(ptr, size);

    live += block && !ptr;
    return block;
}

static void hooked_free(void *ptr)
{
    live--;
    free(ptr);
}

int __real_socketpair(int domain, int type, int protocol, int ends[2]);
int __wrap_socketpair(int domain, int type, int protocol, int ends[2]);
int __real_posix_spawn(pid_t *pid, const char *path,
                       const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes,
                       char *const argv[], char *const envp[]);
int __wrap_posix_spawn(pid_t *pid, const char *path,
                       const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes,
                       char *const argv[], char *const envp[]);
int __real_posix_spawnp(pid_t *pid, const char *path,
                        const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes,
                        char *const argv[], char *const envp[]);
int __wrap_posix_spawnp(pid_t *pid, const char *path,
                        const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes,
                        char *const argv[], char *const envp[]);
pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
ssize_t __real_send(int fd, const void *data, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t n, int flags);
ssize_t __real_recv(int fd, void *data, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t n, int flags);
char *__real_mkdtemp(char *name);
char *__wrap_mkdtemp(char *name);

int __wrap_socketpair(int domain, int type, int protocol, int ends[2])
{
    return strikes(PAIR) ? failure(EMFILE)
                         : __real_socketpair(domain, type, protocol, ends);
}

int __wrap_posix_spawn(pid_t *pid, const char *path,
                       const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes,
                       char *const argv[], char *const envp[])
{
    return strikes(SPAWN) ? EAGAIN
                          : __real_posix_spawn(pid, path, actions, attributes,
                                               argv, envp);
}

int __wrap_posix_spawnp(pid_t *pid, const char *path,
                        const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes,
                        char *const argv[], char *const envp[])
{
    return strikes(SPAWN) ? EAGAIN
                          : __real_posix_spawnp(pid, path, actions,
                                                attributes, argv, envp);
}

/* Nothing fails in the child. */
pid_t __wrap_fork(void)
{
    const pid_t pid = strikes(FORK) ? failure(EAGAIN) : __real_fork();

    playing &= pid != 0;
    return pid;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    return strikes(WAIT) ? failure(EINTR)
                         : __real_waitpid(pid, status, options);
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    return strikes(POLL) ? failure(ENOMEM) : __real_poll(fds, n, timeout);
}

ssize_t __wrap_send(int fd, const void *data, size_t n, int flags)
{
    if (strikes(SEND)) {
        if (fail_manner != SHORT)
            return failure(EPIPE);
        n = n / 2 + (n == 1);
    }
    return __real_send(fd, data, n, flags);
}

ssize_t __wrap_recv(int fd, void *data, size_t n, int flags)
{
    if (strikes(RECV)) {
        if (fail_manner != SHORT)
            return failure(ECONNRESET);
        n = n / 2 + (n == 1);
    }
    return __real_recv(fd, data, n, flags);
}

char *__wrap_mkdtemp(char *name)
{
    if (!strikes(FOLDER))
        return __real_mkdtemp(name);
    failure(EACCES);
    return NULL;
}

/* ---------------------------------------------------------------- scenes */

static const double numbers[] = {0.5, -1, 2, 1, 0.25, -0.75};
static char *self; /* this program */

/* Call it with q alone; the sum of what comes back, NAN if nothing does. */
static attn_outcome ask(attn_subject *s, double *sum, const char **why)
{
    static attn_answer answer;
    const attn_value value = {
        .kind = ATTN_VALUE_TENSOR,
        .tensor = attn_in_dense(numbers, ATTN_F64, 2, (int64_t[]){2, 3})};
    attn_outcome outcome;

    answer = (attn_answer){0};
    outcome = s->call(s->ctx, &value, 1, &answer);
    *why = answer.message;
    *sum = 0;
    for (int32_t x = 0; x < answer.n_results; x++) {
        for (int64_t e = 0; e < answer.results[x].count; e++)
            *sum += answer.results[x].data[e];
        attn_free(answer.results[x].data);
    }
    return outcome;
}

typedef struct scene {
    const char *name;
    attn_status (*open)(attn_subject **subject, attn_diag *diag);
} scene;

static attn_status open_python(attn_subject **subject, attn_diag *diag)
{
    attn_subject_options options;

    attn_subject_options_init(&options);
    options.python = self;
    return attn_subject_open("mine.py:same", &options, subject, diag);
}

static attn_status open_library(attn_subject **subject, attn_diag *diag)
{
    attn_subject_options options;

    attn_subject_options_init(&options);
    options.signature = "q f64[n,d], out f64[n,d], n i64, d i64";
    return attn_subject_open(SUBJECT_LIBRARY ":same", &options, subject,
                             diag);
}

static attn_status open_command(attn_subject **subject, attn_diag *diag)
{
    attn_subject_options options;

    attn_subject_options_init(&options);
    options.signature = "o";
    return attn_subject_open_command("cp {in} {out}", &options, subject,
                                     diag);
}

static const scene scenes[] = {{"python", open_python},
                               {"library", open_library},
                               {"command", open_command}};

/* --------------------------------------------------------------- judging */

static int passed, failed;

static void expect(bool ok, const scene *s, const char *what)
{
    passed += ok;
    failed += !ok;
    if (!ok)
        printf("%s: %s (%s %d %s)\n", s->name, what, kind_names[fail_kind],
               fail_at + 1, manner_names[fail_manner]);
}

static int entries_of(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

/* A child that was left behind is reaped here, so that it counts once. */
static bool left_a_child(void)
{
    const bool left = __real_waitpid(-1, NULL, WNOHANG) >= 0;

    while (left && __real_waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    return left;
}

/* Open, call twice, close; true if all of that was answered, and right. */
static bool play(const scene *s)
{
    const int descriptors = entries_of("/proc/self/fd");
    const int files = entries_of(".");
    attn_subject *subject = NULL;
    attn_diag diag = {0};
    attn_status status;
    bool answered = true;

    memset(counts, 0, sizeof counts);
    live = 0;
    playing = true;
    status = s->open(&subject, &diag);
    for (int call = 0; call < 2 && status == ATTN_OK; call++) {
        const char *why;
        double sum;
        const attn_outcome outcome = ask(subject, &sum, &why);
        const bool right = outcome == ATTN_ANSWERED && sum == 2;

        answered &= right;
        expect(right || (outcome != ATTN_ANSWERED && *why), s,
               "another answer, or no word why there is none");
    }
    attn_subject_close(subject);
    playing = false;
    expect(status == ATTN_OK || (!subject && diag.message[0]), s,
           "fails and does not say why");
    expect(status == ATTN_OK ||
               status == (fail_kind == MEMORY ? ATTN_E_NOMEM : ATTN_E_IO),
           s, attn_status_name(status));
    expect(live == 0, s, "leaks memory");
    expect(!left_a_child(), s, "leaves a child");
    expect(entries_of("/proc/self/fd") == descriptors, s,
           "leaks a descriptor");
    expect(entries_of(".") == files, s, "leaves a file");
    return status == ATTN_OK && answered;
}

static void fail_each(const scene *s)
{
    bool fired = true;

    for (fail_at = 0; fired; fail_at++) {
        const bool answered = play(s);

        fired = counts[fail_kind] > fail_at;
        expect(answered || fired, s, "fails by itself");
        if (fired && fail_manner >= INTERRUPT)
            expect(answered, s, "notices");
    }
    fail_at = -1;
}

static void play_all(const scene *s)
{
    expect(play(s), s, "fails by itself");
    printf("%-8s", s->name);
    for (int k = 0; k < N_KINDS; k++)
        if (counts[k] > 0)
            printf(" %d %s%s", counts[k], kind_names[k],
                   counts[k] > 1 ? "s" : "");
    printf("\n");
    for (int m = FAILS; m <= SHORT; m++) {
        for (int k = 0; k < N_KINDS; k++) {
            const bool can_be_short = k == SEND || k == RECV;
            const bool can_be_interrupted =
                can_be_short || k == POLL || k == WAIT;

            /* waitpid of one's own child fails in no other way */
            if ((m == SHORT && !can_be_short) ||
                (m == INTERRUPT && !can_be_interrupted) ||
                (m != INTERRUPT && k == WAIT))
                continue;
            fail_manner = (manner)m;
            fail_kind = (kind)k;
            fail_each(s);
        }
    }
}

/* ----------------------------------------------------------------- child */

/* The first array comes back. */
static int serve(void)
{
    const attn_parameter parameters[] = {{.name = "q"}};
    attn__child parent = {.pid = 1, .link = 0};
    attn__message m = {0}, reply = {0};
    bool ok = attn__encode_hello(&reply, parameters, 1, "");

    while (ok &&
           attn__child_send(&parent, &reply, 60) == ATTN_ANSWERED &&
           attn__child_receive(&parent, &m, 60) == ATTN_ANSWERED) {
        attn_value value;
        attn_answer a = {.n_results = 1};
        double y[6];

        if (attn__decode_call(&m, &value, 1) != 1)
            return 1;
        memcpy(y, value.tensor.data, sizeof y);
        a.results[0] = (attn_result){.data = y,
                                     .dtype = ATTN_F64,
                                     .rank = 2,
                                     .shape = {2, 3},
                                     .count = 6};
        reply.length = 0;
        ok = attn__encode_answer(&reply, &a);
        attn__free_values(&value, 1);
        attn__message_free(&m);
    }
    return 0;
}

int main(int argc, char **argv)
{
    char folder[] = "subject-faults-XXXXXX";

    if (argc > 1 && strcmp(argv[1], "-c") == 0)
        return serve();
    self = realpath(argv[0], NULL);
    if (!self || !__real_mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    attn_set_allocator(hooked_realloc, hooked_free);
    for (size_t x = 0; x < sizeof scenes / sizeof scenes[0]; x++)
        play_all(&scenes[x]);
    failed += chdir("..") != 0 || rmdir(folder) != 0;
    free(self);
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
