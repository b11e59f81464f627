/* SPDX-License-Identifier: Apache-2.0
 *
 * io_faults: reads and writes files while the k-th operation fails, for every
 * k: allocations (ours by the hook, libzip's by standing in for malloc), and by
 * --wrap open, fstat, pread, write, fsync, close and rename. Interrupted and
 * short operations must not be noticed; failed ones must give their status,
 * leak nothing, and leave the folder as it was. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/io/zip_maker.h"
#include "../unit/unit.h"
#include "attn_io.h"

/* ------------------------------------------------------- what can fail */

typedef enum kind {
    HOOK,   /* attn_realloc */
    MALLOC, /* anybody's malloc while a scene plays: libzip's */
    OPEN,
    FSTAT,
    PREAD,
    WRITE,
    FSYNC,
    CLOSE,
    RENAME,
    N_KINDS
} kind;

static const char *const kind_names[] = {"allocation", "libzip's allocation",
                                         "open",       "fstat",
                                         "pread",      "write",
                                         "fsync",      "close",
                                         "rename"};

typedef enum manner {
    FAILS,     /* once */
    ALL_FAIL,  /* and all after it */
    INTERRUPT, /* EINTR, once */
    SHORT      /* half of what was asked for, once */
} manner;

static int counts[N_KINDS];
static int fail_at = -1;
static kind fail_kind;
static manner fail_manner;
static bool playing;
static int live; /* blocks of the hook not freed */
static int live_descriptors;

/* Whether this operation is the one that misbehaves. */
static bool strikes(kind k)
{
    const int n = counts[k]++;

    return playing && k == fail_kind && fail_at >= 0 &&
           (n == fail_at || (fail_manner == ALL_FAIL && n > fail_at));
}

/* -1 with errno set, for an operation that fails or is interrupted. */
static int failure(void)
{
    errno = fail_manner == INTERRUPT ? EINTR : EIO;
    return -1;
}

/* --------------------------------------------------------------- memory */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
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
    playing = false; /* this is not libzip's */
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
        return failure();
    fd = __real_open64(path, flags, mode);
    live_descriptors += fd >= 0;
    return fd;
}

int __wrap_fstat64(int fd, struct stat *info)
{
    return strikes(FSTAT) ? failure() : __real_fstat64(fd, info);
}

ssize_t __wrap_pread64(int fd, void *data, size_t n, off_t offset)
{
    if (strikes(PREAD)) {
        if (fail_manner != SHORT)
            return failure();
        n = n / 2 + (n == 1);
    }
    return __real_pread64(fd, data, n, offset);
}

ssize_t __wrap_write(int fd, const void *data, size_t n)
{
    if (strikes(WRITE)) {
        if (fail_manner != SHORT)
            return failure();
        n = n / 2 + (n == 1);
    }
    return __real_write(fd, data, n);
}

int __wrap_fsync(int fd)
{
    return strikes(FSYNC) ? failure() : __real_fsync(fd);
}

/* Linux closes the descriptor whatever close returns. */
int __wrap_close(int fd)
{
    const bool struck = strikes(CLOSE);

    live_descriptors -= __real_close(fd) == 0;
    return struck ? failure() : 0;
}

int __wrap_rename(const char *from, const char *to)
{
    return strikes(RENAME) ? failure() : __real_rename(from, to);
}

/* --------------------------------------------------------------- scenes */

#define OLD "what was there before"

static char folder[] = "io-faults-XXXXXX";
static char in_npy[64], in_npz[64], out[64];

/* A number that another content would not have. */
static unsigned mix(unsigned sum, const void *data, size_t n)
{
    return 31 * sum + crc32_of(data, n);
}

static attn_status read_file(const char *path, unsigned *sum)
{
    attn_file *file;
    attn_status status = attn_file_open(path, &file, NULL);

    for (int64_t i = 0; !status && i < attn_file_count(file); i++) {
        attn_array a;

        status = attn_file_load(file, i, &a, NULL);
        if (status == ATTN_OK && a.text)
            *sum = mix(*sum, a.text[0], strlen(a.text[0]));
        else if (status == ATTN_OK)
            *sum = mix(*sum, a.data,
                       (size_t)a.count * attn_dtype_size(a.dtype));
        attn_array_free(&a);
    }
    attn_file_close(file);
    return status;
}

static attn_status read_npy(unsigned *sum)
{
    return read_file(in_npy, sum);
}

static attn_status read_npz(unsigned *sum)
{
    return read_file(in_npz, sum);
}

static double numbers[] = {1, 2, 3, 4, 5, 6};
static char *strings[] = {"a", "b"};
static const attn_array arrays[] = {
    {.name = "q", .dtype = ATTN_F64, .rank = 2, .shape = {2, 3}, .count = 6,
     .data = numbers},
    {.name = "t", .rank = 1, .shape = {2}, .count = 2, .text = strings}};

static attn_status write_npy(unsigned *sum)
{
    (void)sum;
    return attn_npy_write(out, &arrays[0], NULL);
}

static attn_status write_npz(unsigned *sum)
{
    (void)sum;
    return attn_npz_write(out, arrays, 2, NULL);
}

