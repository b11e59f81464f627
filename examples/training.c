/* SPDX-License-Identifier: Apache-2.0
 *
 * Training: a layer of attention learns to say a sequence backwards.
 *
 *     build/examples/example_training backwards.svg
 *
 * Of LEN random tokens, place i must say the token of place LEN - 1 - i. No
 * place can do that alone: queries must learn to find one key, by its position.
 * What the weights look like then, an antidiagonal, is drawn beside the loss.
 *
 *   x = E[token] + P[place]    y = layer(x)    logits = y U    loss = -ln p
 *
 * Plan, workspace and all buffers are made once; a step allocates nothing. */
#include <attn_layer.h>
#include <attn_picture.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 32, LEN = 16, TOKENS = 16, WIDTH = 32, HEADS = 2, STEPS = 150,
    PLACES = BATCH * LEN,
    /* Where each matrix begins among the parameters. */
    EMBED = 0, PLACE = EMBED + TOKENS * WIDTH,
    W_Q = PLACE + LEN * WIDTH, W_K = W_Q + WIDTH * WIDTH,
    W_V = W_K + WIDTH * WIDTH, W_O = W_V + WIDTH * WIDTH,
    UNEMBED = W_O + WIDTH * WIDTH, N = UNEMBED + WIDTH * TOKENS
};

typedef struct model {
    float at[N], slope[N];           /* parameters, and the loss's gradient */
    float mean[N], square[N];        /* Adam's running averages */
    int32_t token[PLACES];
    float x[PLACES * WIDTH], y[PLACES * WIDTH], logits[PLACES * TOKENS];
    float dx[PLACES * WIDTH], dy[PLACES * WIDTH], dlogits[PLACES * TOKENS];
    double lse[BATCH * HEADS * LEN];
    float weights[BATCH * HEADS * LEN * LEN];
    attn_layer_plan plan;
    attn_layer_args args;
    attn_exec exec;
    uint64_t random;
} model;

static float uniform(model *m)
{
    /* George Marsaglia's xorshift. */
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (float)(m->random >> 40) * 0x1p-24f;
}

static attn_input in(const float *data, int64_t rows, int64_t columns)
{
    return attn_in_dense(data, ATTN_F32, 2, (int64_t[]){rows, columns});
}

static attn_tensor out(float *data, int64_t rows, int64_t columns)
{
    return attn_dense(data, ATTN_F32, 2, (int64_t[]){rows, columns});
}

/* c = a b; the program's matrices all fit, so it can't fail. */
static void multiply(const model *m, attn_input a, attn_input b, attn_tensor c)
{
    attn_gemm_args gemm;

    attn_gemm_init(&gemm);
    gemm.a = a;
    gemm.b = b;
    gemm.c = c;
    if (attn_gemm(&gemm, &m->exec, NULL) != ATTN_OK)
        exit(1);
}

/* ---------------------------------------------------------- made once */

static void name_tensors(model *m)
{
    const int64_t rows[] = {BATCH, LEN, WIDTH};
    attn_layer_args *a = &m->args;

    attn_layer_args_init(a);
    a->x = attn_in_dense(m->x, ATTN_F32, 3, rows);
    a->y = attn_dense(m->y, ATTN_F32, 3, rows);
    a->d_y = attn_in_dense(m->dy, ATTN_F32, 3, rows);
    a->dx = attn_dense(m->dx, ATTN_F32, 3, rows);
    a->attention.lse = attn_dense(m->lse, ATTN_F64, 3,
                                  (int64_t[]){BATCH, HEADS, LEN});
    a->w_q = in(m->at + W_Q, WIDTH, WIDTH);
    a->w_k = in(m->at + W_K, WIDTH, WIDTH);
    a->w_v = in(m->at + W_V, WIDTH, WIDTH);
    a->w_o = in(m->at + W_O, WIDTH, WIDTH);
    a->dw_q = out(m->slope + W_Q, WIDTH, WIDTH);
    a->dw_k = out(m->slope + W_K, WIDTH, WIDTH);
    a->dw_v = out(m->slope + W_V, WIDTH, WIDTH);
    a->dw_o = out(m->slope + W_O, WIDTH, WIDTH);
}

