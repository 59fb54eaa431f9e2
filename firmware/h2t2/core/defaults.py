# The defaults of all options of policies, as the core's integers. The command line, a board's configuration and the simulator
# read them here.
BITS = 4  # score bits: 16 bins
BETA = 9830  # .3 in Q15, the cost of an offload
DELTA_FP = 22938  # .7 in Q15, the cost of a false positive (the paper's delta_1)
DELTA_FN = 32768  # 1 in Q15, the cost of a false negative (the paper's delta_-1)
ETA = 67108864  # 1 in Q26, the learning rate
EPSILON = 2048  # 1/16 in Q15, the exploration rate if it is fixed
FEEDBACK = "all"  # every offload teaches; "explored" is the paper's Algorithm 1
EXPLORATION = "anytime"  # the rate falls with the rounds; "epsilon" is fixed
HALF_LIFE = 0  # rounds after which losses count half; 0: never
SEED = 1  # of the draws
WINDOW = 8  # number of labels that may be outstanding
RDL_FP = 0  # how often the remote model says 1 for 0, Q15
RDL_FN = 0  # how often it says 0 for 1, Q15
