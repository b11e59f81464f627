/* SPDX-License-Identifier: Apache-2.0
 *
 * The line of progress.h. Work happens inside of calls that do not return for
 * a while, so a thread of its own draws; where there can't be one, there is no
 * line. */
#include "progress.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

#define WAIT 1000 /* ms before the first line: short work has none */
#define STEP 200  /* ms between two lines */
#define LINE 79   /* what is longer would wrap, and stay */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool asked, drawing; /* for a terminal; for a thread, which is there */
    bool drawn;          /* there is a line to erase */
    const char *what;    /* NULL: nothing is going on */
    int64_t at, n;
    struct timespec since, last; /* work began; the line was drawn */
} line = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct timespec now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return t;
}

static struct timespec later(struct timespec t, long ms)
{
    t.tv_nsec += ms % 1000 * 1000000;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static bool is_past(struct timespec t)
{
    const struct timespec n = now();

    return n.tv_sec > t.tv_sec ||
           (n.tv_sec == t.tv_sec && n.tv_nsec >= t.tv_nsec);
}

static void erase(void)
{
    if (line.drawn)
        fputs("\r\033[K", stderr);
    line.drawn = false;
}

static void draw(void)
{
    const long long seconds = (long long)(now().tv_sec - line.since.tv_sec);
    char text[LINE + 1], part[64] = "";

    if (line.n > 1)
        snprintf(part, sizeof part, " %lld of %lld", (long long)line.at + 1,
                 (long long)line.n);
    else if (line.n == 0)
        snprintf(part, sizeof part, " %lld", (long long)line.at + 1);
    snprintf(text, sizeof text, "%s%s, %lld s", line.what, part, seconds);
    fprintf(stderr, "\r\033[K%s", text);
    line.drawn = true;
    line.last = now();
}

/* The thread: wait for work, then for each line's time. */
static void *tell(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&line.lock);
    for (;;) {
        const struct timespec next =
            line.drawn ? later(line.last, STEP) : later(line.since, WAIT);

        if (!line.what)
            pthread_cond_wait(&line.change, &line.lock);
        else if (is_past(next))
            draw();
        else
            pthread_cond_timedwait(&line.change, &line.lock, &next);
    }
    return NULL;
}

/* Called with the lock. The thread ends with the program. */
static bool is_wanted(void)
{
    const char *term = getenv("TERM");
    pthread_t thread;

    if (line.asked)
        return line.drawing;
    line.asked = true;
    if (!isatty(STDERR_FILENO) || (term && strcmp(term, "dumb") == 0) ||
        pthread_cond_init(&line.change, NULL) != 0 ||
        pthread_create(&thread, NULL, tell, NULL) != 0)
        return false;
    pthread_detach(thread);
    line.drawing = true;
    return true;
}

void cli_progress(const char *what, int64_t at, int64_t n)
{
    pthread_mutex_lock(&line.lock);
    if (is_wanted()) {
        if (!line.what)
            line.since = now();
        line.what = what;
        line.at = at;
        line.n = n;
        pthread_cond_signal(&line.change);
    }
    pthread_mutex_unlock(&line.lock);
}

void cli_progress_end(void)
{
    pthread_mutex_lock(&line.lock);
    erase();
    line.what = NULL;
    pthread_mutex_unlock(&line.lock);
}
