/* SPDX-License-Identifier: Apache-2.0
 *
 * The faults of file_faults.h, and judging what comes of them. */
#include "file_faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------- what can fail */

typedef enum kind {
    HOOK,   /* attn_realloc */
    MALLOC, /* another library's malloc while a scene plays */
    OPEN,
    FSTAT,
    PREAD,
    WRITE,
    FSYNC,
    CLOSE,
    RENAME,
    N_KINDS
} kind;

static const char *const kind_names[] = {"allocation", "other's allocation",
                                         "open",       "fstat",
                                         "pread",      "write",
                                         "fsync",      "close",
                                         "rename"};

#include "strike.h"

static int live; /* blocks of the hook not freed */
static int live_descriptors;

/* --------------------------------------------------------------- memory */

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
/* A sanitizer has a malloc of its own; gcc and clang tell in different ways. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||          \
    HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer)
#define STANDS_IN 0
#else
#define STANDS_IN 1
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *ptr, size_t size);

void *malloc(size_t size)
{
    return strikes(MALLOC) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return strikes(MALLOC) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *ptr, size_t size)
{
    return strikes(MALLOC) ? NULL : __libc_realloc(ptr, size);
}
#endif

static void *hooked_realloc(void *ptr, size_t size)
{
    const bool was_playing = playing;
    void *block;

    if (strikes(HOOK))
        return NULL;
    playing = false; /* this is not another library's */
    block = realloc(ptr, size);
    playing = was_playing;
    live += block && !ptr;
    return block;
}

static void hooked_free(void *ptr)
{
    live--;
    free(ptr);
}

/* ---------------------------------------------------------------- files */

int __real_close(int fd);
ssize_t __real_pread64(int fd, void *data, size_t n, off_t offset);
ssize_t __real_write(int fd, const void *data, size_t n);
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __real_fstat64(int fd, struct stat *info);
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_fstat64(int fd, struct stat *info);
ssize_t __wrap_pread64(int fd, void *data, size_t n, off_t offset);
ssize_t __wrap_write(int fd, const void *data, size_t n);
int __wrap_fsync(int fd);
int __wrap_close(int fd);
int __wrap_rename(const char *from, const char *to);

int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    int fd, mode;

    va_start(args, flags);
    mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (strikes(OPEN))
        return failure(EIO);
    fd = __real_open64(path, flags, mode);
    live_descriptors += fd >= 0;
    return fd;
}

int __wrap_fstat64(int fd, struct stat *info)
{
    return strikes(FSTAT) ? failure(EIO) : __real_fstat64(fd, info);
}

ssize_t __wrap_pread64(int fd, void *data, size_t n, off_t offset)
{
    if (strikes(PREAD)) {
        if (fail_manner != SHORT)
            return failure(EIO);
        n = n / 2 + (n == 1);
    }
    return __real_pread64(fd, data, n, offset);
}

ssize_t __wrap_write(int fd, const void *data, size_t n)
{
    if (strikes(WRITE)) {
        if (fail_manner != SHORT)
            return failure(EIO);
        n = n / 2 + (n == 1);
    }
    return __real_write(fd, data, n);
}

int __wrap_fsync(int fd)
{
    return strikes(FSYNC) ? failure(EIO) : __real_fsync(fd);
}

/* Linux closes the descriptor whatever close returns. */
int __wrap_close(int fd)
{
    const bool struck = strikes(CLOSE);

    live_descriptors -= __real_close(fd) == 0;
    return struck ? failure(EIO) : 0;
}

int __wrap_rename(const char *from, const char *to)
{
    return strikes(RENAME) ? failure(EIO) : __real_rename(from, to);
}

/* --------------------------------------------------------------- judging */

#define OLD "what was there before"

char fault_folder[] = "faults-XXXXXX", fault_out[64];

/* FNV-1a, continued. */
unsigned mix(unsigned sum, const void *data, size_t n)
{
    const unsigned char *bytes = data;

    sum ^= 0x811c9dc5u;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * 0x01000193u;
    return sum;
}

static int passed, failed;

static void expect(bool ok, const char *name, const char *what)
{
    static const char *const manners[] = {"fails", "and all after it fail",
                                          "is interrupted", "is short"};

    passed += ok;
    failed += !ok;
    if (!ok)
        printf("%s: %s (%s %d %s)\n", name, what, kind_names[fail_kind],
               fail_at + 1, manners[fail_manner]);
}