static attn_status convert(unsigned *sum)
{
    const int64_t shape = 3;
    attn_array a;
    attn_status status = attn_array_init(&a, "x", ATTN_F64, 1, &shape, NULL);

    if (status == ATTN_OK)
        status = attn_array_convert(&a, ATTN_F16, NULL);
    if (status == ATTN_OK)
        *sum = mix(*sum, a.data, 6);
    attn_array_free(&a);
    return status;
}

static const struct {
    const char *name;
    attn_status (*play)(unsigned *sum);
    bool writes;
} scenes[] = {
    {"read .npy", read_npy, false},   {"read .npz", read_npz, false},
    {"write .npy", write_npy, true},  {"write .npz", write_npz, true},
    {"make and convert", convert, false},
};

/* --------------------------------------------------------------- judging */

static int passed, failed;

static void expect(bool ok, const char *scene, const char *what)
{
    static const char *const manners[] = {"fails", "and all after it fail",
                                          "is interrupted", "is short"};

    passed += ok;
    failed += !ok;
    if (!ok)
        printf("%s: %s (%s %d %s)\n", scene, what, kind_names[fail_kind],
               fail_at + 1, manners[fail_manner]);
}

/* The bytes of `out`, and nothing beside the three files of the folder. */
static unsigned folder_sum(void)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    FILE *file = fopen(out, "rb");
    char bytes_read[4096];
    size_t n;
    unsigned files = 0;

    while ((entry = readdir(dir)))
        files += entry->d_name[0] != '.';
    closedir(dir);
    n = file ? fread(bytes_read, 1, sizeof bytes_read, file) : 0;
    if (file)
        fclose(file);
    return crc32_of(bytes_read, n) + files;
}

static void restore(void)
{
    FILE *file = fopen(out, "wb");

    fputs(OLD, file);
    fclose(file);
}

static attn_status play(size_t s, unsigned *sum)
{
    attn_status status;

    restore();
    memset(counts, 0, sizeof counts);
    live = live_descriptors = 0;
    *sum = 0;
    playing = true;
    status = scenes[s].play(sum);
    playing = false;
    return status;
}

/* Whether `status` is right for what went wrong. */
static bool is_right(size_t s, attn_status status)
{
    if (fail_manner >= INTERRUPT)
        return status == ATTN_OK;
    if (fail_kind == HOOK || fail_kind == MALLOC)
        return status == ATTN_E_NOMEM ||
               (status == ATTN_OK && fail_kind == MALLOC);
    if (fail_kind == CLOSE && !scenes[s].writes)
        return status == ATTN_OK;
    return status == ATTN_E_IO;
}

/* Fail the k-th operation for every k, until none is left to fail. */
static void fail_each(size_t s, unsigned clean_sum, unsigned before,
                      unsigned after)
{
    bool fired = true;

    for (fail_at = 0; fired; fail_at++) {
        const char *name = scenes[s].name;
        unsigned sum, now;
        const attn_status status = play(s, &sum);

        fired = counts[fail_kind] > fail_at;
        if (!fired)
            break;
        now = folder_sum();
        expect(is_right(s, status), name, attn_status_name(status));
        expect(live == 0, name, "leaks memory");
        expect(live_descriptors == 0, name, "leaks a descriptor");
        expect(now == (status == ATTN_OK && scenes[s].writes ? after : before),
               name, "leaves the folder in a wrong state");
        if (status == ATTN_OK)
            expect(sum == clean_sum, name, "gives other numbers");
    }
    fail_at = -1;
}

static void play_scene(size_t s)
{
    unsigned clean, before, after;

    restore();
    before = folder_sum();
    expect(play(s, &clean) == ATTN_OK, scenes[s].name, "fails by itself");
    after = folder_sum();
    expect((before != after) == scenes[s].writes, scenes[s].name,
           "writes, or does not");
    expect(counts[HOOK] > 0 && (s + 1 == COUNT(scenes) || counts[OPEN] > 0),
           scenes[s].name, "goes past the faults");
    printf("%-18s", scenes[s].name);
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
            fail_each(s, clean, before, after);
        }
    }
}

/* A Fortran-ordered .npy of the other byte order, and a .npz of deflated
 * members with descriptors and ZIP64 records. */
static void make_inputs(void)
{
    static const char *const names[] = {"a.npy", "t.npy"};
    const zip_plan plan = {true, true, true};
    bytes npy = npy_of(1, "{'descr': '>f4', 'fortran_order': True, "
                       "'shape': (2, 3), }", 24);
    bytes contents[] = {npy_array("<i2", "(300,)", 600),
                        npy_array("|S4", "(1,)", 4)};
    zip_made z = zip_of(&plan, 2, names, contents);
    FILE *file;

    assert_non_null(mkdtemp(folder));
    snprintf(in_npy, sizeof in_npy, "%s/in.npy", folder);
    snprintf(in_npz, sizeof in_npz, "%s/in.npz", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    file = fopen(in_npy, "wb");
    fwrite(npy.data, 1, npy.n, file);
    fclose(file);
    file = fopen(in_npz, "wb");
    fwrite(z.b.data, 1, z.b.n, file);
    fclose(file);
    drop(&npy);
    drop(&contents[0]);
    drop(&contents[1]);
    drop(&z.b);
}

int main(void)
{
    make_inputs();
    attn_set_allocator(hooked_realloc, hooked_free);
    for (size_t s = 0; s < COUNT(scenes); s++)
        play_scene(s);
    unlink(in_npy);
    unlink(in_npz);
    unlink(out);
    rmdir(folder);
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
