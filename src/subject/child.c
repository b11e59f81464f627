/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting a child, talking to it, and ending it. */
#include "subject/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "subject/protocol.h"

extern char **environ;

/* More than any honest message. */
enum { MOST_BYTES = 1 << 28 };

/* --------------------------------------------------------------- process */

static bool spawn(attn__child *child, char *const argv[], int end)
{
    posix_spawn_file_actions_t actions;
    bool ok;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    ok = posix_spawn_file_actions_adddup2(&actions, end, 0) == 0 &&
         posix_spawn_file_actions_adddup2(&actions, end, 1) == 0 &&
         posix_spawnp(&child->pid, argv[0], &actions, NULL, argv, environ) ==
             0;
    posix_spawn_file_actions_destroy(&actions);
    return ok;
}

bool attn__child_start(attn__child *child, char *const argv[])
{
    int ends[2];
    bool ok;

    *child = (attn__child){.link = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return false;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    ok = spawn(child, argv, ends[1]);
    close(ends[1]);
    if (!ok) {
        close(ends[0]);
        child->pid = 0;
        return false;
    }
    child->link = ends[0];
    return true;
}

bool attn__child_fork(attn__child *child)
{
    int ends[2];

    *child = (attn__child){.link = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return false;
    child->pid = fork();
    child->link = ends[child->pid == 0];
    close(ends[child->pid != 0]);
    if (child->pid < 0) {
        close(child->link);
        *child = (attn__child){.link = -1};
        return false;
    }
    return true;
}

/* Without what the host has registered for its own end. */
void attn__child_leave(void)
{
    kill(getpid(), SIGKILL);
}

static void say_end(int status, char *message, size_t size)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
        snprintf(message, size, "it was ended by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WIFEXITED(status))
        snprintf(message, size, "it ended itself with code %d",
                 WEXITSTATUS(status));
}

/* A child that closed its link is given a moment to end by itself, so that
 * its signal can be told. */
static bool has_ended(pid_t pid, int *status)
{
    const struct timespec pause = {0, 2000000};

    for (int tries = 0; tries < 50; tries++) {
        if (waitpid(pid, status, WNOHANG) == pid)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

void attn__child_end(attn__child *child, char *message, size_t size)
{
    int status = 0;

    if (child->pid <= 0)
        return;
    close(child->link);
    if (!message || !has_ended(child->pid, &status)) {
        kill(child->pid, SIGKILL);
        while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
            continue;
    }
    if (message)
        say_end(status, message, size);
    *child = (attn__child){.link = -1};
}

/* ------------------------------------------------------------------ link */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static attn_outcome wait_for(const attn__child *child, short events,
                             double until)
{
    struct pollfd p = {.fd = child->link, .events = events};

    for (;;) {
        const double left = until - now();
        const int ready = left > 0 ? poll(&p, 1, (int)(left * 1000) + 1) : 0;

        if (ready > 0)
            return ATTN_ANSWERED;
        if (ready == 0)
            return ATTN_TIMED_OUT;
        if (errno != EINTR)
            return ATTN_CRASHED;
    }
}

static attn_outcome send_all(const attn__child *child, const void *data,
                             size_t size, double until)
{
    const char *bytes = data;

    while (size > 0) {
        const attn_outcome ready = wait_for(child, POLLOUT, until);
        ssize_t n;

        if (ready != ATTN_ANSWERED)
            return ready;
        n = send(child->link, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return ATTN_CRASHED;
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        }
    }
    return ATTN_ANSWERED;
}

static attn_outcome receive_all(const attn__child *child, void *data,
                                size_t size, double until)
{
    char *bytes = data;

    while (size > 0) {
        const attn_outcome ready = wait_for(child, POLLIN, until);
        ssize_t n;

        if (ready != ATTN_ANSWERED)
            return ready;
        n = recv(child->link, bytes, size, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
            return ATTN_CRASHED;
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        }
    }
    return ATTN_ANSWERED;
}

attn_outcome attn__child_send(attn__child *child, const attn__message *message,
                              double seconds)
{
    const double until = now() + seconds;
    const uint32_t length = (uint32_t)message->length;
    attn_outcome outcome =
        send_all(child, &length, sizeof length, until);

    if (outcome == ATTN_ANSWERED)
        outcome = send_all(child, message->data, message->length, until);
    return outcome;
}

attn_outcome attn__child_receive(attn__child *child, attn__message *message,
                                 double seconds)
{
    const double until = now() + seconds;
    uint32_t length;
    attn_outcome outcome =
        receive_all(child, &length, sizeof length, until);

    *message = (attn__message){0};
    if (outcome != ATTN_ANSWERED)
        return outcome;
    if (length > MOST_BYTES)
        return ATTN_CRASHED;
    message->data = attn__alloc((size_t)length + 1);
    if (!message->data)
        return ATTN_LOST;
    message->length = length;
    outcome = receive_all(child, message->data, length, until);
    if (outcome != ATTN_ANSWERED)
        attn__message_free(message);
    return outcome;
}

/* -------------------------------------------------------------- converse */

static attn_outcome exchange(attn__child *child, attn__message *call,
                             double timeout, attn_answer *answer)
{
    attn__message m = {0};
    attn_outcome outcome = attn__child_send(child, call, timeout);

    if (outcome == ATTN_ANSWERED)
        outcome = attn__child_receive(child, &m, timeout);
    if (outcome == ATTN_ANSWERED)
        outcome = attn__decode_answer(&m, answer);
    attn__message_free(&m);
    return outcome;
}

attn_outcome attn__converse(attn__child *child, const attn_value *values,
                            int32_t n, double timeout, int *ends,
                            attn_answer *answer)
{
    const size_t size = sizeof answer->message;
    attn__message call;
    attn_outcome outcome;

    outcome = attn__encode_call(&call, values, n)
                  ? exchange(child, &call, timeout, answer)
                  : ATTN_LOST;
    attn__message_free(&call);
    if (outcome == ATTN_LOST) { /* its answer is under way, perhaps */
        snprintf(answer->message, size, "out of memory");
        attn__child_end(child, NULL, 0);
    }
    if (outcome == ATTN_TIMED_OUT)
        snprintf(answer->message, size, "no answer within %g s", timeout);
    if (outcome == ATTN_CRASHED || outcome == ATTN_TIMED_OUT) {
        *ends += outcome == ATTN_TIMED_OUT ? ATTN__TIMEOUT_ENDS : 1;
        attn__child_end(child,
                        outcome == ATTN_CRASHED ? answer->message : NULL,
                        size);
    }
    if (outcome == ATTN_CRASHED && !answer->message[0])
        snprintf(answer->message, size, "the connection to it broke");
    return outcome;
}
