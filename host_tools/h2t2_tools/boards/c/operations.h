/* Operations as Python has them: quotients and shifts round down. Divisors are positive, shifts are 0..30, results fit. */

static inline int32_t h2t2_div(int32_t x, int32_t y) { return x >= 0 ? x / y : ~(~x / y); }
static inline int32_t h2t2_mod(int32_t x, int32_t y) { return x >= 0 ? x % y : y - 1 - ~x % y; }
static inline int32_t h2t2_shl(int32_t x, int32_t n) { return x * ((int32_t)1 << n); }
/* the second condition is constant: where a compiler shifts arithmetically, one instruction remains */
static inline int32_t h2t2_shr(int32_t x, int32_t n) { return x >= 0 || -1 >> 1 == -1 ? x >> n : ~(~x >> n); }
static inline int32_t h2t2_max(int32_t x, int32_t y) { return y > x ? y : x; }
static inline int32_t h2t2_min(int32_t x, int32_t y) { return y < x ? y : x; }
static inline int32_t h2t2_abs(int32_t x) { return x < 0 ? -x : x; }
