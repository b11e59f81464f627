/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a program, makes its calls of one kind fail (FAIL_KIND:
 * memory, files or threads): the FAIL_AT-th (from 1) and, with FAIL_ONWARD set,
 * all after it.
 *
 * With FAIL_OUTPUT=FOLDER the program is loaded once, which takes longer than
 * running it, and forked before main for each line that is read: FAIL_AT and
 * whether to go on, 0 or 1. The child's output goes to the files `out` and
 * `err` there, its status, when it has ended, to standard output. One that is
 * told FAIL_AT 0 fails nowhere and writes how many calls it made to `count`.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *ptr, size_t size);

typedef enum kind { NOTHING, MEMORY, FILES, THREADS } kind;

static atomic_long count;
static kind failing; /* NOTHING while the program is being loaded */
static long fail_at;
static int onward, counter = -1;
static kind wanted;

/* What is interposed, and the functions themselves. */
static int (*real_open)(const char *, int, ...);
static int (*real_fstat)(int, struct stat64 *);
static ssize_t (*real_pread)(int, void *, size_t, off64_t);
static ssize_t (*real_write)(int, const void *, size_t);
static int (*real_fsync)(int);
static int (*real_close)(int);
static int (*real_rename)(const char *, const char *);
static int (*real_create)(pthread_t *, const pthread_attr_t *,
                          void *(*)(void *), void *);
static int (*real_mutex)(pthread_mutex_t *, const pthread_mutexattr_t *);
static int (*real_cond)(pthread_cond_t *, const pthread_condattr_t *);

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_AT"), *what = getenv("FAIL_KIND");

    /* C has no other way from an object pointer to one to a function. */
    *(void **)&real_open = dlsym(RTLD_NEXT, "open64");
    *(void **)&real_fstat = dlsym(RTLD_NEXT, "fstat64");
    *(void **)&real_pread = dlsym(RTLD_NEXT, "pread64");
    *(void **)&real_write = dlsym(RTLD_NEXT, "write");
    *(void **)&real_fsync = dlsym(RTLD_NEXT, "fsync");
    *(void **)&real_close = dlsym(RTLD_NEXT, "close");
    *(void **)&real_rename = dlsym(RTLD_NEXT, "rename");
    *(void **)&real_create = dlsym(RTLD_NEXT, "pthread_create");
    *(void **)&real_mutex = dlsym(RTLD_NEXT, "pthread_mutex_init");
    *(void **)&real_cond = dlsym(RTLD_NEXT, "pthread_cond_init");
    onward = getenv("FAIL_ONWARD") != NULL;
    fail_at = at ? atol(at) : 0;
    wanted = !what                          ? NOTHING
             : strcmp(what, "memory") == 0 ? MEMORY
             : strcmp(what, "files") == 0  ? FILES
                                           : THREADS;
    failing = getenv("FAIL_OUTPUT") ? NOTHING : wanted;
}

__attribute__((destructor)) static void end(void)
{
    char text[32];
    const int n = snprintf(text, sizeof text, "%ld\n", (long)count);

    failing = NOTHING;
    if (counter >= 0 && write(counter, text, (size_t)n) != n)
        _exit(99);
}

/* ---------------------------------------------------------------- serving */

/* A file of the folder for output, opened for writing. */
static int output(const char *name)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", getenv("FAIL_OUTPUT"), name);
    return real_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

/* In the child: what was asked for, and nothing of the server's. */
static void become_program(void)
{
    const int in = real_open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (fail_at == 0)
        counter = output("count");
    if (dup2(in, 0) != 0 || dup2(output("out"), 1) != 1 ||
        dup2(output("err"), 2) != 2)
        _exit(98);
    count = 0;
    failing = wanted;
}

/* Reads one line; whether there was one. */
static int read_line(char *line, size_t size)
{
    size_t n = 0;

    while (n + 1 < size && read(0, line + n, 1) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
    return n > 0;
}

/* Returns in each child. */
static void serve(void)
{
    char line[64];

    while (read_line(line, sizeof line)) {
        pid_t child;
        int status = -1, n;

        sscanf(line, "%ld %d", &fail_at, &onward);
        child = fork();
        if (child == 0) {
            become_program();
            return;
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
            _exit(97);
        n = snprintf(line, sizeof line, "%d\n", status);
        if (real_write(1, line, (size_t)n) != n)
            _exit(96);
    }
    _exit(0);
}

typedef int start_main(int (*)(int, char **, char **), int, char **,
                       void (*)(void), void (*)(void), void (*)(void), void *);

/* What the program begins with when all its libraries are loaded. */
start_main __libc_start_main;
int __libc_start_main(int (*program)(int, char **, char **), int argc,
                      char **argv, void (*init)(void), void (*fini)(void),
                      void (*unload)(void), void *stack)
{
    start_main *real;

    *(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
    if (getenv("FAIL_OUTPUT"))
        serve();
    return real(program, argc, argv, init, fini, unload, stack);
}

/* ---------------------------------------------------------------- failing */

static int fails(kind k, int error)
{
    const long at = k == failing ? ++count : 0;

    if (k != failing || fail_at == 0 ||
        (at != fail_at && !(onward && at > fail_at)))
        return 0;
    errno = error;
    return 1;
}

void *malloc(size_t size)
{
    return fails(MEMORY, ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails(MEMORY, ENOMEM) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *ptr, size_t size)
{
    return fails(MEMORY, ENOMEM) ? NULL : __libc_realloc(ptr, size);
}

int open64(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list args;

    va_start(args, flags);
    if (flags & O_CREAT)
        mode = va_arg(args, mode_t);
    va_end(args);
    return fails(FILES, EMFILE) ? -1 : real_open(path, flags, mode);
}

int fstat64(int fd, struct stat64 *to)
{
    return fails(FILES, EIO) ? -1 : real_fstat(fd, to);
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
    return fails(FILES, EIO) ? -1 : real_pread(fd, to, n, at);
}

ssize_t write(int fd, const void *from, size_t n)
{
    return fails(FILES, ENOSPC) ? -1 : real_write(fd, from, n);
}

int fsync(int fd)
{
    return fails(FILES, EIO) ? -1 : real_fsync(fd);
}

/* It closes, and fails nevertheless, as on a network. */
int close(int fd)
{
    const int result = real_close(fd);

    return fails(FILES, EIO) ? -1 : result;
}

int rename(const char *from, const char *to)
{
    return fails(FILES, EACCES) ? -1 : real_rename(from, to);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*start)(void *), void *arg)
{
    return fails(THREADS, EAGAIN) ? EAGAIN
                                  : real_create(thread, attributes, start, arg);
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *how)
{
    return fails(THREADS, ENOMEM) ? ENOMEM : real_mutex(mutex, how);
}

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *how)
{
    return fails(THREADS, ENOMEM) ? ENOMEM : real_cond(cond, how);
}
