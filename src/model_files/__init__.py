"""Headers of files of weights (GGUF, safetensors), read without the weights."""
