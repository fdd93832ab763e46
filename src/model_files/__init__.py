"""Read and write the headers of files of weights (GGUF, safetensors) without holding the weights."""
