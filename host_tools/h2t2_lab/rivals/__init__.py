"""The policies with which experiments compare ours."""
