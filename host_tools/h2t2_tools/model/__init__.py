"""From a trained model to what a board runs: reading, converting, inspecting, planning and bundling it."""
