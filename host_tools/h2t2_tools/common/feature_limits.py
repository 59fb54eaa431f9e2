"""How many features a head may have. Options and pairs share the limits."""

from h2t2.core.head import MAX_FEATURES

MODEL_FEATURES = 32  # of the local model, at most
CONTEXT_NUMBERS = MAX_FEATURES - MODEL_FEATURES  # of an app's context(), at most
