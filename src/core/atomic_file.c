/* SPDX-License-Identifier: Apache-2.0
 *
 * Atomic replacement of a file, by rename(2) in one folder. */
#include "core/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/system.h"

/* Names of files that a killed process left behind are stepped over. */
#define ATTEMPTS 100
#define SUFFIX_SIZE 40

attn_status attn__output_open(attn__output *output, const char *path,
                              attn_diag *diag)
{
    const size_t n = strlen(path);
    struct stat info;

    *output = (attn__output){-1, path, NULL};
    ATTN__REQUIRE(n > 0, diag, ATTN_E_IO, "file", "has no name");
    ATTN__REQUIRE(stat(path, &info) != 0 || S_ISREG(info.st_mode), diag,
                  ATTN_E_IO, "file",
                  "exists already, and is not a regular file");
    output->temporary = attn__alloc(n + SUFFIX_SIZE);
    ATTN__REQUIRE(output->temporary, diag, ATTN_E_NOMEM, "file",
                  "no memory for a name");
    for (int i = 0; i < ATTEMPTS && output->fd < 0; i++) {
        snprintf(output->temporary, n + SUFFIX_SIZE, "%s.%ld.%d.tmp", path,
                 (long)getpid(), i);
        /* O_EXCL: never through a link that somebody else has laid there. */
        output->fd = open(output->temporary,
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (output->fd < 0 && errno != EEXIST && errno != EINTR)
            break;
    }
    if (output->fd < 0) {
        const int error = errno;
        attn__free(output->temporary);
        output->temporary = NULL;
        return attn__system_error(diag, "cannot create a file beside it",
                                  error);
    }
    return ATTN_OK;
}

attn_status attn__output_write(attn__output *output, const void *data,
                               size_t n, attn_diag *diag)
{
    const char *at = data;

    while (n > 0) {
        const ssize_t done = write(output->fd, at, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return attn__system_error(diag, "cannot write", errno);
        at += done;
        n -= (size_t)done;
    }
    return ATTN_OK;
}

attn_status attn__output_commit(attn__output *output, attn_diag *diag)
{
    int result;

    do
        result = fsync(output->fd);
    while (result != 0 && errno == EINTR);
    if (result != 0)
        return attn__system_error(diag, "cannot write", errno);
    result = close(output->fd);
    output->fd = -1;
    /* After EINTR the descriptor is closed, and the data are synced. */
    if (result != 0 && errno != EINTR)
        return attn__system_error(diag, "cannot write", errno);
    if (rename(output->temporary, output->path) != 0)
        return attn__system_error(diag, "cannot rename", errno);
    attn__free(output->temporary);
    output->temporary = NULL;
    return ATTN_OK;
}

void attn__output_end(attn__output *output)
{
    if (output->fd >= 0)
        close(output->fd);
    if (output->temporary)
        unlink(output->temporary);
    attn__free(output->temporary);
    *output = (attn__output){-1, NULL, NULL};
}
