/* Plays a run of tests/portable/replay.py in C and prints the same line. The compiler's command defines KIND (the policy's
   name in C), ROUNDS, RESTORE, and UNANSWERED: 1 where answers do not come. */
#include "h2t2.h"

#define JOINED(name, suffix) name##suffix
#define WITH(name, suffix) JOINED(name, suffix)
#define CALL(function) WITH(KIND, _##function)

void show(const char *text);

static KIND policy;
static uint8_t saved[SNAPSHOT];
static char actions[ROUNDS + 1];
static int32_t crc;

static void add(int32_t value) { crc = h2t2_mod(crc * 31 + value, 16777213); }

static void number(int32_t value)
{
    char text[12];
    int32_t at = 11;
    text[at] = 0;
    do {
        text[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    show(text + at);
}

static void snapshot(void)
{
    int32_t n, size = CALL(snapshot)(&policy, saved);
    for (n = 0; n < size; n++) add(saved[n]);
}

static void restart(void)
{
    snapshot();
    CALL(begin)(&policy, ROUNDS);
    if (CALL(restore)(&policy, saved, sizeof saved) < 0) show("refused ");
}

int main(void)
{
    h2t2_rng stream = {0, 0, 0};
    int32_t n, draw, k, label, action, came, late = 0;
    h2t2_rng_init(&stream, 7);
    CALL(begin)(&policy, ROUNDS);
    for (n = 0; n < ROUNDS; n++) {
        if (RESTORE && n == RESTORE) restart();
        draw = h2t2_rng_draw(&stream);
        label = h2t2_rng_draw(&stream) < draw;
        k = h2t2_shr(draw * CALL(steps)(&policy), 15);
        action = CALL(decide)(&policy, k);
        actions[n] = action < 0 ? '-' : (char)('0' + action);
        add(policy.ticket);
        add(policy.local);
        add(policy.experts.offload);
        add(policy.experts.positive);
#ifdef FORECASTER
        add(policy.chance);
        add(policy.forecaster.belief[0]);
        add(policy.forecaster.belief[1]);
        add(policy.forecaster.belief[2]);
        add(policy.lead & 65535);
#endif
        if (action != H2T2_OFFLOAD) continue;
        if (UNANSWERED) {
            came = h2t2_rng_draw(&stream) > h2t2_shl(k, 10);
            CALL(count_question)(&policy, k, came);
            if (came) CALL(learn)(&policy, policy.ticket, label, -1);
            else add(CALL(lose)(&policy, policy.ticket));
        } else if (n % 7 == 3) {
            late = policy.ticket;
        } else if (n % 7 == 5) {
            add(CALL(lose)(&policy, policy.ticket));
        } else {
            CALL(learn)(&policy, policy.ticket, label, -1);
            if (late) {
                CALL(learn)(&policy, late, label, 16384);
                CALL(learn)(&policy, late, label, 16384);
                late = 0;
            }
        }
    }
    snapshot();
    show("{\"actions\": \"");
    show(actions);
    show("\", \"crc\": ");
    number(crc);
    show(", \"counts\": [");
    number(policy.lessons);
    show(", ");
    number(policy.tickets.refused);
    show(", ");
    number(policy.tickets.lost);
    show("]}\n");
    return 0;
}
