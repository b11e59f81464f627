/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a regular file with pread: no mapping, so a file that shrinks under
 * us is a status and not a signal. */
#include "io/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/diag.h"
#include "core/system.h"

/* The kind of file is asked of the open descriptor, not of the path, which may
 * name something else by then. */
attn_status attn__source_open(attn__source *source, const char *path,
                              attn_diag *diag)
{
    struct stat info;

    /* Without O_NONBLOCK, opening a pipe waits for its writer. */
    do
        source->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    while (source->fd < 0 && errno == EINTR);
    if (source->fd < 0)
        return attn__system_error(diag, "cannot open", errno);
    if (fstat(source->fd, &info) != 0) {
        const int error = errno;
        attn__source_close(source);
        return attn__system_error(diag, "cannot read", error);
    }
    if (!S_ISREG(info.st_mode)) {
        attn__source_close(source);
        return attn__fail(diag, ATTN_E_IO, "file", "is not a regular file");
    }
    source->size = (int64_t)info.st_size;
    return ATTN_OK;
}

void attn__source_close(attn__source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

/* pread leaves the descriptor's own place alone: threads need no lock. */
attn_status attn__source_read(const attn__source *source, int64_t offset,
                              void *data, size_t n, attn_diag *diag)
{
    char *at = data;

    /* A read may bring less than was asked for, and be interrupted. */
    while (n > 0) {
        const ssize_t got = pread(source->fd, at, n, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return attn__system_error(diag, "cannot read", errno);
        ATTN__REQUIRE(got > 0, diag, ATTN_E_TRUNCATED, "file",
                      "ends at byte %lld, where %zu more are needed",
                      (long long)offset, n);
        at += got;
        offset += got;
        n -= (size_t)got;
    }
    return ATTN_OK;
}

/* The place moves on after a failure too; nobody reads on after one. */
static attn_status read_on(attn__stream *stream, void *data, size_t n,
                           attn_diag *diag)
{
    attn__file_stream *s = (attn__file_stream *)stream;
    const attn_status status = attn__source_read(s->source, s->at, data, n,
                                                 diag);

    s->at += (int64_t)n;
    return status;
}

attn__file_stream attn__stream_of(const attn__source *source, const char *name,
                                  int64_t at, int64_t size)
{
    return (attn__file_stream){{name, size, read_on}, source, at};
}