/* One workspace for both passes and for products. */
static attn_status plan_once(model *m, attn_diag *diag)
{
    attn_workspace need[3];
    attn_layer_desc desc;
    attn_status status;
    size_t size = 0;

    attn_layer_desc_init(&desc, ATTN_F32, BATCH, LEN, WIDTH, HEADS, HEADS);
    status = attn_layer_plan_init(&m->plan, &desc, diag);
    if (status == ATTN_OK)
        status = attn_layer_workspace(&m->plan, ATTN_FORWARD, 1, &need[0],
                                      diag);
    if (status == ATTN_OK)
        status = attn_layer_workspace(&m->plan, ATTN_BACKWARD, 1, &need[1],
                                      diag);
    if (status == ATTN_OK)
        status = attn_gemm_workspace(ATTN_F32, 1, &need[2], diag);
    if (status != ATTN_OK)
        return status;
    for (int i = 0; i < 3; i++)
        if (need[i].size > size)
            size = need[i].size;
    attn_exec_init(&m->exec);
    m->exec.workspace = aligned_alloc(64, (size / 64 + 1) * 64);
    m->exec.workspace_size = size;
    return m->exec.workspace ? ATTN_OK : ATTN_E_NOMEM;
}

/* Of about unit size after each product. */
static void draw_parameters(model *m)
{
    const float width = sqrtf(3.0f / WIDTH);

    for (int i = 0; i < N; i++)
        m->at[i] = (2 * uniform(m) - 1) * (i < W_Q ? 1 : width);
}

/* ------------------------------------------------------------- a step */

static void draw_tokens(model *m)
{
    for (int i = 0; i < PLACES; i++)
        m->token[i] = (int32_t)(uniform(m) * TOKENS);
}

/* What place i must say. */
static int32_t wanted(const model *m, int i)
{
    return m->token[i / LEN * LEN + (LEN - 1 - i % LEN)];
}

static attn_status forward(model *m, attn_diag *diag)
{
    attn_status status;

    for (int i = 0; i < PLACES; i++)
        for (int c = 0; c < WIDTH; c++)
            m->x[i * WIDTH + c] = m->at[EMBED + m->token[i] * WIDTH + c] +
                                  m->at[PLACE + i % LEN * WIDTH + c];
    status = attn_layer_forward(&m->plan, &m->args, &m->exec, diag);
    multiply(m, in(m->y, PLACES, WIDTH), in(m->at + UNEMBED, WIDTH, TOKENS),
             out(m->logits, PLACES, TOKENS));
    return status;
}

/* The mean of -ln p over places, and its gradient by the logits: p - 1 at the
 * wanted token, p elsewhere. Counts the places that say the right thing. */
static double loss_of(model *m, int *right)
{
    double loss = 0;

    *right = 0;
    for (int i = 0; i < PLACES; i++) {
        const float *logit = m->logits + i * TOKENS;
        const int32_t want = wanted(m, i);
        float most = logit[0], sum = 0;

        for (int t = 1; t < TOKENS; t++)
            most = fmaxf(most, logit[t]);
        for (int t = 0; t < TOKENS; t++)
            sum += expf(logit[t] - most);
        for (int t = 0; t < TOKENS; t++)
            m->dlogits[i * TOKENS + t] =
                (expf(logit[t] - most) / sum - (t == want)) / PLACES;
        loss += log((double)sum) - (double)(logit[want] - most);
        *right += logit[want] == most;
    }
    return loss / PLACES;
}

