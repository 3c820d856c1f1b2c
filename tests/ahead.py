"""What every child of tests/children.py would do anew: done here once, before it is forked."""

import gc

from transformers.conversion_mapping import get_checkpoint_conversion_mapping

get_checkpoint_conversion_mapping("bert")  # compiles a thousand patterns at the first encoder that is loaded
gc.collect()
gc.freeze()  # a training searches for garbage when it ends
