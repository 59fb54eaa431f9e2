"""`h2t2 retrain`: a pair's local model trained again, with what the field has sent."""