static attn_status backward(model *m, attn_diag *diag)
{
    const attn_input y = in(m->y, PLACES, WIDTH);
    const attn_input u = in(m->at + UNEMBED, WIDTH, TOKENS);
    const attn_input d = in(m->dlogits, PLACES, TOKENS);
    attn_status status;

    multiply(m, attn_layer_transposed(y), d,
             out(m->slope + UNEMBED, WIDTH, TOKENS));
    multiply(m, d, attn_layer_transposed(u), out(m->dy, PLACES, WIDTH));
    status = attn_layer_backward(&m->plan, &m->args, &m->exec, diag);
    memset(m->slope, 0, W_Q * sizeof m->slope[0]);
    for (int i = 0; i < PLACES; i++)
        for (int c = 0; c < WIDTH; c++) {
            const float dx = m->dx[i * WIDTH + c];

            m->slope[EMBED + m->token[i] * WIDTH + c] += dx;
            m->slope[PLACE + i % LEN * WIDTH + c] += dx;
        }
    return status;
}

/* Adam (Kingma and Ba 2014, arXiv:1412.6980). */
static void descend(model *m, int step)
{
    const float keep1 = 0.9f, keep2 = 0.99f, rate = 0.003f;
    const float part1 = 1 - powf(keep1, (float)step);
    const float part2 = 1 - powf(keep2, (float)step);

    for (int i = 0; i < N; i++) {
        const float g = m->slope[i];

        m->mean[i] = keep1 * m->mean[i] + (1 - keep1) * g;
        m->square[i] = keep2 * m->square[i] + (1 - keep2) * g * g;
        m->at[i] -= rate * m->mean[i] / part1 /
                    (sqrtf(m->square[i] / part2) + 1e-8f);
    }
}

/* ------------------------------------------------------------ the picture */

static attn_status draw(const model *m, const double *losses,
                        const char *path, attn_diag *diag)
{
    const attn_curve curve = {"loss", attn_in_dense(losses, ATTN_F64, 1,
                                                    (int64_t[]){STEPS})};
    attn_panel panels[1 + HEADS] = {{.title = "loss at each step",
                                     .curves = &curve, .n_curves = 1}};
    attn_figure figure;

    for (int h = 0; h < HEADS; h++)
        panels[1 + h] = (attn_panel){
            .title = h ? "weights of head 1" : "weights of head 0",
            .values = in(m->weights + h * LEN * LEN, LEN, LEN)};
    attn_figure_init(&figure, panels, 1 + HEADS);
    figure.title = "Learning to say it backwards";
    figure.columns = 1 + HEADS;
    return attn_figure_write_svg(&figure, path, diag);
}

int main(int argc, char **argv)
{
    model *m = calloc(1, sizeof *m);
    static double losses[STEPS];
    attn_diag diag = {0};
    attn_status status;
    int right = 0;

    if (!m)
        return 1;
    m->random = 20261201;
    draw_parameters(m);
    name_tensors(m);
    status = plan_once(m, &diag);
    for (int step = 1; step <= STEPS && status == ATTN_OK; step++) {
        draw_tokens(m);
        status = forward(m, &diag);
        losses[step - 1] = loss_of(m, &right);
        if (status == ATTN_OK)
            status = backward(m, &diag);
        descend(m, step);
        if (step % 25 == 0 || step == 1)
            printf("step %3d  loss %.4f  %5.1f %% right\n", step,
                   losses[step - 1], 100.0 * right / PLACES);
    }
    if (status == ATTN_OK && argc > 1) {
        m->args.attention.weights = attn_dense(
            m->weights, ATTN_F32, 4, (int64_t[]){BATCH, HEADS, LEN, LEN});
        status = forward(m, &diag);
        if (status == ATTN_OK)
            status = draw(m, losses, argv[1], &diag);
    }
    if (status != ATTN_OK)
        fprintf(stderr, "%s: %s\n", diag.field, diag.message);
    free(m->exec.workspace);
    free(m);
    /* It began at ln 16 = 2.77, which is guessing. */
    return status == ATTN_OK && losses[STEPS - 1] < 0.1 ? 0 : 1;
}
