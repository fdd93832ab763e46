"""The object model: prototypes with slots, delegation, clones, messages and mirrors."""
