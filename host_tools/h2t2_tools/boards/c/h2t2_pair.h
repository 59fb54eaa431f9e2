/* The numbers of the pair @PAIR@ (@EVENT@), for h2t2.h. `h2t2 export-c` computes them from each other: to change one, run it
   again, or call set_beta() and set_deltas(). Costs and the prior are Q15. */
#ifndef H2T2_PAIR_H
#define H2T2_PAIR_H

@NUMBERS@

#endif
