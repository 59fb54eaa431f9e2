/* What a device calls of a policy: the size of this object file is that of the policy, with snapshots if SNAPSHOT is defined. */
#include "h2t2.h"

#define JOINED(name, suffix) name##suffix
#define WITH(name, suffix) JOINED(name, suffix)
#define CALL(function) WITH(KIND, _##function)

int32_t begin(KIND *policy, int32_t seed) { return CALL(begin)(policy, seed); }
int32_t decide(KIND *policy, int32_t k) { return CALL(decide)(policy, k); }
int32_t learn(KIND *policy, int32_t ticket, int32_t label, int32_t beta) { return CALL(learn)(policy, ticket, label, beta); }
int32_t lose(KIND *policy, int32_t ticket) { return CALL(lose)(policy, ticket); }
#ifdef SNAPSHOT
int32_t snapshot(KIND *policy, uint8_t *bytes) { return CALL(snapshot)(policy, bytes); }
int32_t restore(KIND *policy, const uint8_t *bytes, int32_t size) { return CALL(restore)(policy, bytes, size); }
#endif