/* The bytes of `out`, and how many files there are. */
static unsigned folder_sum(void)
{
    DIR *dir = opendir(fault_folder);
    const struct dirent *entry;
    FILE *file = fopen(fault_out, "rb");
    char piece[4096];
    size_t n;
    unsigned files = 0, sum = 0;

    while ((entry = readdir(dir)))
        files += entry->d_name[0] != '.';
    closedir(dir);
    while (file && (n = fread(piece, 1, sizeof piece, file)) > 0)
        sum = mix(sum, piece, n);
    if (file)
        fclose(file);
    return sum + files;
}

static void restore(void)
{
    FILE *file = fopen(fault_out, "wb");

    fputs(OLD, file);
    fclose(file);
}

static attn_status play(const file_scene *scene, unsigned *sum)
{
    attn_status status;

    restore();
    memset(counts, 0, sizeof counts);
    live = live_descriptors = 0;
    *sum = 0;
    playing = true;
    status = scene->play(sum);
    playing = false;
    return status;
}

/* Whether `status` is right for what went wrong. */
static bool is_right(const file_scene *scene, attn_status status)
{
    if (fail_manner >= INTERRUPT)
        return status == ATTN_OK;
    if (fail_kind == HOOK || fail_kind == MALLOC)
        return status == ATTN_E_NOMEM ||
               (status == ATTN_OK && fail_kind == MALLOC);
    if (fail_kind == CLOSE && !scene->writes)
        return status == ATTN_OK;
    return status == ATTN_E_IO;
}

/* Fail the k-th operation for every k, until none is left to fail. */
static void fail_each(const file_scene *scene, unsigned clean_sum,
                      unsigned before, unsigned after)
{
    bool fired = true;

    for (fail_at = 0; fired; fail_at++) {
        const char *name = scene->name;
        unsigned sum, now;
        const attn_status status = play(scene, &sum);

        fired = counts[fail_kind] > fail_at;
        if (!fired)
            break;
        now = folder_sum();
        expect(is_right(scene, status), name, attn_status_name(status));
        expect(live == 0, name, "leaks memory");
        expect(live_descriptors == 0, name, "leaks a descriptor");
        expect(now == (status == ATTN_OK && scene->writes ? after : before),
               name, "leaves the folder in a wrong state");
        if (status == ATTN_OK)
            expect(sum == clean_sum, name, "gives other numbers");
    }
    fail_at = -1;
}

void play_scene(const file_scene *scene)
{
    unsigned clean, before, after;

    restore();
    before = folder_sum();
    expect(play(scene, &clean) == ATTN_OK, scene->name, "fails by itself");
    after = folder_sum();
    expect((before != after) == scene->writes, scene->name,
           "writes, or does not");
    expect(counts[HOOK] > 0 && (scene->no_files || counts[OPEN] > 0),
           scene->name, "goes past the faults");
    expect(!scene->hook_only || counts[MALLOC] == 0, scene->name,
           "allocates past the hook");
    printf("%-18s", scene->name);
    for (int k = 0; k < N_KINDS; k++)
        if (counts[k] > 0)
            printf(" %d %s%s", counts[k], kind_names[k],
                   counts[k] > 1 ? "s" : "");
    printf("\n");
    for (int m = FAILS; m <= SHORT; m++) {
        for (int k = 0; k < N_KINDS; k++) {
            const bool can_be_short = k == PREAD || k == WRITE;
            const bool can_be_interrupted = can_be_short || k == OPEN ||
                                            k == FSYNC || k == CLOSE;

            if ((m == SHORT && !can_be_short) ||
                (m == INTERRUPT && !can_be_interrupted) ||
                (k == MALLOC && !STANDS_IN))
                continue;
            fail_manner = (manner)m;
            fail_kind = (kind)k;
            fail_each(scene, clean, before, after);
        }
    }
}

void begin_faults(void)
{
    if (!mkdtemp(fault_folder)) {
        perror(fault_folder);
        exit(1);
    }
    snprintf(fault_out, sizeof fault_out, "%s/out", fault_folder);
    attn_set_allocator(hooked_realloc, hooked_free);
}

int end_faults(void)
{
    unlink(fault_out);
    if (rmdir(fault_folder) != 0) {
        perror(fault_folder);
        failed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
